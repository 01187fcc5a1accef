//! Raw event → Event, by the rules of a backend. No state.

use crate::diagnostics::Span;
use crate::domain::event::quote;
use crate::domain::{Event, EventKind, ExtraKind, Fault, FaultKind, MalformedExtra, Tree};
use crate::engine::emission_budget::EmissionBudget;
use crate::engine::rules::{Emission, RuleOutput};
use crate::engine::unread::{ReadRecord, UnreadMember, without_indexes};
use crate::mapping::config::backend::{BackendPlan, Unmatched};

/// A raw event, decoded.
#[derive(Debug, Default)]
pub struct DecodedEvent {
    /// Each with the rule that emitted it.
    pub events: Vec<(Event, Span)>,
    /// The reason, and the rule or setting that drops it.
    pub dropped: Option<(String, Span)>,
    /// A part of the event that no rule understands: logged as a warning.
    pub not_understood: Option<String>,
    /// Extras that were dropped because they are malformed, the first of each kind.
    pub malformed_extras: Vec<MalformedExtra>,
}

impl DecodedEvent {
    /// No rule knows the event. One that a rule drops is known.
    pub fn is_unread(&self, backend: &BackendPlan) -> bool {
        let is_unmatched = self.dropped.as_ref().is_some_and(|(_, by)| *by == backend.span);
        let is_unknown = self.not_understood.is_some() || is_unmatched;
        self.events.is_empty() && self.malformed_extras.is_empty() && is_unknown
    }

    fn add_malformed(&mut self, extra: MalformedExtra) {
        if self.malformed_extras.iter().all(|known| known.kind != extra.kind) {
            self.malformed_extras.push(extra);
        }
    }

    /// A field that could not be read costs an extra, if it belongs to one. Text, a call or a finish that is lost fails
    /// the turn: the client was promised it.
    fn read_unread(&mut self, output: &RuleOutput) {
        for unread in &output.unread {
            let Some(event) = EventKind::from_name(unread.name) else { continue };
            let mismatch = output.mismatches.get(unread.mismatch);
            let detail = mismatch.map_or(String::new(), |m| format!("`{}` {}", m.param, m.message));
            match (ExtraKind::of(event), event) {
                (Some(kind), _) => self.add_malformed(MalformedExtra { kind, detail }),
                (None, EventKind::Text | EventKind::Refusal | EventKind::Tool | EventKind::Finish)
                    if unread.is_lost =>
                {
                    let message = format!("the backend sent a {} that cannot be read: {detail}", event.name());
                    self.events.push((fault(message), unread.rule));
                }
                (None, _) => self.not_understood = self.not_understood.take().or(Some(detail)),
            }
        }
    }
}

/// The head of a backend's response, as rules read it: `response.status`, `response.headers.NAME`.
pub fn response_head<'h>(status: u16, headers: impl IntoIterator<Item = (&'h str, &'h str)>) -> Tree {
    let headers = Tree::map(headers.into_iter().map(|(name, value)| (name, Tree::from(value))));
    Tree::map([("response", Tree::map([("status", Tree::from(i64::from(status))), ("headers", headers)]))])
}

/// `head`: of the response, if the rules read it.
pub fn decode_event(backend: &BackendPlan, raw: &Tree, head: &Tree) -> DecodedEvent {
    let mut output = backend.rules.apply_to_message(raw, head);
    let mut decoded = DecodedEvent { dropped: output.dropped.take(), ..DecodedEvent::default() };
    if let Some((message, rule)) = output.failed.take() {
        decoded.events.push((fault(message), rule));
        return decoded;
    }
    decoded.read_unread(&output);
    for emission in output.emissions {
        let Emission { name, fields, rule, .. } = emission;
        let Some(mut event) = Event::from_emission(name, fields) else { continue };
        if let Event::Tool { by, .. } = &mut event {
            by.0 = backend.calls_by;
        }
        if let Event::Finish { reason: None, other: Some(word), .. } = &event {
            decoded.not_understood = Some(format!("the finish reason {} is not known", quote(word)));
        }
        let malformed = event.malformed_extra();
        // Log-probabilities are left out one by one, a citation as a whole.
        if malformed.is_none() || !matches!(event, Event::Annotation { .. }) {
            decoded.events.push((event, rule));
        }
        malformed.into_iter().for_each(|extra| decoded.add_malformed(extra));
    }
    if decoded.not_understood.is_some() {
        return decoded;
    }
    if let Some(unknown) = output.unknown.first() {
        decoded.not_understood = Some(format!("no rule matches `{unknown}`"));
    } else if !output.matched {
        match backend.unmatched {
            Unmatched::Warn => decoded.not_understood = Some("no rule matches this event".into()),
            Unmatched::Drop => decoded.dropped = Some(("no rule matches this event".into(), backend.span)),
            Unmatched::Fail => {
                let message = "the backend sent an event that no rule of its mapping matches";
                decoded.events.push((fault(message.into()), backend.span));
            }
        }
    }
    decoded
}

/// The members of a raw event that no rule reads, without indexes: `choices[].delta.role`. Not for the path of every
/// event: the rules are applied once more.
pub fn unread_members(backend: &BackendPlan, raw: &Tree) -> Vec<String> {
    let mut unread: Vec<String> = Vec::new();
    for member in unread_of(backend, raw) {
        let path = without_indexes(&member.path);
        if !unread.contains(&path) {
            unread.push(path);
        }
    }
    unread
}

/// The first member with text that no rule reads, without indexes.
pub fn unread_text(backend: &BackendPlan, raw: &Tree) -> Option<String> {
    unread_of(backend, raw).into_iter().find(|member| member.has_text).map(|member| without_indexes(&member.path))
}

fn unread_of(backend: &BackendPlan, raw: &Tree) -> Vec<UnreadMember> {
    let mut record = ReadRecord::default();
    let output = backend.rules.apply_recorded(raw, EmissionBudget::default(), &mut record);
    // An event that is dropped or unknown as a whole is reported as such.
    if output.emissions.is_empty() {
        return Vec::new();
    }
    record.unread_members(raw, &backend.always_read)
}

fn fault(message: String) -> Event {
    Event::Fault { fault: Fault::new(FaultKind::Malformed, message), is_final: true }
}
