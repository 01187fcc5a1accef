//! Unit tests of `language::expression_paths`.

use super::*;
use crate::mapping::language::expression_tokens::tokens;

fn shown(text: &str) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Field { at, name } => {
            assert_eq!(&text[*at..*at + name.len()], *name, "the offset");
            format!(".{name}")
        }
        Step::Element => "[]".to_owned(),
        Step::Slice => "[:]".to_owned(),
    };
    let path = |path: &AccessedPath| path.path.to_owned() + &path.steps.iter().map(step).collect::<String>();
    accessed_paths(&tokens(text)).iter().map(path).collect()
}

#[test]
fn variables_are_found_with_what_follows_them() {
    assert_eq!(shown("usage['input'] + turn.choices[0].text.x"), ["usage.input", "turn.choices[].text.x"]);
    assert_eq!(shown("nosuch[0:3]"), ["nosuch[:]"]);
    assert_eq!(shown("a[b.c[0]].d"), ["a[].d", "b.c[]"]);
    assert_eq!(shown("a[{'x': 1}['x']]"), ["a[]"]);
}

#[test]
fn words_that_are_no_variables_are_not_found() {
    let text = "x | default('y') if a is not none and true else 'b' ~ 1.5";
    assert_eq!(shown(text), ["x", "a"]);
    assert_eq!(shown("x in ['a', 'b'] or not y is startingwith(z)"), ["x", "y", "z"]);
}

#[test]
fn broken_brackets_end_the_steps() {
    assert_eq!(shown("a[0"), ["a"]);
    assert_eq!(shown("a]"), ["a"]);
}
