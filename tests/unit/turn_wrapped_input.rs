//! The input of a wrapped custom tool is the same however its arguments are split, and as if they were parsed at once.

use super::*;

#[test]
fn c09_the_input_does_not_depend_on_how_the_arguments_are_split() {
    let cases = [
        r#"{"input":"plain"}"#,
        "{ \"input\" :\n\"a\\\"b\\\\n\\n\\u00e9\\ud83d\\ude00é🙂\" , \"more\": \"no\" }",
        r#"{"input":""}"#,
        // These are decoded when they are complete.
        r#"{"more":1,"input":"late"}"#,
        r#"{"input":5}"#,
        r#"{"inputs":"x"}"#,
        r#"["input"]"#,
        "not JSON",
        "",
    ];
    for arguments in cases {
        let expected = unwrap_custom_input(arguments);
        let boundaries: Vec<usize> = (0..=arguments.len()).filter(|at| arguments.is_char_boundary(*at)).collect();
        for one in &boundaries {
            for two in boundaries.iter().filter(|two| *two >= one) {
                let mut wrapped = WrappedInput::default();
                let deltas = [&arguments[..*one], &arguments[*one..*two], &arguments[*two..]];
                let mut input: String = deltas.iter().map(|delta| wrapped.push(delta)).collect();
                input.push_str(&wrapped.rest(arguments));
                assert_eq!(input, expected, "{arguments} split at {one} and {two}");
            }
        }
    }
}

#[test]
fn c09_a_lone_surrogate_is_replaced() {
    for arguments in [r#"{"input":"a\ud83dz"}"#, r#"{"input":"a\ude00z"}"#, r#"{"input":"a\ud83d"}"#] {
        let input = WrappedInput::default().push(arguments);
        assert_eq!(input.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count(), 1, "{input:?}");
        assert!(input.starts_with('a'));
    }
}
