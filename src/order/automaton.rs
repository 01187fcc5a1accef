//! `order:` expressions: regular expressions over moments, one per scope, compiled to an automaton. The check of a live
//! stream keeps one automaton state per open scope.

use crate::domain::{Moment, MomentKind, Scope};

/// A position (Glushkov) automaton: one bit for each moment in the expression. A state is a set of positions.
#[derive(Clone, Debug)]
pub struct Automaton {
    symbols: Vec<MomentKind>,
    first: u128,
    last: u128,
    follow: Vec<u128>,
    nullable: bool,
}

/// Why an order expression cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    UnknownMoment(String),
    /// `at`: the byte offset of the error in the expression.
    Syntax {
        at: usize,
        why: String,
    },
}

/// The orders of a dialect. Moments that an expression does not mention are not constrained by it.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    pub turn: Option<Automaton>,
    pub choice: Option<Automaton>,
    pub item: Option<Automaton>,
}

const MAX_POSITIONS: usize = 128;
/// The parser is recursive: without a limit, an expression could exhaust the stack.
const MAX_NESTING: usize = 32;

/// A parsed subexpression: its first and last positions, and whether it matches the empty sequence.
struct SubExpression {
    first: u128,
    last: u128,
    nullable: bool,
}

struct Parser<'t> {
    tokens: Vec<(usize, &'t str)>,
    end: usize,
    at: usize,
    /// The number of open parentheses.
    nesting: usize,
    symbols: Vec<MomentKind>,
    follow: Vec<u128>,
}

impl Automaton {
    pub fn parse(text: &str) -> Result<Automaton, OrderError> {
        let mut parser = Parser {
            tokens: tokens(text),
            end: text.len(),
            at: 0,
            nesting: 0,
            symbols: Vec::new(),
            follow: Vec::new(),
        };
        let expression = parser.alternatives()?;
        match parser.tokens.get(parser.at) {
            None => Ok(Automaton {
                symbols: parser.symbols,
                first: expression.first,
                last: expression.last,
                follow: parser.follow,
                nullable: expression.nullable,
            }),
            Some((at, extra)) => {
                Err(OrderError::Syntax { at: *at, why: format!("this `{extra}` has no matching `(`") })
            }
        }
    }

    pub fn mentions(&self, moment: MomentKind) -> bool {
        self.symbols.contains(&moment)
    }

    /// The state after `moment`; 0 if the moment is not allowed here. `None` is the start state.
    pub(super) fn step(&self, state: Option<u128>, moment: MomentKind) -> u128 {
        let reachable = match state {
            None => self.first,
            Some(state) => bits(state).fold(0, |reachable, p| reachable | self.follow.get(p).copied().unwrap_or(0)),
        };
        bits(reachable).filter(|p| self.symbols.get(*p) == Some(&moment)).fold(0, |next, p| next | 1 << p)
    }

    pub(super) fn accepts(&self, state: Option<u128>) -> bool {
        state.map_or(self.nullable, |s| s & self.last != 0)
    }
}

fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let bit = set.trailing_zeros() as usize;
            set &= set - 1;
            bit
        })
    })
}

fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '(' | ')' | '|' | '*' | '?' | '+' => 1,
            _ => rest.find(|c: char| c.is_whitespace() || "()|*?+".contains(c)).unwrap_or(rest.len()),
        };
        tokens.push((text.len() - rest.len(), &rest[..length]));
        rest = rest[length..].trim_start();
    }
    tokens
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t str> {
        self.tokens.get(self.at).map(|(_, token)| *token)
    }

    fn alternatives(&mut self) -> Result<SubExpression, OrderError> {
        let mut expression = self.sequence()?;
        while self.peek() == Some("|") {
            self.at += 1;
            let other = self.sequence()?;
            expression.first |= other.first;
            expression.last |= other.last;
            expression.nullable |= other.nullable;
        }
        Ok(expression)
    }

    fn sequence(&mut self) -> Result<SubExpression, OrderError> {
        let mut expression = SubExpression { first: 0, last: 0, nullable: true };
        while let Some(token) = self.peek() {
            if matches!(token, "|" | ")") {
                break;
            }
            let next = self.repeated()?;
            for p in bits(expression.last) {
                self.follow[p] |= next.first;
            }
            if expression.nullable {
                expression.first |= next.first;
            }
            expression.last = if next.nullable { expression.last | next.last } else { next.last };
            expression.nullable &= next.nullable;
        }
        Ok(expression)
    }

    fn repeated(&mut self) -> Result<SubExpression, OrderError> {
        let mut expression = self.atom()?;
        while let Some(sign @ ("*" | "?" | "+")) = self.peek() {
            self.at += 1;
            if sign != "?" {
                for p in bits(expression.last) {
                    self.follow[p] |= expression.first;
                }
            }
            expression.nullable |= sign != "+";
        }
        Ok(expression)
    }

    fn atom(&mut self) -> Result<SubExpression, OrderError> {
        let syntax_error = |at: usize, why: String| OrderError::Syntax { at, why };
        let here = self.tokens.get(self.at).map_or(self.end, |(at, _)| *at);
        let token = self.peek().ok_or_else(|| syntax_error(here, "a moment or `(` is missing at the end".into()))?;
        self.at += 1;
        if token == "(" {
            if self.nesting == MAX_NESTING {
                return Err(syntax_error(here, format!("parentheses can be nested at most {MAX_NESTING} levels deep")));
            }
            self.nesting += 1;
            let inner = self.alternatives()?;
            self.nesting -= 1;
            if self.peek() != Some(")") {
                return Err(syntax_error(here, "this `(` is not closed".into()));
            }
            self.at += 1;
            return Ok(inner);
        }
        if "|*?+)".contains(token) {
            return Err(syntax_error(here, format!("this `{token}` has no operand before it")));
        }
        let moment = MomentKind::from_name(token).ok_or_else(|| OrderError::UnknownMoment(token.to_owned()))?;
        if self.symbols.len() == MAX_POSITIONS {
            return Err(syntax_error(here, format!("an order can contain at most {MAX_POSITIONS} moments")));
        }
        let bit = 1 << self.symbols.len();
        self.symbols.push(moment);
        self.follow.push(0);
        Ok(SubExpression { first: bit, last: bit, nullable: false })
    }
}

impl Orders {
    pub fn of(&self, scope: Scope) -> Option<&Automaton> {
        match scope {
            Scope::Turn => self.turn.as_ref(),
            Scope::Choice => self.choice.as_ref(),
            Scope::Item => self.item.as_ref(),
        }
    }
}

/// The order check of one live stream.
#[derive(Clone, Debug, Default)]
pub struct OrderCheck {
    turn: Option<u128>,
    choices: Vec<Option<u128>>,
    items: Vec<Option<u128>>,
}

/// A moment that the order does not allow at this point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderViolation {
    pub scope: Scope,
    pub moment: MomentKind,
}

impl OrderCheck {
    /// Checks one moment in all its scopes. `turn.fail` and `idle` are allowed anywhere, so they are not checked.
    pub fn advance(&mut self, orders: &Orders, moment: &Moment) -> Result<(), OrderViolation> {
        if matches!(moment.kind, MomentKind::TurnFail | MomentKind::Idle) {
            return Ok(());
        }
        self.step_scope(orders, Scope::Turn, Some(0), moment.kind)?;
        self.step_scope(orders, Scope::Choice, moment.choice, moment.kind)?;
        self.step_scope(orders, Scope::Item, moment.item, moment.kind)
    }

    fn step_scope(
        &mut self,
        orders: &Orders,
        scope: Scope,
        index: Option<usize>,
        kind: MomentKind,
    ) -> Result<(), OrderViolation> {
        let (Some(automaton), Some(index)) = (orders.of(scope), index) else { return Ok(()) };
        if !automaton.mentions(kind) {
            return Ok(());
        }
        let state = match scope {
            Scope::Turn => &mut self.turn,
            Scope::Choice => slot(&mut self.choices, index),
            Scope::Item => slot(&mut self.items, index),
        };
        let next = automaton.step(*state, kind);
        if next == 0 {
            return Err(OrderViolation { scope, moment: kind });
        }
        *state = Some(next);
        Ok(())
    }
}

fn slot(states: &mut Vec<Option<u128>>, index: usize) -> &mut Option<u128> {
    if states.len() <= index {
        states.resize(index + 1, None);
    }
    &mut states[index]
}
