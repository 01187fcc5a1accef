//! Violations of a schema or an order, with the data that is needed to locate their source in the mapping. The source
//! is searched only for violations that are reported.

use crate::diagnostics::schema_message;
use crate::diagnostics::{Sources, Span};
use crate::domain::{Scope, Tree};
use crate::engine::pipeline::{Observer, TraceEvent, ViolationDetails};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use reframe_json::SchemaViolation;
use std::sync::{Arc, Mutex, PoisonError};

/// A schema violation with the rendered data.
#[derive(Clone, Debug)]
pub struct ViolationSource {
    /// "the frame `x`", "the body of `x`".
    pub what: String,
    pub schema: String,
    pub reason: String,
    /// The frame, body or error in the mapping.
    pub template: Span,
    violation: SchemaViolation,
    data: Tree,
}

/// A violation that occurred in a turn.
#[derive(Clone, Debug)]
pub enum TracedViolation {
    Schema(Box<ViolationSource>),
    /// The message, and the scope of the order.
    Order(String, Scope),
}

impl TracedViolation {
    pub fn from_trace(event: &TraceEvent) -> Option<TracedViolation> {
        match event {
            TraceEvent::Violation(_, template, details) => {
                Some(TracedViolation::Schema(Box::new(ViolationSource::new(details, *template))))
            }
            TraceEvent::OutOfOrder(fault, scope) => Some(TracedViolation::Order(fault.message.clone(), *scope)),
            TraceEvent::Raw(_)
            | TraceEvent::Event(..)
            | TraceEvent::Dropped(..)
            | TraceEvent::NotUnderstood(_)
            | TraceEvent::Late => None,
            TraceEvent::Moment(..) | TraceEvent::Frame(..) | TraceEvent::Body(..) => None,
        }
    }

    pub fn message(&self) -> String {
        match self {
            TracedViolation::Schema(source) => format!("{} violates its schema: {}", source.what, source.reason),
            TracedViolation::Order(message, _) => message.clone(),
        }
    }

    /// The frame, body or error; `Span::NOWHERE` for a moment out of order.
    pub fn template(&self) -> Span {
        match self {
            TracedViolation::Schema(source) => source.template,
            TracedViolation::Order(..) => Span::NOWHERE,
        }
    }

    /// The line in the mapping that causes the violation.
    pub fn location(&self, dialect: &DialectPlan, plan: &Plan) -> Span {
        match self {
            TracedViolation::Schema(source) => source.location(dialect, plan),
            TracedViolation::Order(_, scope) => {
                let locator = plan.dialect_sources.of(dialect, &plan.sources);
                locator.and_then(|l| l.locate_order(*scope)).unwrap_or(Span::NOWHERE)
            }
        }
    }
}

impl ViolationSource {
    pub fn new(details: &ViolationDetails, template: Span) -> ViolationSource {
        let ViolationDetails { what, schema, violation, data } = *details;
        let reason = schema_message::describe_with_value(violation, data);
        let (what, schema) = (what.to_owned(), schema.to_owned());
        ViolationSource { what, schema, reason, template, violation: violation.clone(), data: data.clone() }
    }

    pub fn has_same_cause(&self, other: &ViolationSource) -> bool {
        (&self.schema, &self.reason) == (&other.schema, &other.reason)
    }

    /// The line in the mapping that causes the violation: in the dialect, its profile or shared.yaml.
    pub fn location(&self, dialect: &DialectPlan, plan: &Plan) -> Span {
        let path: Vec<String> = reframe_json::pointer_tokens(&self.violation.pointer).collect();
        let locator = plan.dialect_sources.of(dialect, &plan.sources);
        let found = locator.and_then(|locator| match self.violation.keyword.as_str() {
            "required" => {
                let name = self.violation.message.split('"').nth(1).unwrap_or_default();
                locator.locate_missing_member(self.template, &self.data, &path, name)
            }
            _ => match self.unknown_member() {
                Some((name, _)) => locator.locate_unknown_member(self.template, &self.data, &path, &name),
                None => locator.locate_value(self.template, &self.data, &path),
            },
        });
        found.unwrap_or(self.template)
    }

    /// The member that the schema does not allow, and the schema line that would allow it.
    pub fn unknown_member(&self) -> Option<(String, String)> {
        if !matches!(self.violation.keyword.as_str(), "additionalProperties" | "unevaluatedProperties") {
            return None;
        }
        let owner = self.data.pointer(&self.violation.pointer)?;
        let message = &self.violation.message;
        let (name, value) = owner.as_map()?.iter().find(|(name, _)| message.contains(&format!("'{name}'")))?;
        let kind = match value {
            Tree::Num(n) if n.as_i64().is_some() => "integer",
            other => other.type_name(),
        };
        Some((name.to_string(), format!("\"{name}\": {{ \"type\": \"{kind}\" }}")))
    }
}

/// Records the first violation of a turn.
#[derive(Clone, Default)]
pub struct FirstViolation(Arc<Mutex<Option<TracedViolation>>>);

impl FirstViolation {
    pub fn take(&self) -> Option<TracedViolation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Observer for FirstViolation {
    fn on(&mut self, event: TraceEvent) {
        if let Some(violation) = TracedViolation::from_trace(&event) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
        }
    }
}

/// Whether the span is in a profile file.
pub fn in_profile(span: Span, sources: &Sources) -> bool {
    sources.get(span.file).is_some_and(|s| s.name.starts_with("profiles/"))
}
