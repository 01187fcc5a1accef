//! The table of `reframe explain`: the result of each raw event, the YAML lines that produced it, and the policies
//! that affected it.

use crate::cli::columns::aligned;
use crate::diagnostics::{Sources, Span, count_noun};
use crate::domain::{FrameBody, MomentKind};
use crate::engine::pipeline::Pipeline;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::policy::resolve::ResolvedPolicies;
use crate::mapping::provenance::policies::{InfluenceKind, PolicyInfluence, disabling_policies, influencing_policies};
use crate::verify::{TestTurn, TraceEntry};

const HEADER: [&str; 7] = ["  #  backend event", "event", "rule", "moment", "frame", "frame at", "policies"];
/// Longer cells overflow their column; they are rare.
const MAX_WIDTH: usize = 44;

pub fn table(test_turn: &TestTurn, trace: &[TraceEntry], resolved: &ResolvedPolicies, sources: &Sources) -> String {
    let mut rows = Rows {
        sources,
        dialect: &test_turn.dialect,
        resolved,
        rows: Vec::new(),
        next: PendingRow::default(),
        frames: 0,
        reported: Vec::new(),
    };
    trace.iter().for_each(|one| rows.on_event(one));
    rows.flush();
    rows.rows.insert(0, HEADER.map(str::to_owned));
    // Names of backend events, in the first column, are never truncated.
    aligned(&rows.rows, MAX_WIDTH)
}

/// Builds the rows. A column that has not changed since the last row stays empty.
struct Rows<'s> {
    sources: &'s Sources,
    dialect: &'s DialectPlan,
    resolved: &'s ResolvedPolicies,
    rows: Vec<[String; 7]>,
    next: PendingRow,
    frames: usize,
    /// Frames and moments with policies already shown in an earlier row.
    reported: Vec<Span>,
}

/// The first columns of the next row.
#[derive(Default)]
struct PendingRow {
    raw: String,
    event: String,
    rule: String,
    moment: String,
    kind: Option<MomentKind>,
}

impl Rows<'_> {
    fn on_event(&mut self, entry: &TraceEntry) {
        match entry {
            TraceEntry::Raw(raw) => {
                self.flush();
                self.next.raw = format!("{:>3}  {}", raw.number, raw.name);
            }
            TraceEntry::Event(event, span) => {
                self.flush_event();
                self.next.event = event.clone();
                self.next.rule = self.sources.show_short(*span);
            }
            TraceEntry::Dropped(why, rule) => {
                self.next.rule = self.sources.show_short(*rule);
                self.push_note(format!("dropped: {why}"));
            }
            TraceEntry::NotUnderstood(what) => self.push_note(format!("not recognized: {what}")),
            TraceEntry::Held(bytes) => self.push_note(format!("held back: {}", count_noun(*bytes, "byte"))),
            TraceEntry::Late => {
                self.next.moment = "–".into();
                self.push_note("dropped: arrived after the end".into());
            }
            TraceEntry::Moment(moment, _) => {
                self.flush_moment();
                self.next.moment = moment.kind.name().to_owned();
                self.next.kind = Some(moment.kind);
            }
            TraceEntry::Frame(frame, span) => {
                let name = match &frame.body {
                    FrameBody::Data(_) => {
                        self.frames += 1;
                        format!("{:>3}  {}", self.frames - 1, frame.name)
                    }
                    FrameBody::Text(text) => format!("     {} {text}", frame.name),
                    FrameBody::Comment(text) => format!("     : {text}"),
                };
                let (rule, policies) = (self.sources.show_short(*span), self.policies(frame.moment, *span));
                self.row(name, rule, policies);
            }
            TraceEntry::Violation(violation) => {
                let rule = violation.template().map_or(String::new(), |span| self.sources.show_short(span));
                self.row(format!("violation: {}", violation.message()), rule, String::new());
            }
        }
    }

    /// The policies that decide whether the frame is sent, and others only if they are set. Shown once per frame: a
    /// stream has hundreds of deltas.
    fn policies(&mut self, moment: MomentKind, made: Span) -> String {
        let Some(plan) = self.dialect.frames(moment).iter().find(|p| p.span == made) else { return String::new() };
        if self.reported.contains(&made) {
            return String::new();
        }
        self.reported.push(made);
        words(
            influencing_policies(self.resolved, plan, moment)
                .iter()
                .filter(|d| d.kind == InfluenceKind::When || !d.is_default),
        )
    }

    fn push_note(&mut self, what: String) {
        self.row(what, String::new(), String::new());
    }

    fn row(&mut self, frame: String, rule: String, policies: String) {
        let PendingRow { raw, event, rule: by, moment, .. } = std::mem::take(&mut self.next);
        self.rows.push([raw, event, by, moment, frame, rule, policies]);
    }

    /// Adds a row for a moment that produced no frame.
    fn flush_moment(&mut self) {
        if self.next.moment.is_empty() {
            return;
        }
        let suppressed = self.next.kind.and_then(|kind| self.suppressed(kind));
        match suppressed.filter(|(span, _)| !self.reported.contains(span)) {
            Some((span, policies)) => {
                self.reported.push(span);
                self.row("–".into(), self.sources.show_short(span), policies);
            }
            None => self.push_note("–".into()),
        }
    }

    /// The frame that a policy turned off, perhaps for this request only.
    fn suppressed(&self, kind: MomentKind) -> Option<(Span, String)> {
        let off = disabling_policies(self.resolved, self.dialect, kind)
            .into_iter()
            .map(|(span, policies)| (span, words(policies.iter())));
        let conditional = self.dialect.frames(kind).iter().map(|plan| {
            let policies = influencing_policies(self.resolved, plan, kind);
            (plan.span, words(policies.iter().filter(|d| d.kind == InfluenceKind::When)))
        });
        off.chain(conditional.filter(|(_, policies)| !policies.is_empty())).next()
    }

    fn flush_event(&mut self) {
        self.flush_moment();
        if !self.next.event.is_empty() {
            self.push_note(String::new());
        }
    }

    fn flush(&mut self) {
        self.flush_event();
        if !self.next.raw.is_empty() {
            self.push_note(String::new());
        }
    }
}

