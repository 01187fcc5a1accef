//! The variables in scope while a skeleton is rendered.

use super::Value;
use crate::domain::variables::{self, FrameContext, Record, Variable, frame_variables};
use crate::domain::{Fault, TurnRequest, TurnState};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::language::expression::VariablePath;

#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// The variables of the place, and then those of the directives around the current value.
    variables: Vec<(&'a str, Value<'a>)>,
}

/// How many variables most scopes have.
const USUAL_VARIABLES: usize = 6;

impl<'a> Scope<'a> {
    pub fn frame(dialect: &'a DialectPlan, context: &FrameContext<'a>) -> Scope<'a> {
        Scope { variables: frame_variables(context).collect() }.with_policies(dialect)
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

    pub fn framing(data: impl Into<Value<'a>>, frame: &'a str) -> Scope<'a> {
        Scope::default().set(variables::DATA, data).set(variables::FRAME, frame)
    }

    /// Adds a variable of the place.
    pub fn set(mut self, (name, _): Variable, value: impl Into<Value<'a>>) -> Scope<'a> {
        if self.variables.is_empty() {
            self.variables.reserve(USUAL_VARIABLES);
        }
        self.variables.push((name, value.into()));
        self
    }

    pub fn with_policies(mut self, dialect: &'a DialectPlan) -> Scope<'a> {
        let policies = Value::Policies(&dialect.resolved.policies.values);
        self.variables.push(("policy", policies));
        self
    }

    /// Adds a variable of a directive, which shadows an outer one of the same name, while `inside` is evaluated.
    pub fn within<T>(&mut self, name: &'a str, value: Value<'a>, inside: impl FnOnce(&mut Scope<'a>) -> T) -> T {
        let around = self.variables.len();
        self.variables.push((name, value));
        let result = inside(self);
        self.variables.truncate(around);
        result
    }

    pub fn get(&self, path: &VariablePath) -> Value<'a> {
        let Some((root, names)) = path.0.split_first() else { return Value::Null };
        let Some(variable) = self.variable(root) else { return Value::Null };
        match (names, path.fields()) {
            // Only what is read of a variable is copied.
            ([name, names @ ..], [field, fields @ ..]) => {
                let mut value = variable.named_field(name, *field);
                for (name, field) in names.iter().zip(fields) {
                    value = value.named_field(name, *field);
                }
                value
            }
            ([], _) | (_, []) => variable.clone(),
        }
    }

    fn variable(&self, wanted: &str) -> Option<&Value<'a>> {
        self.variables.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }
}
