//! Properties of all texts and trees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod shared;

use proptest::prelude::*;
use reframe_json::Tree;
use serde_json::Value;
use shared::{number_token, plain_tree, tree};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_written_tree_parses_to_the_same_tree(tree in tree()) {
        let text = tree.to_json();
        let read = Tree::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&read, &tree);
        // Equality ignores key order and the spelling of numbers; the text does not.
        prop_assert_eq!(read.to_json(), text);
    }

    #[test]
    fn pretty_text_is_the_same_tree(tree in tree()) {
        let read = Tree::parse(tree.to_json_pretty().as_bytes()).unwrap();
        prop_assert_eq!(read.to_json(), tree.to_json());
    }

    #[test]
    fn a_number_is_written_as_it_was_read(token in number_token()) {
        prop_assert_eq!(Tree::parse(token.as_bytes()).unwrap().to_json(), token);
    }

    #[test]
    fn a_string_split_anywhere_can_be_joined_again(text in any::<String>(), cut in any::<prop::sample::Index>()) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let (left, right) = units.split_at(cut.index(units.len() + 1));
        let halves: Vec<Vec<u16>> = [left, right].into_iter().map(|half| {
            let escaped: String = half.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            match Tree::parse(format!("\"{escaped}\"").as_bytes()).unwrap() {
                Tree::Str(text) => text.encode_utf16().collect(),
                Tree::SurrogateString(string) => {
                    let text: Vec<u16> = string.text.encode_utf16().collect();
                    string.leading_low.into_iter().chain(text).chain(string.trailing_high).collect()
                }
                other => panic!("{other}"),
            }
        }).collect();
        prop_assert_eq!(halves.concat(), units);
    }

    #[test]
    fn a_tree_survives_conversion_to_value(tree in plain_tree()) {
        let value = tree.to_value();
        prop_assert_eq!(Tree::from_value(&value).to_json(), tree.to_json());
        prop_assert_eq!(value.to_string(), tree.to_json());
    }

    #[test]
    fn the_order_of_a_map_does_not_matter(tree in tree()) {
        prop_assert_eq!(&reversed(&tree), &tree);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_bytes_are_accepted_or_rejected_as_by_serde(bytes in any::<Vec<u8>>()) {
        agrees_with_serde(&bytes)?;
    }

    #[test]
    fn json_fragments_are_accepted_or_rejected_as_by_serde(json_fragments in json_fragments()) {
        agrees_with_serde(&json_fragments.concat())?;
    }

    #[test]
    fn damaged_json_is_accepted_or_rejected_as_by_serde(bytes in damaged()) {
        agrees_with_serde(&bytes)?;
    }
}

#[test]
fn every_byte_is_accepted_or_rejected_as_by_serde_at_every_position() {
    for (before, after) in [
        ("", ""),
        ("", "1"),
        ("1", ""),
        ("1", "1"),
        ("-", "1"),
        ("1.", ""),
        ("1e", "1"),
        ("[", "]"),
        ("[1", "]"),
        ("{", "\"a\":1}"),
        ("{\"a\"", "1}"),
        ("\"", "\""),
        ("\"\\", "\""),
        ("\"\\u00", "0\""),
        ("nul", ""),
    ] {
        for byte in 0..=255 {
            let text = [before.as_bytes(), &[byte], after.as_bytes()].concat();
            agrees_with_serde(&text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        }
    }
}

fn reversed(tree: &Tree) -> Tree {
    match tree {
        Tree::List(items) => Tree::List(items.iter().map(reversed).collect()),
        Tree::Map(entries) => {
            let backwards = entries.iter().rev();
            Tree::Map(backwards.map(|(key, tree)| (key.clone(), reversed(tree))).collect())
        }
        scalar => scalar.clone(),
    }
}

/// Strings that resemble JSON, because a parser rejects most random bytes at the first character.
fn json_fragments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let fragment = proptest::sample::select(vec![
        "[", "]", "{", "}", ",", ":", "\"", "\"a\"", "\"a\":", "\\", "\\u", "\\ud83d", "\\ude00", "\\n", "null",
        "true", "fals", "-", "0", "12", ".5", "e", "E+1", "1e999", " ", "\n", "é", "\u{1}", "\u{feff}",
    ]);
    proptest::collection::vec(fragment.prop_map(|fragment| fragment.as_bytes().to_vec()), 0..12)
}

/// A valid text with a few bytes inserted, removed or changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![proptest::sample::select(b"[]{},:\"\\u0-.eE1 \n\x01".to_vec()), any::<u8>(),];
    let edit = (any::<prop::sample::Index>(), 0..3_u8, byte);
    (tree(), proptest::collection::vec(edit, 0..4)).prop_map(|(tree, edits)| {
        let mut bytes = tree.to_json().into_bytes();
        for (place, kind, byte) in edits {
            let at = place.index(bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    })
}

/// Asserts the same result as serde, except for intended differences: this crate accepts a byte order mark, lone
/// surrogates and numbers beyond a float. (It also allows one more level of depth, which no text here reaches.)
fn agrees_with_serde(bytes: &[u8]) -> Result<(), TestCaseError> {
    let without_mark = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    match (Tree::parse(bytes), serde_json::from_slice::<Value>(without_mark)) {
        (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours.to_value().to_string(), theirs.to_string()),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(theirs)) => {
            let theirs = theirs.to_string();
            let intended = ["surrogate", "end of hex escape", "number out of range"];
            prop_assert!(intended.iter().any(|kind| theirs.contains(kind)), "serde: {}", theirs);
        }
        (Err(ours), Ok(_)) => prop_assert!(false, "only we refuse: {}", ours),
    }
    Ok(())
}
