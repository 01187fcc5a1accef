//! A dialect's `capture:`: how its own frames are read back, for `reframe validate`. The rules emit observations; what
//! must hold between those is the same for every dialect.

use super::dialect::NamedSchema;
use crate::domain::emit::OBSERVATIONS;
use crate::mapping::language::named_rules::RuleBook;
use crate::mapping::language::rule::RuleSet;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

#[derive(Debug)]
pub struct CapturePlan {
    /// The number of a stream's first frame, where frames are numbered.
    pub first: Option<i64>,
    pub rules: RuleSet,
    /// Frames that this set never sends and others do, with their schemas.
    pub also: Vec<(Arc<str>, Option<NamedSchema>)>,
}

impl CapturePlan {
    /// A dialect without the section has schemas alone. `schema` finds the one of a frame.
    pub fn parse(
        node: Option<&Node>,
        tables: &Tables,
        schema: impl Fn(&Node, &str) -> Option<NamedSchema>,
        cx: Cx,
    ) -> Option<CapturePlan> {
        let book = RuleBook::default();
        let Some(node) = node else {
            let rules = RuleSet::parse(&OBSERVATIONS, None, &[], tables, &book, cx);
            return Some(CapturePlan { first: None, rules, also: Vec::new() });
        };
        let fields = Fields::of(node, "`capture:`", cx)?;
        let key = fields.get("key").and_then(|n| Selector::parse(text_of(n, cx)?, n.span, cx));
        let first = fields.int("first");
        let mut also = Vec::new();
        for node in fields.list("also") {
            if let Some(name) = text_of(node, cx) {
                also.push((Arc::from(name), schema(node, name)));
            }
        }
        fields.required("rules");
        let rules = RuleSet::parse(&OBSERVATIONS, key, fields.list("rules"), tables, &book, cx);
        fields.done();
        Some(CapturePlan { first, rules, also })
    }
}
