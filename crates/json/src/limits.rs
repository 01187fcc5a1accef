//! Limits on the size of parsed JSON.

/// Limits for [`Tree::parse_with`](crate::Tree::parse_with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of the text in bytes.
    pub max_bytes: usize,
    /// Maximum nesting of lists and maps. A scalar has depth 0, `[]` has depth 1.
    pub max_depth: usize,
    /// Maximum number of values of any kind. A text of `[[],[],…` grows about twentyfold as a tree, so a limit on bytes
    /// alone does not bound memory.
    pub max_nodes: usize,
}

impl Limits {
    /// The upper bound of `max_depth`. Parsing, dropping, comparing and writing a tree are recursive, so the depth must
    /// fit a thread's stack.
    pub(crate) const DEEPEST: usize = 512;
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_bytes: 64 * 1024 * 1024, max_depth: 128, max_nodes: 1_000_000 }
    }
}
