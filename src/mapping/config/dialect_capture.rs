//! A dialect's `capture:`: how frames of the dialect are parsed, for `reframe validate`. The rules emit observations;
//! the stream rules that they must satisfy are the same for every dialect.

use super::dialect::NamedSchema;
use crate::diagnostics::Span;
use crate::domain::emit::OBSERVATIONS;
use crate::mapping::grammar::collections::{Elements, List};
use crate::mapping::grammar::notation::{Count, Spanned};
use crate::mapping::grammar::{Required, section};
use crate::mapping::language::rule::{NamedRules, RuleSet};
use crate::mapping::language::rule_schema::{NamedRuleOf, ObservationRules, event_rules_need_a_name_selector};
use crate::mapping::language::selector::Selector;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use std::sync::Arc;

#[derive(Debug)]
pub struct CapturePlan {
    /// The sequence number of a stream's first frame, if frames are numbered.
    pub first_sequence: Option<i64>,
    pub rules: RuleSet,
    /// The member of a frame's data in which the rules find the name of its SSE event.
    pub event: Option<String>,
    /// Frames that this set never sends but other servers do, with their schemas.
    pub extra_frames: Vec<(Arc<str>, Option<NamedSchema>)>,
}

section! {
    /// How `reframe validate` reads a dialect's own frames.
    #[subject = "`capture:`"]
    #[title = "capture"]
    #[transform = event_rules_need_a_name_selector]
    pub struct CaptureSection<'n> {
        /// The selector of a frame's name; needed by rules with `event:`.
        event_name: Option<Selector>,
        /// Copies the name in an `event:` line into this member of the frame's data, for the rules, unless the data has
        /// that member.
        event: Option<String>,
        /// The sequence number of the first frame.
        first_sequence: Option<Count>,
        /// Names of frames that only other servers send.
        extra_frames: List<Spanned<String>> = List::default(),
        /// Rules that emit observations.
        rules: Required<Elements<'n, NamedRuleOf<ObservationRules>>>,
    }
}

impl CapturePlan {
    /// A dialect without the section is checked against its schemas only. `schema` finds the schema of a frame.
    pub fn new(
        section: Option<CaptureSection>,
        tables: &Tables,
        schema: impl Fn(&str, Span) -> Option<NamedSchema>,
        cx: LoadContext,
    ) -> CapturePlan {
        let rules = |name, nodes| RuleSet::parse(&OBSERVATIONS, name, nodes, tables, &NamedRules::default(), cx);
        let Some(section) = section else {
            let (rules, extra_frames) = (rules(None, &[]), Vec::new());
            return CapturePlan { first_sequence: None, event: None, rules, extra_frames };
        };
        let frame = |name: &Spanned<String>| (Arc::from(name.as_str()), schema(name, name.span));
        CapturePlan {
            first_sequence: section.first_sequence.map(|first| first.0 as i64),
            event: section.event,
            rules: rules(section.event_name, &section.rules),
            extra_frames: section.extra_frames.iter().map(frame).collect(),
        }
    }
}
