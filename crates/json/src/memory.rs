//! The memory that a tree occupies, for budgets: a tree of small values costs many times the length of its JSON.

use crate::{Num, Text, Tree};
use std::mem::size_of;

impl Tree {
    /// What an allocation costs besides its content: the allocator's header and its rounding.
    pub const ALLOCATION_BYTES: usize = 16;

    /// The bytes that this tree has allocated, without the node itself. Short texts and
    /// keys are part of the node.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Tree::Null | Tree::Bool(_) | Tree::Num(Num::Int(_)) => 0,
            Tree::Num(Num::Token(token)) => allocated(token.len()),
            Tree::Str(text) => text_bytes(text),
            Tree::SurrogateString(string) => allocated(size_of_val(&**string)) + allocated(string.text.capacity()),
            Tree::List(items) => {
                allocated(items.capacity() * size_of::<Tree>()) + items.iter().map(Tree::heap_bytes).sum::<usize>()
            }
            Tree::Map(entries) => {
                let members = entries.iter().map(|(key, value)| text_bytes(key) + value.heap_bytes());
                allocated(entries.capacity() * size_of::<(Text, Tree)>()) + members.sum::<usize>()
            }
        }
    }
}

fn text_bytes(text: &Text) -> usize {
    if text.is_heap_allocated() { allocated(text.capacity()) } else { 0 }
}

fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + Tree::ALLOCATION_BYTES }
}
