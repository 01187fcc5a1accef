//! A dialect's `order:`: one regular expression per scope. Every moment with frames must occur in one of them.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{MomentKind, Scope};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::Node;
use crate::order::{Automaton, OrderError, Orders};

/// `framed`: the moments with frames, with their spans.
pub fn parse(node: &Node, framed: &[(MomentKind, Span)], cx: LoadContext) -> Orders {
    let Some(fields) = FieldReader::of(node, "`order:`", cx) else { return Orders::default() };
    let mut valid = true;
    let mut scope = |scope: Scope| {
        let node = fields.get(scope.name())?;
        let text = text_of(node, cx)?;
        match Automaton::parse(text) {
            Ok(automaton) => Some(automaton),
            Err(OrderError::UnknownMoment(word)) => {
                let at = cx.sources.within(node.span, &word);
                report_unknown_moment(&word, at, cx);
                valid = false;
                None
            }
            Err(OrderError::Syntax { at, why }) => {
                let message = format!("invalid order: {why}");
                let written = cx.sources.within(node.span, text);
                let exact = (written.end - written.start) as usize == text.len() && at < text.len();
                let start = written.start as usize + at;
                let span = if exact { Span::new(written.file, start, start + 1) } else { node.span };
                cx.add(
                    Diagnostic::new(Code::BadOrder, span, message)
                        .help("moments, `( … )`, `|`, `*`, `+`, `?`: `turn.open choice.open* turn.close`"),
                );
                valid = false;
                None
            }
        }
    };
    let orders = Orders { turn: scope(Scope::Turn), choice: scope(Scope::Choice), item: scope(Scope::Item) };
    // A moment that seems to be missing may be listed under a misspelled scope.
    valid &= fields.unread().is_empty();
    fields.finish();
    for (moment, span) in framed {
        let is_ordered = Scope::ALL.iter().any(|s| orders.of(*s).is_some_and(|a| a.mentions(*moment)));
        if valid && !is_ordered && *moment != MomentKind::TurnFail {
            let message = format!("`{}` has frames but does not occur in `order:`", moment.name());
            cx.add(
                Diagnostic::new(Code::BadOrder, *span, message)
                    .help("add it to the expression of its scope: turn, choice or item"),
            );
        }
    }
    orders
}

/// The other keys of `stream:`.
const STREAM_KEYS: &[&str] = &["framing", "schema", "base", "order"];

/// Reports an unknown moment. If it is a key of `stream:`, it is indented one level too deep.
pub fn report_unknown_moment(word: &str, span: Span, cx: LoadContext) {
    let message = format!("unknown moment `{word}`");
    if STREAM_KEYS.contains(&word) {
        cx.add(
            Diagnostic::new(Code::UnknownMoment, span, message)
                .label("indented one level too deep")
                .help(format!("`{word}:` is a key of `stream:`, next to `frames:` and not below it")),
        );
        return;
    }
    cx.unknown(Code::UnknownMoment, span, message, word, MomentKind::NAMES.iter().copied());
}
