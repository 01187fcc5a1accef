//! Unit tests of `language::selector_path`.

use super::*;

const PLAIN: &[&str] = &["", ".a", ".a.b_c[0].D9", "[0][12]", ".choices[*]", "[*]", "._x"];
const OTHER: &[&str] = &[
    ".a..b", "..a", "[-1]", "[01]", "['a']", ".a[*].b", ".a[?@.b]", "[0:2]", ".ä", ".a b", ".", "[", "[]", ".a.", "[1",
    ".9",
];

#[test]
fn a_plain_path_has_the_steps_that_the_library_finds() {
    for text in PLAIN {
        let query = parse_json_path(&format!("${text}")).unwrap_or_else(|error| panic!("`${text}`: {error}"));
        let (plain, library) = (plain_path(text), lower(query));
        assert_eq!(format!("{plain:?}"), format!("{:?}", Some(library)), "`${text}`");
    }
}

#[test]
fn every_other_path_is_left_to_the_library() {
    for text in OTHER {
        assert!(plain_path(text).is_none(), "`${text}`");
    }
}
