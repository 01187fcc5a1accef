//! `order:` in a dialect: one expression per scope, and every framed moment in one of them.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{MomentKind, Scope};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::Node;
use crate::order::{Automaton, OrderError, Orders};

/// `framed`: the moments that have frames, with the place where they are written.
pub fn parse(node: &Node, framed: &[(MomentKind, Span)], cx: Cx) -> Orders {
    let Some(fields) = Fields::of(node, "`order:`", cx) else { return Orders::default() };
    let mut sound = true;
    let mut scope = |scope: Scope| {
        let node = fields.get(scope.word())?;
        let text = text_of(node, cx)?;
        match Automaton::parse(text) {
            Ok(automaton) => Some(automaton),
            Err(OrderError::UnknownMoment(word)) => {
                let at = cx.sources.within(node.span, &word);
                no_moment(&word, at, cx);
                sound = false;
                None
            }
            Err(OrderError::Syntax { at, why }) => {
                let message = format!("this order cannot be read: {why}");
                let written = cx.sources.within(node.span, text);
                let exact = (written.end - written.start) as usize == text.len() && at < text.len();
                let start = written.start as usize + at;
                let span = if exact { Span::new(written.file, start, start + 1) } else { node.span };
                cx.add(
                    Diagnostic::new(Code::BadOrder, span, message)
                        .help("moments, `( … )`, `|`, `*`, `+`, `?`: `turn.open choice.open* turn.close`"),
                );
                sound = false;
                None
            }
        }
    };
    let orders = Orders { turn: scope(Scope::Turn), choice: scope(Scope::Choice), item: scope(Scope::Item) };
    // What stands under an unknown scope may well be what is missed below.
    sound &= fields.rest().is_empty();
    fields.done();
    for (moment, span) in framed {
        let told = Scope::ALL.iter().any(|s| orders.of(*s).is_some_and(|a| a.mentions(*moment)));
        if sound && !told && *moment != MomentKind::TurnFail {
            let message = format!("`{}` has frames but no place in `order:`", moment.word());
            cx.add(
                Diagnostic::new(Code::BadOrder, *span, message)
                    .help("name it in the expression of its scope: turn, choice or item"),
            );
        }
    }
    orders
}

/// The keys that stand beside `frames:`.
const BESIDE: &[&str] = &["framing", "schema", "base", "order"];

/// Says that no moment has this name. A key of `stream:` below `frames:` is right, and stands too deep.
pub fn no_moment(word: &str, span: Span, cx: Cx) {
    let message = format!("no moment is called `{word}`");
    if BESIDE.contains(&word) {
        cx.add(
            Diagnostic::new(Code::UnknownMoment, span, message)
                .label("this stands one level too deep")
                .help(format!("`{word}:` is a key of `stream:`, beside `frames:` and not below it")),
        );
        return;
    }
    cx.unknown(Code::UnknownMoment, span, message, word, MomentKind::WORDS.iter().copied());
}
