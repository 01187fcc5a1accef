//! Shapes of documents that were valid: another document of the same shape need not be validated.
//!
//! The shape of a document is all that its validity can depend on: the types of its values, the names of all members in
//! their order, the lengths of lists, and the values that the schema looks at ([`ValueReads`]).

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

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
/// A larger shape is no frame that occurs again and again.
const MAX_SHAPE_BYTES: usize = 16 * 1024;
/// Of most documents.
const SHAPE_CAPACITY: usize = 1024;

impl KnownShapes {
    /// Whether the document is valid. It is validated unless its shape is known.
    pub fn accept(&self, document: JsonNode, reads: &ValueReads, is_valid: impl FnOnce() -> bool) -> bool {
        let mut shape = Shape { bytes: Vec::with_capacity(SHAPE_CAPACITY), reads };
        if reads.reads_all() || !shape.add(document, None) {
            return is_valid();
        }
        let hash = self.key.hash_one(&shape.bytes).max(1);
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

/// A shape as bytes. Different shapes have different bytes: each value begins with a letter for its type, and what has a
/// length begins with it.
struct Shape<'r> {
    bytes: Vec<u8>,
    reads: &'r ValueReads,
}

impl Shape<'_> {
    /// `read`: what the schema reads of the value. False: the shape is too large.
    fn add(&mut self, node: JsonNode, read: Option<Read>) -> bool {
        if let Some(object) = node.as_object() {
            self.begin(b'{', object.len());
            return object.members().all(|(name, member)| {
                self.text(name);
                let read = if read == Some(Read::All) { read } else { self.reads.of_member(name) };
                self.add(member, read)
            });
        }
        if let Some(array) = node.as_array() {
            self.begin(b'[', array.len());
            // What is read of the list itself is read of nothing in it.
            let read = read.filter(|read| *read == Read::All);
            return array.elements().all(|element| self.add(element, read));
        }
        if let Some(num) = node.as_number() {
            match num.as_u64() {
                // Any count is as good as another one.
                Some(_) if read.is_none() => self.bytes.push(b'u'),
                _ => {
                    self.bytes.push(b'#');
                    self.text(&num.to_string());
                }
            }
        } else if let Some(bool) = node.as_boolean() {
            self.bytes.push(match (read, bool) {
                (None, _) => b'b',
                (Some(_), true) => b't',
                (Some(_), false) => b'f',
            });
        } else if node.is_null() {
            self.bytes.push(b'n');
        } else if read.is_none() {
            self.bytes.push(b's');
        } else {
            self.bytes.push(b'"');
            self.text(&node.as_string().unwrap_or_default());
        }
        self.bytes.len() <= MAX_SHAPE_BYTES
    }

    fn begin(&mut self, letter: u8, length: usize) {
        self.bytes.push(letter);
        self.length(length);
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn length(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(length) if length < u8::MAX => self.bytes.push(length),
            _ => {
                self.bytes.push(u8::MAX);
                self.bytes.extend_from_slice(&length.to_le_bytes());
            }
        }
    }
}
