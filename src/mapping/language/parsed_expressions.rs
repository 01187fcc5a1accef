//! What the template engine reports about expressions, by their texts. The dialects of a set have most expressions in
//! common, with every profile.

use minijinja::{Environment, Error, ErrorKind, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

#[derive(Default)]
pub struct ParsedExpressions(RefCell<HashMap<Box<str>, Rc<ParsedExpression>>>);

/// An expression that can be parsed.
pub(super) struct ParsedExpression {
    /// The variables that it reads, without those in slices.
    pub variables: Vec<String>,
    /// The error of an evaluation without values: the only ones left are those of the calls.
    pub error: Option<ErrorKind>,
}

impl ParsedExpressions {
    pub(super) fn get(&self, text: &str, environment: &Environment) -> Result<Rc<ParsedExpression>, Error> {
        if let Some(known) = self.0.borrow().get(text) {
            return Ok(known.clone());
        }
        let expression = environment.compile_expression(text)?;
        let variables = expression.undeclared_variables(true).into_iter().collect();
        let error = expression.eval(BTreeMap::<String, Value>::new()).err().map(|error| error.kind());
        let parsed = Rc::new(ParsedExpression { variables, error });
        // What a table contains differs between files.
        if !text.contains("table") {
            self.0.borrow_mut().insert(text.into(), parsed.clone());
        }
        Ok(parsed)
    }
}
