//! What the frames or the body of a dialect read of the state of a turn, so that a turn need not keep the rest, and does
//! not pretend to have sent it.

use super::expression::Expression;
use super::skeleton::Skeleton;
use super::variables_read::ResolvedPath;
use super::visitor::{Binding, VisitedExpression};

/// When in doubt, it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateRead {
    /// Log-probabilities of text that was sent before. Those of the current delta are not part of the state.
    pub logprobs: bool,
    /// Tool calls, other than the one that a frame is about.
    pub calls: bool,
    /// The arguments of calls as JSON.
    pub inputs: bool,
    /// The index of items.
    pub index: bool,
    /// The new arguments of a call.
    pub args: bool,
}

/// Fields that contain log-probabilities, if they are written as a whole.
const RECORDS: &[&str] = &["turn", "choices", "choice", "items", "item", "parts", "part"];

impl StateRead {
    pub fn of(when: Option<&Expression>, skeleton: &Skeleton) -> StateRead {
        let mut read = StateRead::default();
        let mut add = |visited: VisitedExpression| read = read.or(StateRead::of_expression(&visited));
        if let Some(expression) = when {
            add(VisitedExpression { expression, is_value: false, is_written: false, bound: &[] });
        }
        skeleton.visit(&mut add);
        read
    }

    fn of_expression(visited: &VisitedExpression) -> StateRead {
        let mut read = StateRead::default();
        for path in visited.expression.variables() {
            let (path, is_element) = match ResolvedPath::of(path, visited.bound) {
                ResolvedPath::Given(path) => (path, false),
                ResolvedPath::Element(path) => (path, true),
            };
            let Some((root, fields)) = path.0.split_first() else { continue };
            read.args |= &**root == "args";
            let has_field = |names: &[&str]| fields.iter().any(|field| names.contains(&&**field));
            let last = fields.last().unwrap_or(root);
            // `{{ part }}` writes all its fields; what an element without a field contains is unknown here.
            let is_whole = visited.is_written && (RECORDS.contains(&&**last) || is_element && fields.is_empty());
            read.logprobs |= is_whole || has_field(&["logprobs"]);
            read.calls |= is_whole || has_field(&["calls", "items"]);
            let is_item = match is_element {
                true => is_element_of(root, visited.bound, &["calls", "items"]),
                false => &**root == "item" || has_field(&["calls", "items"]),
            };
            read.inputs |= is_whole || is_item && &**last == "input";
            read.index |= is_whole || is_item && &**last == "index";
        }
        // Fields can also be read by name: `part['logprobs']`, `parts | map(attribute='logprobs')`.
        if let Expression::Jinja { text, .. } = visited.expression {
            read.logprobs |= text.contains("logprobs");
            read.calls |= text.contains("calls") || text.contains("items");
            read.args |= text.contains("args");
            read.inputs |= text.contains("'input'") || text.contains("\"input\"");
        }
        read
    }

    pub fn or(self, other: StateRead) -> StateRead {
        StateRead {
            logprobs: self.logprobs || other.logprobs,
            calls: self.calls || other.calls,
            inputs: self.inputs || other.inputs,
            index: self.index || other.index,
            args: self.args || other.args,
        }
    }
}

/// Whether a name is that of the elements of a list in one of these fields.
fn is_element_of(name: &str, bound: &[Binding], lists: &[&str]) -> bool {
    let binding = bound.iter().rfind(|binding| binding.name == name);
    let list = binding.and_then(|binding| binding.element_of?.0.last());
    list.is_some_and(|list| lists.contains(&&**list))
}
