//! The memory that a tree occupies, for budgets: a tree of small values costs many times the length of its JSON.

use crate::{Num, Tree};
use std::mem::size_of;
use std::sync::Arc;

impl Tree {
    /// What an allocation costs besides its content: the allocator's header and its rounding.
    pub const ALLOCATION_BYTES: usize = 16;

    /// The bytes that this tree has allocated, without the node itself. A key that several trees share is counted in
    /// each of them.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Tree::Null | Tree::Bool(_) | Tree::Num(Num::Int(_)) => 0,
            Tree::Num(Num::Token(token)) => allocated(token.len()),
            Tree::Str(text) => allocated(text.capacity()),
            Tree::SurrogateString(string) => allocated(size_of_val(&**string)) + allocated(string.text.capacity()),
            Tree::List(items) => {
                allocated(items.capacity() * size_of::<Tree>()) + items.iter().map(Tree::heap_bytes).sum::<usize>()
            }
            Tree::Map(entries) => {
                let members = entries.iter().map(|(key, value)| key_bytes(key) + value.heap_bytes());
                allocated(entries.capacity() * size_of::<(Arc<str>, Tree)>()) + members.sum::<usize>()
            }
        }
    }
}

/// An `Arc` has two counters next to its text.
fn key_bytes(key: &str) -> usize {
    allocated(2 * size_of::<usize>() + key.len())
}

fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + Tree::ALLOCATION_BYTES }
}
