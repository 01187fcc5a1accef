//! Unit tests of `verify::text_diff`.

use super::unified;

#[test]
fn only_differences_and_their_context_are_shown() {
    let expected = "a\nb\nc\nd\ne\nf\ng";
    let got = "a\nb\nc\nd\nE\nf\ng";
    assert_eq!(unified(expected, got), ["  …", "  c", "  d", "- e", "+ E", "  f", "  g"]);
    assert_eq!(unified("a\nb\nc\nd", "a\nb\nc\nD"), ["  a", "  b", "  c", "- d", "+ D"]);
}

#[test]
fn lines_missing_at_the_end_are_marked() {
    assert_eq!(unified("a\nb\nc", "a"), ["  a", "- b", "- c"]);
    assert_eq!(unified("a", "a\nb"), ["  a", "+ b"]);
    assert_eq!(unified("", "a"), ["+ a"]);
}

#[test]
fn equal_texts_are_collapsed() {
    assert_eq!(unified("a\nb", "a\nb"), ["  …"]);
}
