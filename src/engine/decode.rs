//! Raw event → Event, by the rules of a backend. No state.

use crate::diagnostics::Span;
use crate::domain::{Event, Fault, FaultKind, Tree};
use crate::engine::rules::Emission;
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
}

pub fn decode_event(backend: &BackendPlan, raw: &Tree) -> DecodedEvent {
    let output = backend.rules.apply(raw);
    let mut decoded = DecodedEvent { dropped: output.dropped, ..DecodedEvent::default() };
    if let Some((message, rule)) = output.failed {
        decoded.events.push((fault(message), rule));
        return decoded;
    }
    for emission in output.emissions {
        let Emission { name, fields, rule, .. } = emission;
        decoded.events.extend(Event::from_emission(name, fields).map(|event| (event, rule)));
    }
    if let Some(mismatch) = output.mismatches.first() {
        decoded.not_understood = Some(format!("`{}` {}", mismatch.param, mismatch.message));
    } else if let Some(unknown) = output.unknown.first() {
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

fn fault(message: String) -> Event {
    Event::Fault { fault: Fault::new(FaultKind::Malformed, message), is_final: true }
}
