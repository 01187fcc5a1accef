//! The variables in scope while a skeleton is rendered.

use super::Value;
use crate::domain::{Fault, Moment, MomentKind, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::language::expression::VariablePath;
use std::borrow::Cow;

#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    variables: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Scope<'a> {
    pub fn moment(
        dialect: &'a DialectPlan,
        state: &'a TurnState,
        moment: &'a Moment,
        request: &'a TurnRequest,
        seq: u64,
        frame: &'a str,
    ) -> Scope<'a> {
        let mut scope = Scope::body(dialect, state, request);
        scope.set("seq", Value::Int(seq as i64));
        scope.set("frame", Value::text(frame));
        if let Some(choice) = moment.choice.and_then(|c| state.choices.get(c)) {
            scope.set("choice", Value::Choice(state, choice));
        }
        if let Some(item) = moment.item.and_then(|i| state.items.get(i)) {
            scope.set("item", Value::Item(item));
            let summary =
                matches!(moment.kind, MomentKind::SummaryOpen | MomentKind::SummaryDelta | MomentKind::SummaryClose);
            let parts = if summary { &item.summaries } else { &item.parts };
            if let Some(part) = moment.part.and_then(|p| parts.get(p)) {
                scope.set("part", Value::Part(part));
                scope.set("ordinal", Value::Int(part.annotations.len() as i64 - 1));
            }
        }
        match moment.kind {
            MomentKind::ToolArgs => scope.set("args", Value::text(&moment.text)),
            MomentKind::Annotation => scope.set("annotation", Value::Tree(&moment.value)),
            MomentKind::TurnFail => scope.set("fault", state.error.as_ref().map_or(Value::Null, Value::Fault)),
            MomentKind::Usage => scope.set("usage", state.usage.map_or(Value::Null, Value::Usage)),
            _ => {
                scope.set("text", Value::text(&moment.text));
                scope.set("logprobs", Value::Tree(&moment.value));
            }
        }
        scope
    }

    pub fn body(dialect: &'a DialectPlan, state: &'a TurnState, request: &'a TurnRequest) -> Scope<'a> {
        let mut scope = Scope::request(request);
        scope.set("turn", Value::Turn(state));
        scope.set("policy", Value::Policies(&dialect.resolved.policies.values));
        scope
    }

    pub fn error(dialect: &'a DialectPlan, fault: &'a Fault) -> Scope<'a> {
        let mut scope = Scope::default();
        scope.set("fault", Value::Fault(fault));
        scope.set("policy", Value::Policies(&dialect.resolved.policies.values));
        scope
    }

    pub fn request(request: &'a TurnRequest) -> Scope<'a> {
        let mut scope = Scope::default();
        scope.set("request", Value::Tree(&request.view));
        scope
    }

    pub fn framing(data: &'a Tree, frame: &'a str) -> Scope<'a> {
        let mut scope = Scope::default();
        scope.set("data", Value::Tree(data));
        scope.set("frame", Value::text(frame));
        scope
    }

    fn set(&mut self, name: &'static str, value: Value<'a>) {
        self.variables.push((Cow::Borrowed(name), value));
    }

    /// Adds a variable, which shadows an outer one of the same name.
    pub fn with(&self, name: &str, value: Value<'a>) -> Scope<'a> {
        let mut inner = self.clone();
        inner.variables.push((Cow::Owned(name.to_owned()), value));
        inner
    }

    pub fn get(&self, path: &VariablePath) -> Value<'a> {
        let Some((root, fields)) = path.0.split_first() else { return Value::Null };
        let found = self.variables.iter().rev().find(|(name, _)| **name == **root);
        let start = found.map_or(Value::Null, |(_, value)| value.clone());
        fields.iter().fold(start, |value, field| value.field(field))
    }
}
