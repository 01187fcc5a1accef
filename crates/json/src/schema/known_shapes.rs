//! Shapes of documents that were valid: another document of the same shape need not be validated.
//!
//! The shape of a document is all that its validity can depend on: the types of its values, the names of all members in
//! their order, the lengths of lists, and what the schema looks at of the values ([`ValueReads`]).

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use jsonschema::json::{Array, Node, Object};

use super::node::JsonNode;
use super::value_reads::{Read, ValueReads};

/// The shapes that one schema accepted last, as hashes with a key that nobody knows: the bodies and frames of a gateway
/// have few shapes, but clients decide about some of them.
#[derive(Default)]
pub(super) struct KnownShapes {
    key: RandomState,
    /// Each hash has one place; 0: empty.
    hashes: [AtomicU64; PLACES],
}

const PLACES: usize = 16;

impl KnownShapes {
    /// Whether the document is valid. It is validated unless its shape is known.
    pub fn accept(&self, document: JsonNode, reads: &ValueReads, is_valid: impl FnOnce() -> bool) -> bool {
        if reads.reads_all() {
            return is_valid();
        }
        let mut shape = Shape { hasher: self.key.build_hasher(), reads };
        shape.add(document, None);
        let hash = shape.hasher.finish().max(1);
        let place = &self.hashes[hash as usize % PLACES];
        if place.load(Ordering::Relaxed) == hash {
            return true;
        }
        let is_valid = is_valid();
        if is_valid {
            place.store(hash, Ordering::Relaxed);
        }
        is_valid
    }
}

/// A shape as what is hashed. Different shapes are different texts: each value begins with a letter for its type, and
/// what has a length begins with it.
struct Shape<'r, H> {
    hasher: H,
    reads: &'r ValueReads,
}

impl<H: Hasher> Shape<'_, H> {
    /// `read`: what the schema reads of the value.
    fn add(&mut self, node: JsonNode, read: Option<Read>) {
        if let Some(text) = node.as_string() {
            match read {
                None => self.letter(b's', 0),
                Some(Read::Presence) => self.letter(b'e', usize::from(text.is_empty())),
                Some(Read::Scalar | Read::All) => self.text(b'"', &text),
            }
        } else if node.is_null() {
            self.letter(b'n', 0);
        } else if let Some(object) = node.as_object() {
            self.letter(b'{', object.len());
            for (name, member) in object.members() {
                self.text(b':', name);
                let read = if read == Some(Read::All) { read } else { self.reads.of_member(name) };
                self.add(member, read);
            }
        } else if let Some(array) = node.as_array() {
            self.letter(b'[', array.len());
            // What is read of the list itself is read of nothing in it.
            let read = read.filter(|read| *read == Read::All);
            array.elements().for_each(|element| self.add(element, read));
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
}