/// `output_index=message_first terminator=typed`
fn words<'d>(policies: impl Iterator<Item = &'d PolicyInfluence<'d>>) -> String {
    let value = |value: &str| match value.split_once(", ") {
        // A list does not fit into the table.
        Some((first, _)) => format!("{first},…"),
        None if value.is_empty() => "\"\"".to_owned(),
        None => value.to_owned(),
    };
    let mut words: Vec<String> = Vec::new();
    for word in policies.map(|d| format!("{}={}", d.name, value(&d.value))) {
        // A policy may be read in two places.
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// `7 frames · schema ok · order ok · usage 58+15 · finish tool_calls (backend: stop)`
pub fn summary(pipeline: &Pipeline, trace: &[TraceEntry]) -> String {
    let state = pipeline.state();
    let frames =
        trace.iter().filter(|s| matches!(s, TraceEntry::Frame(f, _) if matches!(f.body, FrameBody::Data(_)))).count();
    let violations = trace.iter().filter(|s| matches!(s, TraceEntry::Violation(_))).count();
    let mut parts = vec![count_noun(frames, "frame")];
    parts.push(match violations {
        0 => "schema ok".to_owned(),
        many => count_noun(many, "violation"),
    });
    match &state.error {
        Some(fault) => parts.push(format!("failed: {}", fault.full_message())),
        None => {
            parts.push("order ok".into());
            parts.extend(state.usage.map(|u| format!("usage {}+{}", u.input.unwrap_or(0), u.output.unwrap_or(0))));
            parts.extend(state.finish.map(|f| format!("finish {}{}", f.name(), other_finish(trace, f.name()))));
        }
    }
    if pipeline.late_events() > 0 {
        parts.push(format!("{} late", pipeline.late_events()));
    }
    parts.join(" · ")
}

/// The backend's finish reason, if another one took precedence.
fn other_finish(trace: &[TraceEntry], won: &str) -> String {
    let reported = trace.iter().rev().find_map(|s| match s {
        TraceEntry::Event(event, _) => event.strip_prefix("finish "),
        _ => None,
    });
    reported.filter(|s| *s != won).map_or(String::new(), |s| format!(" (backend: {s})"))
}
