//! Unit tests of `cli::test::junit`.

use super::{escaped, escaped_text};

#[test]
fn special_characters_are_escaped() {
    assert_eq!(escaped("a<b> & \"c\" 'd'\n"), "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;&#10;");
    assert_eq!(escaped_text("]]> \u{1b}[31m \0"), "]]&gt; \u{fffd}[31m \u{fffd}");
}
