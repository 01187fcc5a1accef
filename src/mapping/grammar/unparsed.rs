//! Values that are compiled later, when the variables in scope and the other keys are known. They keep their subtree
//! with its spans.

use super::notation::notation_schema;
use super::section::{At, FromNode};
use crate::mapping::source::yaml::Node;
use schemars::JsonSchema;
use std::marker::PhantomData;

/// A section that is read later, because what it must contain depends on other keys.
#[derive(Clone, Copy, Debug)]
pub struct Unparsed<'n, S> {
    pub node: &'n Node,
    section: PhantomData<S>,
}

impl<'n, S> FromNode<'n> for Unparsed<'n, S> {
    fn from_node(node: &'n Node, _: At) -> Option<Self> {
        Some(Unparsed { node, section: PhantomData })
    }
}

notation_schema!([S: JsonSchema] Unparsed<'_, S>, |generator| generator.subschema_for::<S>());

/// Declares a value that is compiled later, when the variables in scope are known. It keeps its subtree and spans.
macro_rules! unparsed {
    ($(#[doc = $about:literal])* $name:ident) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'n>(pub &'n Node);

        impl<'n> FromNode<'n> for $name<'n> {
            fn from_node(node: &'n Node, _: At) -> Option<$name<'n>> {
                Some($name(node))
            }
        }
    };
}
pub(crate) use unparsed;

unparsed! {
    /// A value with a schema that depends on where it is.
    AnyNode
}

notation_schema!(AnyNode<'n>, {});

unparsed! {
    /// An expression.
    ExpressionNode
}

notation_schema! {
    /// A Jinja expression over the variables in scope, without braces. A condition is true unless it is null, false, 0,
    /// an empty text or an empty list.
    ExpressionNode<'n>, "expression", { "type": "string" }
}
