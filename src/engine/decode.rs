//! Raw event → Event, by the rules of a backend. No state.

use crate::diagnostics::Span;
use crate::domain::{CallKind, Delta, Event, Fault, FaultKind, Finish, Merge, ReasoningKind, Tree, Usage};
use crate::engine::rules::Emission;
use crate::mapping::config::backend::{BackendPlan, Unmatched};
use crate::mapping::language::field::scalar_text;

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
        let rule = emission.rule;
        decoded.events.extend(to_event(emission).map(|e| (e, rule)));
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

/// `None` if a required value is absent. The loader has checked the names and the types of their fields.
fn to_event(mut e: Emission) -> Option<Event> {
    let named = e.take("choice").and_then(|c| c.as_u64()).map(|c| c as usize);
    let choice = named.unwrap_or(0);
    Some(match e.name {
        "start" => Event::Start {
            id: e.text("id"),
            model: e.text("model"),
            created: e.take("created").and_then(|c| c.as_i64()),
        },
        "text" => {
            Event::Text { choice, item: e.text("item"), part: part_index(&mut e), delta: read_delta(&mut e, "delta")? }
        }
        "refusal" => Event::Refusal {
            choice,
            item: e.text("item"),
            part: part_index(&mut e),
            delta: read_delta(&mut e, "delta")?,
        },
        "reasoning" => Event::Reasoning {
            choice,
            item: e.text("item"),
            kind: e.text("kind").and_then(|k| ReasoningKind::from_name(&k)).unwrap_or(ReasoningKind::Raw),
            part: part_index(&mut e),
            delta: read_delta(&mut e, "delta"),
            encrypted: e.text("encrypted"),
        },
        "annotation" => {
            let item = e.text("item");
            Event::Annotation { choice, item, value: Tree::map(e.fields) }
        }
        "logprobs" => Event::Logprobs { choice, item: e.text("item"), value: e.take("value")? },
        "tool" => Event::Tool {
            choice,
            key: e.text("key"),
            id: e.text("id"),
            name: e.text("name"),
            kind: e.text("kind").and_then(|k| CallKind::from_name(&k)),
            delta: read_delta(&mut e, "delta"),
        },
        "batch" => {
            let ids = e.take("ids").unwrap_or_default();
            let ids = ids.as_list().unwrap_or(&[]).iter().filter_map(|i| i.as_str().map(str::to_owned)).collect();
            Event::Batch { choice, ids }
        }
        "close" => Event::Close { choice, item: e.text("item"), key: e.text("key") },
        "usage" => {
            let merge = e.text("merge").and_then(|m| Merge::from_name(&m)).unwrap_or(Merge::Replace);
            let mut count = |name: &str| e.take(name).and_then(|n| n.as_u64());
            let usage = Usage {
                input: count("input"),
                output: count("output"),
                total: count("total"),
                cached: count("cached"),
                cache_write: count("cache_write"),
                reasoning: count("reasoning"),
            };
            Event::Usage { usage, merge }
        }
        "finish" => {
            let reason = e.text("reason").and_then(|r| Finish::from_name(&r))?;
            Event::Finish { choice: named, reason }
        }
        "fault" => {
            let message = e.text("message").filter(|m| !m.is_empty());
            let fault = Fault {
                code: e.text("code"),
                param: e.text("param"),
                status: e.take("status").and_then(|s| s.as_u64()).and_then(|s| u16::try_from(s).ok()),
                retry_after: e.take("retry_after").and_then(|s| s.as_u64()),
                ..Fault::new(FaultKind::Backend, message.unwrap_or_else(|| "the backend reported an error".into()))
            };
            Event::Fault { fault, is_final: e.take("final").and_then(|f| f.as_bool()).unwrap_or(true) }
        }
        "end" => Event::End,
        _ => return None,
    })
}

fn part_index(e: &mut Emission) -> Option<usize> {
    e.take("part").and_then(|p| p.as_u64()).map(|p| p as usize)
}

fn read_delta(e: &mut Emission, field: &str) -> Option<Delta> {
    match e.take(field) {
        Some(Tree::SurrogateString(text)) => Some(Delta::AppendSurrogates(*text)),
        Some(text) => scalar_text(&text).map(Delta::Append),
        None => e.text("whole").map(Delta::Snapshot),
    }
}
