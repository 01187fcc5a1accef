//! `order:` is a regular expression over moments, one per scope. The live check keeps one small state per open scope.

use crate::domain::{Moment, MomentKind, Scope};

/// A position automaton: one bit for each moment written in the expression.
#[derive(Clone, Debug)]
pub struct Automaton {
    symbols: Vec<MomentKind>,
    first: u128,
    last: u128,
    follow: Vec<u128>,
    nullable: bool,
}

/// Why an expression is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    UnknownMoment(String),
    /// `at`: the byte of the expression where it goes wrong.
    Syntax {
        at: usize,
        why: String,
    },
}

/// The orders of a dialect. What no expression mentions is not constrained.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    pub turn: Option<Automaton>,
    pub choice: Option<Automaton>,
    pub item: Option<Automaton>,
}

const MAX_POSITIONS: usize = 128;

/// A piece of an expression while it is being read.
struct Piece {
    first: u128,
    last: u128,
    nullable: bool,
}

struct Parser<'t> {
    tokens: Vec<(usize, &'t str)>,
    end: usize,
    at: usize,
    symbols: Vec<MomentKind>,
    follow: Vec<u128>,
}

impl Automaton {
    pub fn parse(text: &str) -> Result<Automaton, OrderError> {
        let mut parser =
            Parser { tokens: tokens(text), end: text.len(), at: 0, symbols: Vec::new(), follow: Vec::new() };
        let whole = parser.alternatives()?;
        match parser.tokens.get(parser.at) {
            None => Ok(Automaton {
                symbols: parser.symbols,
                first: whole.first,
                last: whole.last,
                follow: parser.follow,
                nullable: whole.nullable,
            }),
            Some((at, extra)) => Err(OrderError::Syntax { at: *at, why: format!("this `{extra}` closes nothing") }),
        }
    }

    pub fn mentions(&self, moment: MomentKind) -> bool {
        self.symbols.contains(&moment)
    }

    pub(super) fn step(&self, state: Option<u128>, moment: MomentKind) -> u128 {
        let reach = match state {
            None => self.first,
            Some(state) => bits(state).fold(0, |reach, p| reach | self.follow.get(p).copied().unwrap_or(0)),
        };
        bits(reach).filter(|p| self.symbols.get(*p) == Some(&moment)).fold(0, |next, p| next | 1 << p)
    }

    pub(super) fn may_end(&self, state: Option<u128>) -> bool {
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

    fn alternatives(&mut self) -> Result<Piece, OrderError> {
        let mut whole = self.sequence()?;
        while self.peek() == Some("|") {
            self.at += 1;
            let other = self.sequence()?;
            whole.first |= other.first;
            whole.last |= other.last;
            whole.nullable |= other.nullable;
        }
        Ok(whole)
    }

    fn sequence(&mut self) -> Result<Piece, OrderError> {
        let mut whole = Piece { first: 0, last: 0, nullable: true };
        while let Some(token) = self.peek() {
            if matches!(token, "|" | ")") {
                break;
            }
            let next = self.repeated()?;
            for p in bits(whole.last) {
                self.follow[p] |= next.first;
            }
            if whole.nullable {
                whole.first |= next.first;
            }
            whole.last = if next.nullable { whole.last | next.last } else { next.last };
            whole.nullable &= next.nullable;
        }
        Ok(whole)
    }

    fn repeated(&mut self) -> Result<Piece, OrderError> {
        let mut piece = self.atom()?;
        while let Some(sign @ ("*" | "?" | "+")) = self.peek() {
            self.at += 1;
            if sign != "?" {
                for p in bits(piece.last) {
                    self.follow[p] |= piece.first;
                }
            }
            piece.nullable |= sign != "+";
        }
        Ok(piece)
    }

    fn atom(&mut self) -> Result<Piece, OrderError> {
        let wrong = |at: usize, why: String| OrderError::Syntax { at, why };
        let here = self.tokens.get(self.at).map_or(self.end, |(at, _)| *at);
        let token = self.peek().ok_or_else(|| wrong(here, "something is missing at the end".into()))?;
        self.at += 1;
        if token == "(" {
            let inner = self.alternatives()?;
            if self.peek() != Some(")") {
                return Err(wrong(here, "this `(` is not closed".into()));
            }
            self.at += 1;
            return Ok(inner);
        }
        if "|*?+)".contains(token) {
            return Err(wrong(here, format!("this `{token}` has nothing before it")));
        }
        let moment = MomentKind::from_word(token).ok_or_else(|| OrderError::UnknownMoment(token.to_owned()))?;
        if self.symbols.len() == MAX_POSITIONS {
            return Err(wrong(here, format!("more than {MAX_POSITIONS} moments")));
        }
        let bit = 1 << self.symbols.len();
        self.symbols.push(moment);
        self.follow.push(0);
        Ok(Piece { first: bit, last: bit, nullable: false })
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

/// The live check of one stream.
#[derive(Clone, Debug, Default)]
pub struct OrderCheck {
    turn: Option<u128>,
    choices: Vec<Option<u128>>,
    items: Vec<Option<u128>>,
}

/// A moment that came out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    pub scope: Scope,
    pub moment: MomentKind,
}

impl OrderCheck {
    /// `turn.fail` is legal anywhere and ends the stream, so it is never asked about.
    pub fn see(&mut self, orders: &Orders, moment: &Moment) -> Result<(), OutOfOrder> {
        if moment.kind == MomentKind::TurnFail {
            return Ok(());
        }
        self.feed(orders, Scope::Turn, Some(0), moment.kind)?;
        self.feed(orders, Scope::Choice, moment.choice, moment.kind)?;
        self.feed(orders, Scope::Item, moment.item, moment.kind)
    }

    fn feed(
        &mut self,
        orders: &Orders,
        scope: Scope,
        which: Option<usize>,
        kind: MomentKind,
    ) -> Result<(), OutOfOrder> {
        let (Some(automaton), Some(which)) = (orders.of(scope), which) else { return Ok(()) };
        if !automaton.mentions(kind) {
            return Ok(());
        }
        let state = match scope {
            Scope::Turn => &mut self.turn,
            Scope::Choice => slot(&mut self.choices, which),
            Scope::Item => slot(&mut self.items, which),
        };
        let next = automaton.step(*state, kind);
        if next == 0 {
            return Err(OutOfOrder { scope, moment: kind });
        }
        *state = Some(next);
        Ok(())
    }
}

fn slot(states: &mut Vec<Option<u128>>, which: usize) -> &mut Option<u128> {
    if states.len() <= which {
        states.resize(which + 1, None);
    }
    &mut states[which]
}
