//! What the rules found in a JSON document: emissions, what was dropped or failed, and what could not be read.

use super::emission_budget::EmissionBudget;
use super::fields::Mismatch;
use crate::diagnostics::Span;
use crate::domain::Text;
use crate::domain::emit::EmittedFields;
use crate::domain::request_item::ContentPart;

/// An event or request item that a rule emitted, with its fields; absent fields are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    pub name: &'static str,
    pub fields: EmittedFields,
    /// The content parts of a request item, if it has them.
    pub parts: Option<Vec<ContentPart>>,
    /// The rule that emitted it.
    pub rule: Span,
    /// The node that it was read from, if reads are recorded.
    pub path: Option<Text>,
}

/// Fields of an emission that could not be read.
#[derive(Debug)]
pub struct Unread {
    /// The name of the emission.
    pub name: &'static str,
    /// Nothing was emitted: the fields that carry the content are among them.
    pub is_lost: bool,
    pub rule: Span,
    /// The first of them, in [`RuleOutput::mismatches`].
    pub mismatch: usize,
}

/// The result of the rules for one raw event or request body.
#[derive(Debug, Default)]
pub struct RuleOutput {
    pub emissions: Vec<Emission>,
    /// At least one rule matched, including `drop:` and `fail:` rules.
    pub matched: bool,
    /// The reason, and the rule.
    pub dropped: Option<(String, Span)>,
    pub failed: Option<(String, Span)>,
    /// The path of the element that the rule failed for; empty for the whole document.
    pub failed_at: String,
    /// Fields with a value that does not fit.
    pub mismatches: Vec<Mismatch>,
    /// The same, by emission.
    pub unread: Vec<Unread>,
    /// Paths of list elements that no rule of their group matched.
    pub unknown: Vec<String>,
    /// Paths of list elements that rules matched, but that have none of the fields that carry the content.
    pub without_content: Vec<Text>,
    pub budget: EmissionBudget,
}

/// For clients: the end of the message about a list element that no rule of its group matches.
pub const UNMATCHED_ELEMENT: &str = "is not supported: check its role or type, and its required fields";
