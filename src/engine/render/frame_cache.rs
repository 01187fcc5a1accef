//! Cached frames: a frame that was rendered once, kept as constant bytes with placeholders.
//!
//! The interpreter renders the frame with markers in place of the delta and the sequence number. Later frames with the
//! same cache key are the constant bytes with the new values between them. The schema checks the tree with the new
//! values, unless it looks only at their type: then one frame proves all.

use crate::domain::{Moment, Tree};
use reframe_json::{Schema, write_str};

pub struct CachedFrame {
    tree: Tree,
    /// A frame with these constants was valid, and the new values cannot make another one invalid.
    is_proven: bool,
    /// In the order of the bytes; `constants` has one element more.
    placeholders: Vec<Placeholder>,
    constants: Vec<Vec<u8>>,
    /// The event name, as the framing writes it.
    pub event: Option<String>,
}

/// The part of a turn for which the constants of a cached frame are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheKey {
    choice: Option<usize>,
    item: Option<usize>,
    part: Option<usize>,
}

impl CacheKey {
    pub fn of(moment: &Moment) -> CacheKey {
        CacheKey { choice: moment.choice, item: moment.item, part: moment.part }
    }
}

struct Placeholder {
    /// From the root of the tree: the position of the entry or element.
    path: Vec<usize>,
    /// The names of the members around it, its own last; `None` for an element of a list.
    members: Option<Vec<String>>,
    kind: PlaceholderKind,
}

#[derive(Clone, Copy)]
enum PlaceholderKind {
    Delta,
    /// The sequence number plus this offset.
    Sequence(u64),
}

/// Values that mark the delta and the sequence number. The text contains the turn's id, which a client does not know
/// before its stream starts, so no request can contain it.
#[derive(Clone, Debug)]
pub struct Markers {
    pub delta: String,
    pub seq: u64,
}

impl Markers {
    pub fn for_turn(turn: &str) -> Markers {
        Markers { delta: format!("\u{f8ff}{turn}\u{f8ff}"), seq: 7_000_000_000_000_000 }
    }

    fn find(&self, tree: &Tree) -> Option<PlaceholderKind> {
        match tree {
            Tree::Str(text) if *text == self.delta => Some(PlaceholderKind::Delta),
            Tree::Num(n) => {
                let offset = n.as_u64().and_then(|n| n.checked_sub(self.seq));
                offset.filter(|o| *o <= u64::from(u16::MAX)).map(PlaceholderKind::Sequence)
            }
            _ => None,
        }
    }
}

impl CachedFrame {
    /// `tree` was rendered with `markers`. `None`: the event name contains a marker, so the frame cannot be cached.
    pub fn new(tree: Tree, markers: &Markers, event: Option<String>) -> Option<CachedFrame> {
        if event.as_ref().is_some_and(|e| e.contains(&markers.delta)) {
            return None;
        }
        let (placeholders, constants) = (Vec::new(), vec![Vec::new()]);
        let mut cached = CachedFrame { tree: Tree::Null, is_proven: false, placeholders, constants, event };
        cached.split(&tree, markers, &mut Vec::new(), &mut Vec::new(), true);
        cached.tree = tree;
        Some(cached)
    }

    /// Writes the tree as constants, with a placeholder for each marker.
    fn split(
        &mut self,
        tree: &Tree,
        markers: &Markers,
        path: &mut Vec<usize>,
        members: &mut Vec<String>,
        is_element: bool,
    ) {
        if let Some(kind) = markers.find(tree) {
            let members = (!is_element).then(|| members.clone());
            self.placeholders.push(Placeholder { path: path.clone(), members, kind });
            self.constants.push(Vec::new());
            return;
        }
        match tree {
            Tree::Map(entries) => {
                self.append(b"{");
                for (at, (key, value)) in entries.iter().enumerate() {
                    self.append(if at > 0 { b"," } else { b"" });
                    write_str(key, self.last());
                    self.append(b":");
                    path.push(at);
                    members.push(key.to_string());
                    self.split(value, markers, path, members, false);
                    members.pop();
                    path.pop();
                }
                self.append(b"}");
            }
            Tree::List(items) => {
                self.append(b"[");
                for (at, item) in items.iter().enumerate() {
                    self.append(if at > 0 { b"," } else { b"" });
                    path.push(at);
                    self.split(item, markers, path, members, true);
                    path.pop();
                }
                self.append(b"]");
            }
            scalar => scalar.write(self.last()),
        }
    }

    fn last(&mut self) -> &mut Vec<u8> {
        if self.constants.is_empty() {
            self.constants.push(Vec::new());
        }
        let at = self.constants.len() - 1;
        &mut self.constants[at]
    }

    fn append(&mut self, bytes: &[u8]) {
        self.last().extend_from_slice(bytes);
    }

    /// Whether the frame is valid with this delta and this sequence number, which was not proven before.
    pub fn is_valid(&mut self, schema: &Schema, delta: &str, seq: u64) -> bool {
        if self.is_proven {
            return true;
        }
        if !schema.accepts(self.fill(delta, seq)) {
            return false;
        }
        let is_indifferent = |placeholder: &Placeholder| {
            let members = placeholder.members.as_ref().map(|members| members.iter().map(String::as_str));
            members.is_some_and(|members| !schema.reads_value_in(members))
        };
        self.is_proven = self.placeholders.iter().all(is_indifferent) && self.writes_its_tree(delta, seq);
        true
    }

    /// Whether the bytes that are sent are those of the tree that was validated.
    fn writes_its_tree(&mut self, delta: &str, seq: u64) -> bool {
        let (mut sent, mut validated) = (Vec::new(), Vec::new());
        self.write(delta, seq, &mut sent);
        self.fill(delta, seq).write(&mut validated);
        sent == validated
    }

    /// The frame as a tree, with this delta and this sequence number.
    pub fn fill(&mut self, delta: &str, seq: u64) -> &Tree {
        for placeholder in &self.placeholders {
            let Some(node) = node_at(&mut self.tree, &placeholder.path) else { continue };
            match (placeholder.kind, &mut *node) {
                (PlaceholderKind::Delta, Tree::Str(text)) => {
                    text.clear();
                    text.push_str(delta);
                }
                (PlaceholderKind::Delta, _) => *node = Tree::from(delta),
                (PlaceholderKind::Sequence(offset), _) => *node = Tree::from((seq + offset) as i64),
            }
        }
        &self.tree
    }

    /// The frame as bytes: the same as its tree, written.
    pub fn write(&self, delta: &str, seq: u64, out: &mut Vec<u8>) {
        for (constant, placeholder) in self.constants.iter().zip(self.placeholders.iter().map(Some).chain([None])) {
            out.extend_from_slice(constant);
            match placeholder.map(|p| p.kind) {
                Some(PlaceholderKind::Delta) => write_str(delta, out),
                Some(PlaceholderKind::Sequence(offset)) => Tree::from((seq + offset) as i64).write(out),
                None => {}
            }
        }
    }
}

fn node_at<'t>(tree: &'t mut Tree, path: &[usize]) -> Option<&'t mut Tree> {
    path.iter().try_fold(tree, |node, at| match node {
        Tree::Map(entries) => entries.get_mut(*at).map(|(_, value)| value),
        Tree::List(items) => items.get_mut(*at),
        _ => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../../tests/unit/engine_frame_cache.rs"]
mod tests;
