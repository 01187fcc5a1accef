//! The JSON parser: strict RFC 8259, UTF-8 checked once, all limits enforced.

mod number;
mod shape;
mod string;

pub use shape::{Gap, Shape, ShapeStep};

use crate::members::{FIRST_CAPACITY, Members};
use crate::{Limits, ParseError, ParseErrorKind, Tree};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(crate) fn parse(input: &[u8], limits: &Limits) -> Result<Tree, ParseError> {
    let bytes = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
    let skipped = input.len() - bytes.len();
    if input.len() > limits.max_bytes {
        let reason = (ParseErrorKind::TooLong, "the text exceeds the maximum length");
        return Err(ParseError::locate(b"", 0, 0, reason));
    }
    let not_utf8 = (ParseErrorKind::Syntax, "the text is not UTF-8");
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ParseError::locate(bytes, error.valid_up_to(), skipped, not_utf8))?;
    Parser::new(text, limits).document().map_err(|error| ParseError::locate(bytes, error.at, skipped, error.reason))
}

/// Boxed, because results of every value are returned by value and errors are rare.
type Parsed<T> = Result<T, Box<ErrorAt>>;

/// An error without line and column, which only the outermost caller computes.
struct ErrorAt {
    at: usize,
    reason: (ParseErrorKind, &'static str),
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth_left: usize,
    nodes_left: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, limits: &Limits) -> Self {
        Parser {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth_left: limits.max_depth.min(Limits::DEEPEST),
            nodes_left: limits.max_nodes,
        }
    }

    fn document(mut self) -> Parsed<Tree> {
        self.skip_space();
        let tree = self.value()?;
        self.skip_space();
        match self.peek() {
            Some(_) => Err(self.syntax_error("expected the end of the text")),
            None => Ok(tree),
        }
    }

    /// Expects the position at the first byte of the value, after any whitespace.
    fn value(&mut self) -> Parsed<Tree> {
        self.nodes_left = self
            .nodes_left
            .checked_sub(1)
            .ok_or_else(|| self.error(ParseErrorKind::TooManyValues, "too many values"))?;
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.nested(Self::map),
            Some(b'[') => self.nested(Self::list),
            Some(b'-' | b'0'..=b'9') => self.number().map(Tree::Num),
            Some(b't') => self.literal("true", Tree::Bool(true)),
            Some(b'f') => self.literal("false", Tree::Bool(false)),
            Some(b'n') => self.literal("null", Tree::Null),
            Some(_) | None => Err(self.syntax_error("expected a value")),
        }
    }

    #[inline]
    fn enter(&mut self) -> Parsed<()> {
        self.depth_left =
            self.depth_left.checked_sub(1).ok_or_else(|| self.error(ParseErrorKind::TooDeep, "nested too deeply"))?;
        Ok(())
    }

    #[inline]
    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Parsed<Tree>) -> Parsed<Tree> {
        self.enter()?;
        self.at += 1;
        self.skip_space();
        let tree = inside(self)?;
        self.depth_left += 1;
        Ok(tree)
    }

    fn list(&mut self) -> Parsed<Tree> {
        if self.take(b']') {
            return Ok(Tree::List(Vec::new()));
        }
        let mut items = Vec::with_capacity(FIRST_CAPACITY);
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Tree::List(items));
            }
            self.expect(b',', "expected `,` or `]`")?;
            self.skip_space();
        }
    }

    fn map(&mut self) -> Parsed<Tree> {
        let mut members = Members::default();
        if self.take(b'}') {
            return Ok(Tree::Map(members.into_entries()));
        }
        loop {
            self.is_at_quote()?;
            let key = self.key()?;
            self.skip_space();
            self.expect(b':', "expected `:`")?;
            self.skip_space();
            let value = self.value()?;
            members.put(key, value);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Tree::Map(members.into_entries()));
            }
            self.expect(b',', "expected `,` or `}`")?;
            self.skip_space();
        }
    }

    fn is_at_quote(&self) -> Parsed<()> {
        if self.peek() == Some(b'"') { Ok(()) } else { Err(self.syntax_error("expected a key in quotes")) }
    }

    fn literal(&mut self, literal: &str, tree: Tree) -> Parsed<Tree> {
        if !self.bytes[self.at..].starts_with(literal.as_bytes()) {
            return Err(self.syntax_error("expected a value"));
        }
        self.at += literal.len();
        Ok(tree)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn expect(&mut self, byte: u8, message: &'static str) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err(self.syntax_error(message)) }
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn syntax_error(&self, message: &'static str) -> Box<ErrorAt> {
        self.error(ParseErrorKind::Syntax, message)
    }

    fn error(&self, kind: ParseErrorKind, message: &'static str) -> Box<ErrorAt> {
        Box::new(ErrorAt { at: self.at, reason: (kind, message) })
    }
}
