//! RawEvent → Event, by the rules of a backend. No state.

use crate::diagnostics::Span;
use crate::domain::{CallKind, Event, Fault, FaultKind, Finish, Merge, Piece, ReasoningKind, Tree, Usage};
use crate::engine::rules::Emission;
use crate::mapping::config::backend::{BackendPlan, Unmatched};
use crate::mapping::language::field::scalar_text;

/// What a raw event meant.
#[derive(Debug, Default)]
pub struct Heard {
    /// Each with the rule that said it.
    pub events: Vec<(Event, Span)>,
    /// Why it was dropped, and what says so.
    pub dropped: Option<(String, Span)>,
    /// Something in it was not understood: worth a line in the log and a count.
    pub puzzling: Option<String>,
}

pub fn hear(backend: &BackendPlan, raw: &Tree) -> Heard {
    let said = backend.rules.apply(raw);
    let mut heard = Heard { dropped: said.dropped, ..Heard::default() };
    if let Some((message, rule)) = said.failed {
        heard.events.push((fault(message), rule));
        return heard;
    }
    for emission in said.emissions {
        let rule = emission.rule;
        heard.events.extend(event(emission).map(|e| (e, rule)));
    }
    if let Some(mismatch) = said.mismatches.first() {
        heard.puzzling = Some(format!("`{}` {}", mismatch.param, mismatch.message));
    } else if let Some(unknown) = said.unknown.first() {
        heard.puzzling = Some(format!("no rule knows `{unknown}`"));
    } else if !said.matched {
        match backend.unmatched {
            Unmatched::Warn => heard.puzzling = Some("no rule knows this event".into()),
            Unmatched::Drop => heard.dropped = Some(("no rule knows this event".into(), backend.span)),
            Unmatched::Fail => {
                let message = "the backend sent an event that its mapping does not know";
                heard.events.push((fault(message.into()), backend.span));
            }
        }
    }
    heard
}

fn fault(message: String) -> Event {
    Event::Fault { fault: Fault::new(FaultKind::Garbled, message), last: true }
}

/// The loader has checked the words and the types of their fields.
fn event(mut e: Emission) -> Option<Event> {
    let named = e.take("choice").and_then(|c| c.as_u64()).map(|c| c as usize);
    let choice = named.unwrap_or(0);
    Some(match e.word {
        "start" => Event::Start {
            id: e.text("id"),
            model: e.text("model"),
            created: e.take("created").and_then(|c| c.as_i64()),
        },
        "text" => Event::Text { choice, item: e.text("item"), part: part(&mut e), piece: piece(&mut e, "delta")? },
        "refusal" => {
            Event::Refusal { choice, item: e.text("item"), part: part(&mut e), piece: piece(&mut e, "delta")? }
        }
        "reasoning" => Event::Reasoning {
            choice,
            item: e.text("item"),
            kind: e.text("kind").and_then(|k| ReasoningKind::from_word(&k)).unwrap_or(ReasoningKind::Raw),
            part: part(&mut e),
            piece: piece(&mut e, "delta"),
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
            kind: e.text("kind").and_then(|k| CallKind::from_word(&k)),
            piece: piece(&mut e, "arguments"),
        },
        "batch" => {
            let ids = e.take("ids").unwrap_or_default();
            let ids = ids.as_list().unwrap_or(&[]).iter().filter_map(|i| i.as_str().map(str::to_owned)).collect();
            Event::Batch { choice, ids }
        }
        "close" => Event::Close { choice, item: e.text("item"), key: e.text("key") },
        "usage" => {
            let merge = e.text("merge").and_then(|m| Merge::from_word(&m)).unwrap_or(Merge::Replace);
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
            let reason = e.text("reason").and_then(|r| Finish::from_word(&r))?;
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
            Event::Fault { fault, last: e.take("final").and_then(|f| f.as_bool()).unwrap_or(true) }
        }
        "end" => Event::End,
        _ => return None,
    })
}

fn part(e: &mut Emission) -> Option<usize> {
    e.take("part").and_then(|p| p.as_u64()).map(|p| p as usize)
}

fn piece(e: &mut Emission, delta: &str) -> Option<Piece> {
    match e.take(delta) {
        Some(Tree::Torn(torn)) => Some(Piece::Torn(*torn)),
        Some(text) => scalar_text(&text).map(Piece::Delta),
        None => e.text("whole").map(Piece::Whole),
    }
}
