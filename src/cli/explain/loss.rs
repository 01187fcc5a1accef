//! `reframe explain --loss`: what a client is not told, by the files and in one turn.

use crate::cli::check::counted;
use crate::domain::MomentKind;
use crate::mapping::Plan;
use crate::mapping::config::backend::{BackendPlan, Transport};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::lint::loss::between;
use crate::verify::{Scene, Seen};

/// Every backend of the set with this dialect.
pub fn of_all(plan: &Plan, dialect: &DialectPlan) -> String {
    let backends = plan.backends.iter().filter(|b| b.transport != Transport::Replay);
    backends.map(|backend| by_files(backend, dialect)).collect()
}

/// One turn: what the files cannot say, and what was not told of these events.
pub fn of_turn(scene: &Scene, seen: &[Seen], late: u64) -> String {
    let mut text = by_files(&scene.backend, &scene.dialect);
    let raws = seen.iter().filter(|s| matches!(s, Seen::Raw(_))).count();
    text.push_str(&format!("\nof {}:\n", counted(raws, "raw event")));
    let mut counts = Counts::default();
    let mut untold: Option<MomentKind> = None;
    for one in seen {
        match one {
            Seen::Dropped(why, _) => counts.add(0, format!("dropped: {why}")),
            Seen::Puzzling(what) => counts.add(1, format!("not understood: {what}")),
            Seen::Moment(moment, _) => {
                counts.moment(untold.take());
                untold = Some(moment.kind);
            }
            Seen::Frame(..) => untold = None,
            Seen::Raw(_) | Seen::Event(..) | Seen::Late | Seen::Breach(_) => {}
        }
    }
    counts.moment(untold);
    if late > 0 {
        counts.rows.push((2, "came too late".to_owned(), late as usize));
    }
    counts.rows.sort_by_key(|(order, ..)| *order);
    if counts.rows.is_empty() {
        text.push_str("  everything is told\n");
    }
    for (_, what, count) in &counts.rows {
        text.push_str(&format!("  {count:>4}  {what}\n"));
    }
    text
}

/// In the words of `check`.
fn by_files(backend: &BackendPlan, dialect: &DialectPlan) -> String {
    let loss = between(backend, dialect);
    let nothing = if loss.is_nothing() { "nothing is lost" } else { "" };
    format!("{}{nothing}\n", loss.sentence())
}

/// What was not told, how often, in the order of how much it matters.
#[derive(Default)]
struct Counts {
    rows: Vec<(u8, String, usize)>,
}

impl Counts {
    fn add(&mut self, order: u8, what: String) {
        match self.rows.iter_mut().find(|(_, known, _)| *known == what) {
            Some((_, _, count)) => *count += 1,
            None => self.rows.push((order, what, 1)),
        }
    }

    /// A moment that no frame was written for.
    fn moment(&mut self, moment: Option<MomentKind>) {
        let Some(moment) = moment else { return };
        if says_something(moment) {
            self.add(3, format!("not told: {}", moment.word()));
        } else {
            self.add(4, format!("without a frame of its own: {}", moment.word()));
        }
    }
}

/// Does it carry something that the backend said, or only mark a place in the turn?
fn says_something(moment: MomentKind) -> bool {
    use MomentKind as M;
    match moment {
        M::TextDelta | M::RefusalDelta | M::SummaryDelta | M::ThoughtDelta | M::ToolArgs => true,
        M::Annotation | M::ToolOpen | M::Usage | M::TurnFail | M::ChoiceFinish => true,
        M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnEnd | M::ChoiceOpen => false,
        M::MessageOpen | M::MessageClose | M::PartOpen | M::PartClose => false,
        M::ReasoningOpen | M::ReasoningClose | M::SummaryOpen | M::SummaryClose => false,
        M::ThoughtOpen | M::ThoughtClose | M::ToolClose => false,
    }
}
