//! The arguments of a tool call as JSON (`item.input`), for dialects that do not send them as text.

use super::{OnMoment, Turn};
use crate::domain::policy::{InvalidArguments, NonObjectArguments};
use crate::domain::{Fault, FaultKind, ItemKind, Tree};

impl Turn {
    /// Parses the arguments of a call that closes, if the dialect reads them as JSON. Arguments that are not JSON are a
    /// fault, or a JSON string, by the policy `invalid_arguments`; never an empty object, which the model did not send.
    /// Returns false if the turn has failed.
    pub(super) fn parse_input(&mut self, item: usize, on_moment: &mut OnMoment) -> bool {
        if !self.parse_inputs {
            return true;
        }
        // A failure here is none that keeps what came before: the call cannot be closed.
        let truncating = std::mem::replace(&mut self.truncating, true);
        let call = &self.state.items[item];
        let input = match call.kind {
            ItemKind::Function if call.arguments.trim().is_empty() => Tree::Map(Vec::new()),
            ItemKind::Function => match (self.read_arguments(&call.arguments), self.policies.invalid_arguments) {
                (Ok(input), _) => input,
                (Err(_), InvalidArguments::Text) => Tree::from(call.arguments.as_str()),
                (Err(why), InvalidArguments::Fault) => {
                    let message = format!("the arguments of the call of `{}` are {why}", call.name);
                    self.fail(Fault::new(FaultKind::Malformed, message), on_moment);
                    return false;
                }
            },
            // The input of a custom tool is text.
            ItemKind::Custom => Tree::from(call.arguments.as_str()),
            ItemKind::Message | ItemKind::Reasoning => Tree::Null,
        };
        if !self.charge(input.heap_bytes(), on_moment) {
            return false;
        }
        self.truncating = truncating;
        self.state.items[item].input = Some(input);
        true
    }

    /// The arguments as JSON, or why they are invalid.
    fn read_arguments(&self, arguments: &str) -> Result<Tree, String> {
        let input = Tree::parse(arguments.as_bytes()).map_err(|error| format!("not valid JSON: {error}"))?;
        match self.policies.non_object_arguments {
            NonObjectArguments::Invalid if input.as_map().is_none() => {
                Err(format!("no object but {}", with_article(input.type_name())))
            }
            NonObjectArguments::Invalid | NonObjectArguments::Keep => Ok(input),
        }
    }
}

fn with_article(type_name: &str) -> String {
    let article = if type_name.starts_with(['a', 'o']) { "an" } else { "a" };
    format!("{article} {type_name}")
}
