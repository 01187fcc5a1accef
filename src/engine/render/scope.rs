//! The variables in scope while a skeleton is rendered.

use super::Value;
use crate::domain::variables::{self, FrameContext, Record, Variable, frame_variables};
use crate::domain::{Fault, Tree, TurnRequest, TurnState};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::language::expression::VariablePath;
use std::borrow::Cow;

#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    variables: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Scope<'a> {
    pub fn frame(dialect: &'a DialectPlan, context: &FrameContext<'a>) -> Scope<'a> {
        let variables = frame_variables(context).map(|(name, value)| (Cow::Borrowed(name), value));
        Scope { variables: variables.collect() }.with_policies(dialect)
    }

    pub fn body(dialect: &'a DialectPlan, state: &'a TurnState, request: &'a TurnRequest) -> Scope<'a> {
        Scope::request(request).set(variables::TURN, Record::Turn(state)).with_policies(dialect)
    }

    pub fn error(dialect: &'a DialectPlan, fault: &'a Fault) -> Scope<'a> {
        Scope::default().set(variables::FAULT, Record::Fault(fault)).with_policies(dialect)
    }

    pub fn request(request: &'a TurnRequest) -> Scope<'a> {
        Scope::default().set(variables::REQUEST, Record::request(request))
    }

    pub fn framing(data: &'a Tree, frame: &'a str) -> Scope<'a> {
        Scope::default().set(variables::DATA, data).set(variables::FRAME, frame)
    }

    /// Adds a variable of the place.
    pub fn set(mut self, (name, _): Variable, value: impl Into<Value<'a>>) -> Scope<'a> {
        self.variables.push((Cow::Borrowed(name), value.into()));
        self
    }

    pub fn with_policies(mut self, dialect: &'a DialectPlan) -> Scope<'a> {
        let policies = Value::Policies(&dialect.resolved.policies.values);
        self.variables.push((Cow::Borrowed("policy"), policies));
        self
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
