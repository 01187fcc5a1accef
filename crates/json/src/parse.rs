//! JSON text into a tree: strict RFC 8259, UTF-8 checked once, every limit counted.

mod number;
mod string;

use std::sync::Arc;

use crate::members::Members;
use crate::{Limits, ParseError, Tree};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(crate) fn parse(input: &[u8], limits: &Limits) -> Result<Tree, ParseError> {
    let bytes = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
    let skipped = input.len() - bytes.len();
    if input.len() > limits.max_bytes {
        let message = "the text is longer than allowed";
        return Err(ParseError::locate(b"", 0, 0, message));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ParseError::locate(bytes, error.valid_up_to(), skipped, "the text is not UTF-8"))?;
    Parser::new(text, limits).document().map_err(|stop| ParseError::locate(bytes, stop.at, skipped, stop.message))
}

/// An error before its line and column are counted, which only the outermost caller does.
struct Stop {
    at: usize,
    message: &'static str,
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

    fn document(mut self) -> Result<Tree, Stop> {
        self.skip_space();
        let tree = self.value()?;
        self.skip_space();
        match self.peek() {
            Some(_) => Err(self.stop("expected the end of the text")),
            None => Ok(tree),
        }
    }

    /// Stands on the first byte of the value, behind any whitespace.
    fn value(&mut self) -> Result<Tree, Stop> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or_else(|| self.stop("more values than allowed"))?;
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.nested(Self::map),
            Some(b'[') => self.nested(Self::list),
            Some(b'-' | b'0'..=b'9') => self.number().map(Tree::Num),
            Some(b't') => self.word("true", Tree::Bool(true)),
            Some(b'f') => self.word("false", Tree::Bool(false)),
            Some(b'n') => self.word("null", Tree::Null),
            Some(_) | None => Err(self.stop("expected a value")),
        }
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<Tree, Stop>) -> Result<Tree, Stop> {
        self.depth_left = self.depth_left.checked_sub(1).ok_or_else(|| self.stop("nested deeper than allowed"))?;
        self.at += 1;
        self.skip_space();
        let tree = inside(self)?;
        self.depth_left += 1;
        Ok(tree)
    }

    fn list(&mut self) -> Result<Tree, Stop> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Tree::List(items));
        }
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

    fn map(&mut self) -> Result<Tree, Stop> {
        let mut members = Members::default();
        if self.take(b'}') {
            return Ok(Tree::Map(members.into_entries()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.stop("expected a key in quotes"));
            }
            let key: Arc<str> = self.key()?;
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

    fn word(&mut self, word: &str, tree: Tree) -> Result<Tree, Stop> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.stop("expected a value"));
        }
        self.at += word.len();
        Ok(tree)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, message: &'static str) -> Result<(), Stop> {
        if self.take(byte) { Ok(()) } else { Err(self.stop(message)) }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn stop(&self, message: &'static str) -> Stop {
        Stop { at: self.at, message }
    }
}
