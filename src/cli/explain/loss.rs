//! `reframe explain --loss`: what does not reach the client, by the mappings and in one turn.

use crate::diagnostics::count_noun;
use crate::domain::MomentKind;
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::lint::loss::between;
use crate::verify::{TestTurn, TraceEntry};

/// The losses of every backend of the set with this dialect.
pub fn of_all(plan: &Plan, dialect: &DialectPlan) -> String {
    let backends = plan.backends.iter().filter(|b| b.transport != Transport::Replay);
    backends.map(|backend| by_mappings(backend, dialect)).collect()
}

/// The losses by the mappings, and what of these events did not reach the client.
pub fn of_turn(test_turn: &TestTurn, trace: &[TraceEntry], late: u64) -> String {
    let mut text = by_mappings(&test_turn.backend, &test_turn.dialect);
    let raws = trace.iter().filter(|s| matches!(s, TraceEntry::Raw(_))).count();
    text.push_str(&format!("\nof {}:\n", count_noun(raws, "raw event")));
    let mut counts = LossCounts::default();
    let mut without_frame: Option<MomentKind> = None;
    for one in trace {
        match one {
            TraceEntry::Dropped(why, _) => counts.add(0, format!("dropped: {why}")),
            TraceEntry::NotUnderstood(what) => counts.add(1, format!("not recognized: {what}")),
            TraceEntry::Moment(moment, _) => {
                counts.moment(without_frame.take());
                without_frame = Some(moment.kind);
            }
            TraceEntry::Frame(..) => without_frame = None,
            TraceEntry::Raw(raw) => raw.unread.iter().for_each(|path| counts.add(5, format!("not read: {path}"))),
            TraceEntry::Event(..) | TraceEntry::Held(_) | TraceEntry::Late | TraceEntry::Violation(_) => {}
        }
    }
    counts.moment(without_frame);
    if late > 0 {
        counts.rows.push((2, "arrived after the end".to_owned(), late as usize));
    }
    counts.rows.sort_by_key(|(order, ..)| *order);
    if counts.rows.is_empty() {
        text.push_str("  nothing is lost\n");
    }
    for (_, what, count) in &counts.rows {
        text.push_str(&format!("  {count:>4}  {what}\n"));
    }
    text
}

/// The losses by the mappings, worded as in `check`.
fn by_mappings(backend: &BackendPlan, dialect: &DialectPlan) -> String {
    let loss = between(backend, dialect);
    let nothing = if loss.is_empty() { "nothing is lost" } else { "" };
    format!("{}{nothing}\n", loss.sentence())
}

/// What did not reach the client and how often, most important first.
#[derive(Default)]
struct LossCounts {
    rows: Vec<(u8, String, usize)>,
}

impl LossCounts {
    fn add(&mut self, order: u8, what: String) {
        match self.rows.iter_mut().find(|(_, known, _)| *known == what) {
            Some((_, _, count)) => *count += 1,
            None => self.rows.push((order, what, 1)),
        }
    }

    /// Counts a moment that produced no frame.
    fn moment(&mut self, moment: Option<MomentKind>) {
        let Some(moment) = moment else { return };
        if carries_content(moment) {
            self.add(3, format!("not sent: {}", moment.name()));
        } else {
            self.add(4, format!("without its own frame: {}", moment.name()));
        }
    }
}

/// Whether a moment carries content from the backend, or only marks a position in the turn.
fn carries_content(moment: MomentKind) -> bool {
    use MomentKind as M;
    match moment {
        M::TextDelta | M::RefusalDelta | M::SummaryDelta | M::ThoughtDelta | M::ToolArgs => true,
        M::Annotation | M::ToolOpen | M::Usage | M::TurnFail | M::ChoiceFinish => true,
        M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnEnd | M::ChoiceOpen | M::Idle => false,
        M::MessageOpen | M::MessageClose | M::PartOpen | M::PartClose => false,
        M::ReasoningOpen | M::ReasoningClose | M::SummaryOpen | M::SummaryClose => false,
        M::ThoughtOpen | M::ThoughtClose | M::ToolClose => false,
    }
}
