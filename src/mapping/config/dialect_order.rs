//! A dialect's `order:`: one regular expression per scope. Every moment with frames must occur in one of them.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{MomentKind, Scope};
use crate::mapping::grammar::notation::notation_schema;
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::Node;
use crate::order::{Automaton, OrderError, Orders};
use schemars::json_schema;

section! {
    /// A regular expression over moments for each scope.
    #[subject = "`order:`"]
    #[title = "order"]
    pub struct OrderSection {
        /// The moments of the turn.
        turn: Option<ScopeOrder>,
        /// The moments of a choice.
        choice: Option<ScopeOrder>,
        /// The moments of an item.
        item: Option<ScopeOrder>,
    }
}

/// The order of one scope. `None`: it has a mistake, which was reported.
#[derive(Clone, Debug)]
pub struct ScopeOrder(Option<Automaton>);

impl<'n> FromNode<'n> for ScopeOrder {
    fn from_node(node: &'n Node, at: At) -> Option<ScopeOrder> {
        let (cx, text) = (at.cx, text_of(node, at.cx)?);
        let automaton = match Automaton::parse(text) {
            Ok(automaton) => Some(automaton),
            Err(OrderError::UnknownMoment(word)) => {
                report_unknown_moment(&word, cx.sources.within(node.span, &word), cx);
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
                None
            }
        };
        Some(ScopeOrder(automaton))
    }
}

// Checks the tokens only; the loader checks that they form an expression.
notation_schema!(ScopeOrder, |_generator| {
    let moments = MomentKind::NAMES.join("|").replace('.', "\\.");
    let pattern = format!("^[\\s()|*+?]*(({moments})([\\s()|*+?]+|$))*$");
    json_schema!({ "title": "moments, `( )`, `|`, `*`, `+`, `?`", "type": "string", "pattern": pattern })
});

/// `framed`: the moments with frames, with their spans.
pub fn compile(section: OrderSection, framed: &[(MomentKind, Span)], cx: LoadContext) -> Orders {
    let scopes = [&section.turn, &section.choice, &section.item];
    let valid = !scopes.into_iter().flatten().any(|scope| scope.0.is_none());
    let automaton = |scope: Option<ScopeOrder>| scope.and_then(|scope| scope.0);
    let orders =
        Orders { turn: automaton(section.turn), choice: automaton(section.choice), item: automaton(section.item) };
    for (moment, span) in framed {
        let is_ordered = Scope::ALL.iter().any(|s| orders.of(*s).is_some_and(|a| a.mentions(*moment)));
        let is_anywhere = matches!(moment, MomentKind::TurnFail | MomentKind::Idle);
        if valid && !is_ordered && !is_anywhere {
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
