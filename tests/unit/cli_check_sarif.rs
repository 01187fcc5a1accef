//! Unit tests of `cli::check::sarif`.

use super::*;

#[test]
fn a_path_becomes_a_uri() {
    assert_eq!(uri("./my set/a#1.yaml"), "my%20set/a%231.yaml");
    assert_eq!(uri("/srv/a.yaml"), "file:///srv/a.yaml");
}
