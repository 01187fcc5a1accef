//! Renders the head of a response: the headers of a dialect, and the status of its errors.

use super::render::{RenderError, Scope, render, render_if_complete};
use crate::domain::variables::{self, Record};
use crate::domain::{Fault, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::language::field::scalar_text;

/// What the head of a response can read. Absent values are null in expressions.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadContext<'a> {
    pub request_id: &'a str,
    /// Absent if the request could not be read.
    pub request: Option<&'a TurnRequest>,
    /// The turn of a JSON response.
    pub turn: Option<&'a TurnState>,
    /// Of an error.
    pub fault: Option<&'a Fault>,
}

impl<'a> HeadContext<'a> {
    fn scope(&self, dialect: &'a DialectPlan) -> Scope<'a> {
        Scope::default()
            .set(variables::REQUEST, self.request.map(Record::request))
            .set(variables::REQUEST_ID, self.request_id)
            .set(variables::TURN, self.turn.map(Record::Turn))
            .set(variables::FAULT, self.fault.map(Record::Fault))
            .with_policies(dialect)
    }
}

/// The headers with a value, by name.
pub fn headers<'d>(dialect: &'d DialectPlan, context: &HeadContext) -> Result<Vec<(&'d str, String)>, RenderError> {
    if dialect.head.headers.is_empty() {
        return Ok(Vec::new());
    }
    let scope = context.scope(dialect);
    let mut headers = Vec::new();
    for (name, skeleton) in &dialect.head.headers {
        let value = render_if_complete(skeleton, &scope, &dialect.pool)?;
        headers.extend(value.map(|value| (name.as_str(), header_text(&value))));
    }
    Ok(headers)
}

/// The status that the dialect gives an error, if it gives one.
pub fn status(dialect: &DialectPlan, context: &HeadContext) -> Result<Option<u16>, RenderError> {
    let Some(skeleton) = &dialect.head.status else { return Ok(None) };
    let status = render(skeleton, &context.scope(dialect), &dialect.pool)?;
    let status = status.as_ref().and_then(scalar_text).and_then(|text| text.parse().ok());
    Ok(status.filter(|status| (400..600).contains(status)))
}

fn header_text(value: &Tree) -> String {
    scalar_text(value).unwrap_or_else(|| value.to_json())
}
