//! Unit tests of `cli::check::github`.

use super::*;

#[test]
fn special_characters_of_a_command_are_escaped() {
    assert_eq!(data("100 %: a,\nb\r"), "100 %25: a,%0Ab%0D");
    assert_eq!(property("c:\\a,b 5%\n"), "c%3A\\a%2Cb 5%25%0A");
}
