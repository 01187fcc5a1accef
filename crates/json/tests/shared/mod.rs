//! Random trees.

// Each test file compiles this for itself and takes what it needs.
#![allow(dead_code)]

use proptest::prelude::*;
use reframe_json::{Num, Torn, Tree};

/// Any JSON number as text, most of them beyond what a float or an integer holds.
pub fn number_token() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?"
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-c\"\\\\/\\x00-\\x1f\\x7f\u{e9}\u{2028}\u{fffd}\u{1f600}]{0,8}",]
}

fn torn() -> impl Strategy<Value = Torn> {
    let lead = proptest::option::of(0xDC00_u16..=0xDFFF);
    let tail = proptest::option::of(0xD800_u16..=0xDBFF);
    let torn = (lead, text(), tail).prop_map(|(lead, text, tail)| Torn { lead, text, tail });
    torn.prop_filter("whole", |torn| torn.lead.is_some() || torn.tail.is_some())
}

/// Trees of every kind of value.
pub fn tree() -> impl Strategy<Value = Tree> {
    nested(prop_oneof![
        plain_scalar(),
        number_token().prop_map(|token| Tree::Num(Num::Token(token.into()))),
        torn().prop_map(|torn| Tree::Torn(Box::new(torn))),
    ])
}

/// Trees that a `serde_json::Value` holds without loss.
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
        // Few different keys, so that some come twice.
        let key = prop_oneof!["[a-e]", text()];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Tree::from),
            proptest::collection::vec((key, inner), 0..20).prop_map(Tree::map),
        ]
    })
}
