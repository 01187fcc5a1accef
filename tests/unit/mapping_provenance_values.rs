//! Unit tests of `mapping::provenance::values`.

use super::path_tokens;

#[test]
fn a_path_is_read_up_to_the_first_filter() {
    assert_eq!(path_tokens(".choices[0].text"), ["choices", "0", "text"]);
    assert_eq!(path_tokens(" $.choices[*].text[1]"), ["choices", "0", "text", "1"]);
    assert_eq!(path_tokens(" $.a[?@.b].c"), ["a"]);
    assert!(path_tokens("").is_empty());
}
