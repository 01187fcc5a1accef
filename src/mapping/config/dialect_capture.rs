//! A dialect's `capture:`: how frames of the dialect are parsed, for `reframe validate`. The rules emit observations;
//! the stream rules that they must satisfy are the same for every dialect.

use super::dialect::NamedSchema;
use crate::domain::emit::OBSERVATIONS;
use crate::mapping::language::rule::{NamedRules, RuleSet};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

#[derive(Debug)]
pub struct CapturePlan {
    /// The sequence number of a stream's first frame, if frames are numbered.
    pub first_sequence: Option<i64>,
    pub rules: RuleSet,
    /// Frames that this set never sends but other servers do, with their schemas.
    pub extra_frames: Vec<(Arc<str>, Option<NamedSchema>)>,
}

impl CapturePlan {
    /// A dialect without the section is checked against its schemas only. `schema` finds the schema of a frame.
    pub fn parse(
        node: Option<&Node>,
        tables: &Tables,
        schema: impl Fn(&Node, &str) -> Option<NamedSchema>,
        cx: LoadContext,
    ) -> Option<CapturePlan> {
        let named_rules = NamedRules::default();
        let Some(node) = node else {
            let rules = RuleSet::parse(&OBSERVATIONS, None, &[], tables, &named_rules, cx);
            return Some(CapturePlan { first_sequence: None, rules, extra_frames: Vec::new() });
        };
        let fields = FieldReader::of(node, "`capture:`", cx)?;
        let event_name = fields.get("event_name").and_then(|n| Selector::parse(text_of(n, cx)?, n.span, cx));
        let first_sequence = fields.int("first_sequence");
        let mut extra_frames = Vec::new();
        for node in fields.list("extra_frames") {
            if let Some(name) = text_of(node, cx) {
                extra_frames.push((Arc::from(name), schema(node, name)));
            }
        }
        fields.required("rules");
        let rules = RuleSet::parse(&OBSERVATIONS, event_name, fields.list("rules"), tables, &named_rules, cx);
        fields.finish();
        Some(CapturePlan { first_sequence, rules, extra_frames })
    }
}
