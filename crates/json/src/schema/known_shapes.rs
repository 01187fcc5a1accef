//! Shapes of documents that were valid: another document of the same shape need not be validated.
//!
//! The shape of a document is all that its validity can depend on: the types of its values, the names of all members in
//! their order, the lengths of lists, and what the schema looks at of the values ([`ValueReads`]).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::SharedSeed;
use foldhash::quality::{FoldHasher, SeedableRandomState};
use jsonschema::json::{Array, Node, Object};

use super::node::JsonNode;
use super::value_reads::{Read, ValueReads};
use crate::{Draft, Tree};

/// The shapes that one schema accepted last, as hashes with a key that nobody knows: the bodies and frames of a gateway
/// have few shapes, but clients decide about some of them.
pub(super) struct KnownShapes {
    key: SeedableRandomState,
    /// Each hash has one place; 0: empty.
    hashes: [AtomicU64; PLACES],
}

const PLACES: usize = 16;

impl Default for KnownShapes {
    fn default() -> Self {
        // The key of the standard library is random; that of the faster hash alone is only hard to know.
        let secret = RandomState::new().build_hasher().finish();
        let key = SeedableRandomState::with_seed(secret, SharedSeed::global_random());
        KnownShapes { key, hashes: Default::default() }
    }
}

impl KnownShapes {
    /// Whether the document is valid. It is validated unless its shape is known.
    pub fn accept(&self, document: JsonNode, reads: &ValueReads, is_valid: impl FnOnce() -> bool) -> bool {
        let Some(mut shape) = self.shape(reads) else { return is_valid() };
        shape.add_node(document);
        if self.contains(&shape) {
            return true;
        }
        let is_valid = is_valid();
        if is_valid {
            let hash = shape.hash();
            self.place(hash).store(hash, Ordering::Relaxed);
        }
        is_valid
    }

    /// The shape of a document that is still empty; `None` if validity may depend on everything.
    pub fn shape<'s>(&'s self, reads: &'s ValueReads) -> Option<DocumentShape<'s>> {
        let shape = || DocumentShape { hasher: self.key.build_hasher(), reads, next: None, inside: None };
        (!reads.reads_all()).then(shape)
    }

    pub fn contains(&self, shape: &DocumentShape) -> bool {
        let hash = shape.hash();
        self.place(hash).load(Ordering::Relaxed) == hash
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.hashes[hash as usize % PLACES]
    }
}

/// The shape of a document for one schema, from the values of the document in their order. What is hashed is different
/// for different shapes: each value begins with a letter for its type, and each text with its length.
pub struct DocumentShape<'s> {
    hasher: FoldHasher<'s>,
    reads: &'s ValueReads,
    /// What the schema reads of the next value.
    next: Option<Read>,
    /// What it reads of all values in the current list or map.
    inside: Option<Read>,
}

/// The list or map around another one.
pub struct OuterShape(Option<Read>);

impl DocumentShape<'_> {
    /// Adds a value that is complete.
    pub fn add(&mut self, value: &Draft) {
        self.add_node(JsonNode::from(value));
    }

    /// The next values are the elements of a list.
    pub fn begin_list(&mut self) -> OuterShape {
        self.begin(b'[')
    }

    /// The next values are the members of a map, each after its key.
    pub fn begin_map(&mut self) -> OuterShape {
        self.begin(b'{')
    }

    /// The name of the next value.
    pub fn key(&mut self, name: &str) {
        self.text(b':', name);
        self.next = self.inside.or_else(|| self.reads.of_member(name));
    }

    /// Ends the list or map that has begun last.
    pub fn end(&mut self, outer: OuterShape) {
        self.letter(b'.', 0);
        self.inside = outer.0;
        self.next = outer.0;
    }

    fn begin(&mut self, letter: u8) -> OuterShape {
        self.letter(letter, 0);
        let outer = OuterShape(self.inside);
        // What is read of a list or a map itself is read of nothing in it.
        self.inside = self.next.filter(|read| *read == Read::All);
        self.next = self.inside;
        outer
    }

    fn add_node(&mut self, node: JsonNode) {
        let read = self.next;
        if let (JsonNode::Tree(tree @ Tree::SurrogateString(_)), Some(Read::Scalar | Read::All)) = (node, read) {
            // Its text has replacement characters.
            self.text(b'~', &tree.to_json());
        } else if let Some(text) = node.as_string() {
            match read {
                None => self.letter(b's', 0),
                Some(Read::Presence) => self.letter(b'e', usize::from(text.is_empty())),
                Some(Read::Scalar | Read::All) => self.text(b'"', &text),
            }
        } else if node.is_null() {
            self.letter(b'n', 0);
        } else if let Some(object) = node.as_object() {
            let outer = self.begin_map();
            for (name, member) in object.members() {
                self.key(name);
                self.add_node(member);
            }
            self.end(outer);
        } else if let Some(array) = node.as_array() {
            let outer = self.begin_list();
            array.elements().for_each(|element| self.add_node(element));
            self.end(outer);
        } else if let Some(bool) = node.as_boolean() {
            self.letter(b'b', usize::from(bool && read.is_some()));
        } else if let Some(num) = node.as_number() {
            // Any count is as good as another one.
            match read.filter(|read| *read != Read::Presence) {
                None if num.as_u64().is_some() => self.letter(b'u', 0),
                _ => self.text(b'#', &num.to_string()),
            }
        }
    }

    fn letter(&mut self, letter: u8, length: usize) {
        self.hasher.write_u64(u64::from(letter) | (length as u64) << 8);
    }

    fn text(&mut self, letter: u8, text: &str) {
        self.letter(letter, text.len());
        self.hasher.write(text.as_bytes());
    }

    fn hash(&self) -> u64 {
        self.hasher.finish().max(1)
    }
}
