//! Constants for the scalar fields of a request: `implied:` of a model, `set:` of a route.

use crate::diagnostics::Code;
use crate::domain::Tree;
use crate::domain::emit::SCALARS;
use crate::mapping::grammar::collections::entries;
use crate::mapping::grammar::notation::{closed, notation_schema, or_null};
use crate::mapping::grammar::{At, FromNode};
use crate::mapping::language::field::coerced_constant;
use crate::mapping::language::field_schema::constant_schema;
use crate::mapping::source::field_reader::constant;
use crate::mapping::source::yaml::Node;

/// Values of request scalars, by name.
#[derive(Clone, Debug, Default)]
pub struct ScalarConstants(pub Vec<(&'static str, Tree)>);

impl<'n> FromNode<'n> for ScalarConstants {
    fn from_node(node: &'n Node, at: At) -> Option<ScalarConstants> {
        let mut values = Vec::new();
        for entry in entries(node, at)? {
            let Some(field) = SCALARS.iter().find(|field| field.name == entry.key) else {
                let message = format!("unknown request field `{}`", entry.key);
                let known = SCALARS.iter().map(|field| field.name);
                at.cx.unknown(Code::UnknownKey, entry.key_span, message, &entry.key, known);
                continue;
            };
            let value = coerced_constant(field, &constant(&entry.value), &entry.value, at.cx);
            values.extend(value.filter(|value| *value != Tree::Null).map(|value| (field.name, value)));
        }
        Some(ScalarConstants(values))
    }
}

notation_schema!(ScalarConstants, |_generator| {
    let fields = SCALARS.iter().map(|field| (field.name.to_owned(), constant_schema(field.field_type)));
    or_null(closed(fields.collect()))
});
