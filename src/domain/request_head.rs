//! What mappings can read of a client's HTTP request besides its body: parameters of its path and query, and headers.

use super::Tree;

/// Names with their values. Header names are in lower case; only headers that a mapping names are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    pub path: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
}

impl RequestHead {
    /// The names under which mappings read it: `path.model`.
    pub const PARTS: [&'static str; 3] = ["path", "query", "headers"];

    pub fn to_tree(&self) -> Tree {
        Tree::map(Self::PARTS.into_iter().zip([&self.path, &self.query, &self.headers].map(|pairs| pairs_tree(pairs))))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// Of several values with one name, the first.
fn pairs_tree(pairs: &[(String, String)]) -> Tree {
    Tree::map(pairs.iter().rev().map(|(name, value)| (name.as_str(), Tree::from(value.as_str()))))
}
