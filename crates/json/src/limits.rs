//! How much JSON one text may ask us to hold.

/// What [`Tree::parse_with`](crate::Tree::parse_with) refuses to go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of text.
    pub max_bytes: usize,
    /// Lists and maps inside one another. A scalar has depth 0, `[]` has depth 1.
    pub max_depth: usize,
    /// Values of any kind. A text of `[[],[],…` grows about twentyfold when it becomes a tree, so
    /// a limit on bytes alone does not bound memory.
    pub max_nodes: usize,
}

impl Limits {
    /// Parsing, dropping, comparing and writing a tree all walk it recursively: no setting may
    /// allow a depth that a thread's stack does not have.
    pub(crate) const DEEPEST: usize = 512;
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_bytes: 64 * 1024 * 1024, max_depth: 128, max_nodes: 1_000_000 }
    }
}
