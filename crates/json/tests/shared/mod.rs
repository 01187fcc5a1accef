//! Random trees.

// Each test file compiles this module separately and uses only a part of it.
#![allow(dead_code)]

use proptest::prelude::*;
use reframe_json::{Num, SurrogateString, Tree};

/// Any JSON number as text; most of them do not fit a float or an integer.
pub fn number_token() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?"
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-c\"\\\\/\\x00-\\x1f\\x7f\u{e9}\u{2028}\u{fffd}\u{1f600}]{0,8}",]
}

fn string() -> impl Strategy<Value = SurrogateString> {
    let leading_low = proptest::option::of(0xDC00_u16..=0xDFFF);
    let trailing_high = proptest::option::of(0xD800_u16..=0xDBFF);
    let string = (leading_low, text(), trailing_high).prop_map(|(leading_low, text, trailing_high)| SurrogateString {
        leading_low,
        text,
        trailing_high,
    });
    string.prop_filter("whole", |string| string.leading_low.is_some() || string.trailing_high.is_some())
}

/// Trees of every kind of value.
pub fn tree() -> impl Strategy<Value = Tree> {
    nested(prop_oneof![
        plain_scalar(),
        number_token().prop_map(|token| Tree::Num(Num::Token(token.into()))),
        string().prop_map(|string| Tree::SurrogateString(Box::new(string))),
    ])
}

/// Trees that convert to `serde_json::Value` without loss.
pub fn plain_tree() -> impl Strategy<Value = Tree> {
    nested(plain_scalar())
}

fn plain_scalar() -> impl Strategy<Value = Tree> {
    prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::from),
        (-3_i64..=12).prop_map(Tree::from),
        any::<i64>().prop_map(Tree::from),
        any::<u64>().prop_map(Tree::from),
        proptest::num::f64::NORMAL.prop_map(Tree::from),
        text().prop_map(Tree::from),
    ]
}

fn nested(scalar: impl Strategy<Value = Tree> + 'static) -> impl Strategy<Value = Tree> {
    scalar.prop_recursive(5, 40, 6, |inner| {
        // Few different keys, so that duplicates occur.
        let key = prop_oneof!["[a-e]", text()];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Tree::from),
            proptest::collection::vec((key, inner), 0..20).prop_map(Tree::map),
        ]
    })
}
