//! Finds the tags of inline blocks in text that may continue.

use super::Search;
use crate::domain::inline::BlockPosition;

/// Where the next block of a text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The tag of `block` is at this position, and `length` bytes long.
    Found {
        at: usize,
        block: usize,
        length: usize,
    },
    /// The text from this position on could become a tag.
    Possible {
        at: usize,
    },
    None,
}

/// Whether more text can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoreText {
    Possible,
    Ended,
}

impl Search {
    /// The first tag that opens a block; of several at one position, the longest. `start`: blocks that are allowed only
    /// at the start of a text can begin up to here.
    pub(super) fn opening(&self, text: &str, start: Option<usize>, more: MoreText) -> Opening {
        for (at, byte) in text.bytes().enumerate() {
            if !self.first_bytes.contains(&byte) {
                continue;
            }
            let rest = &text.as_bytes()[at..];
            let (mut found, mut longest_possible) = (None, 0);
            for (index, block) in self.blocks() {
                let open = block.open.as_bytes();
                if block.position == BlockPosition::Start && start.is_none_or(|start| at > start) {
                    continue;
                }
                if rest.starts_with(open) && found.is_none_or(|(_, length)| open.len() > length) {
                    found = Some((index, open.len()));
                } else if more == MoreText::Possible && open.len() > rest.len() && open.starts_with(rest) {
                    longest_possible = longest_possible.max(open.len());
                }
            }
            match found {
                Some((block, length)) if length >= longest_possible => return Opening::Found { at, block, length },
                _ if longest_possible > 0 => return Opening::Possible { at },
                _ => {}
            }
        }
        Opening::None
    }
}

/// The length of the longest end of `text` with which `tag` could begin.
pub(super) fn possible_tag(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len().saturating_sub(1));
    (1..=longest).rev().find(|length| tag.as_bytes().starts_with(&text.as_bytes()[text.len() - length..])).unwrap_or(0)
}

/// Finds the tag that closes a call, in text that arrives bit by bit. Every byte is looked at once.
#[derive(Debug, Default)]
pub(super) struct ClosingTag {
    /// No tag begins before this position.
    searched: usize,
    strings: JsonStrings,
}

impl ClosingTag {
    /// The position of the tag in the content of the block so far, at `max` or before it. `in_json`: a tag inside of a
    /// JSON string is content.
    pub fn find(&mut self, content: &str, tag: &str, in_json: bool, max: usize) -> Option<usize> {
        while let Some(found) = find_from(content, tag, self.searched) {
            if found > max {
                return None;
            }
            if in_json {
                self.strings.read(&content.as_bytes()[self.searched..found]);
            }
            self.searched = found;
            if !in_json || !self.strings.is_inside() {
                return Some(found);
            }
            self.strings.read(&content.as_bytes()[found..found + 1]);
            self.searched = found + 1;
        }
        let end = content.len().saturating_sub(tag.len() - 1).max(self.searched);
        if in_json {
            self.strings.read(&content.as_bytes()[self.searched..end]);
        }
        self.searched = end;
        None
    }
}

pub(super) fn find_from(text: &str, tag: &str, from: usize) -> Option<usize> {
    let (text, tag) = (text.as_bytes(), tag.as_bytes());
    let first = *tag.first()?;
    let mut at = from;
    while let Some(next) = text.get(at..)?.iter().position(|byte| *byte == first) {
        at += next;
        if text[at..].starts_with(tag) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Whether a position is inside of a JSON string. A line break ends one: JSON does not allow it there, so the JSON is
/// broken, and the rest of the text must not count as its content.
#[derive(Debug, Default)]
struct JsonStrings {
    inside: bool,
    escaped: bool,
}

impl JsonStrings {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.inside => self.escaped = true,
                b'"' => self.inside = !self.inside,
                b'\n' | b'\r' => self.inside = false,
                _ => {}
            }
        }
    }

    fn is_inside(&self) -> bool {
        self.inside
    }
}
