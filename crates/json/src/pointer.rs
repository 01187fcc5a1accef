//! JSON pointers (RFC 6901): their tokens, the value they refer to, and their path in error messages.

use crate::Tree;

/// The reference tokens of a pointer, unescaped: `/a~1b/0` has the tokens `a/b` and `0`.
pub fn pointer_tokens(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"))
}

/// Escapes a name as a token of a pointer.
pub fn escape_pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A pointer in the notation of error messages: `/messages/0/content` is `messages[0].content`.
pub fn pointer_to_path(pointer: &str) -> String {
    let mut path = String::new();
    for token in pointer_tokens(pointer) {
        match token.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if path.is_empty() => path.push_str(&token),
            Err(_) => path.push_str(&format!(".{token}")),
        }
    }
    path
}

impl Tree {
    /// The value that a pointer refers to.
    pub fn pointer(&self, pointer: &str) -> Option<&Tree> {
        pointer_tokens(pointer).try_fold(self, |node, token| match node.as_list() {
            Some(_) => token.parse().ok().and_then(|index| node.at(index)),
            None => node.get(&token),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unescaped_in_paths_and_lookups() {
        let tree = Tree::parse(br#"{"a/b":{"~":[1,{"c":2}]}}"#).unwrap();
        assert_eq!(tree.pointer("/a~1b/~0/1/c").and_then(Tree::as_i64), Some(2));
        assert_eq!(pointer_to_path("/a~1b/~0/1/c"), "a/b.~[1].c");
        assert_eq!(escape_pointer_token("a/~"), "a~1~0");
        assert_eq!(tree.pointer(""), Some(&tree));
        assert_eq!(tree.pointer("/a~1b/~0/x"), None);
    }

    #[test]
    fn a_name_that_is_a_number_is_found_in_a_map() {
        let tree = Tree::parse(br#"{"5":true}"#).unwrap();
        assert_eq!(tree.pointer("/5").and_then(Tree::as_bool), Some(true));
    }
}
