//! Unit tests of `turn::deltas`.

use super::*;

fn is_complete(deltas: &[&str]) -> bool {
    let mut progress = JsonProgress::default();
    deltas.iter().for_each(|delta| progress.add(delta));
    progress.is_complete()
}

#[test]
fn one_object_or_array_is_complete() {
    for text in ["{}", "[]", " {\"a\": [1, {\"b\": \"}\"}]} \n", "{\"q\": \"\\\"{\"}", "[[], []]"] {
        assert!(is_complete(&[text]), "{text}");
    }
    for text in [
        "",
        " ",
        "{",
        "{\"a\":",
        "{\"a\": \"}",
        "{\"a\": \"\\\"}",
        "{} {}",
        "{}x",
        "1",
        "\"{}\"",
        "}",
        "x{}",
        "null {}",
    ] {
        assert!(!is_complete(&[text]), "{text}");
    }
}

#[test]
fn the_split_into_deltas_does_not_matter() {
    let text = "{\"q\": \"a \\\"} \\\\\", \"l\": [{}, \"]\"]}";
    for at in 0..=text.len() {
        let (first, second) = text.split_at(at);
        assert!(is_complete(&[first, second]), "{first} | {second}");
        assert!(at == text.len() || !is_complete(&[first]), "{first}");
    }
}
