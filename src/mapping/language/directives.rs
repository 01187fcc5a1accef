//! The directives of skeletons: `$each`, `$switch`, `$if`, `$use` and `$reject`.

use crate::mapping::grammar::collections::{List, Map};
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::grammar::unparsed::{ExpressionNode, unparsed};
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::yaml::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

unparsed! {
    /// A skeleton: a YAML value with placeholders and directives.
    SkeletonNode
}

impl JsonSchema for SkeletonNode<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Skeleton".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let skeleton = generator.subschema_for::<SkeletonNode>();
        let (each, switch) = (generator.subschema_for::<Each>(), generator.subschema_for::<Switch>());
        let (condition, fragment) = (generator.subschema_for::<If>(), generator.subschema_for::<Use>());
        let (reject, merge) = (generator.subschema_for::<Reject>(), generator.subschema_for::<Merge>());
        json_schema!({
            "title": "skeleton",
            "description": "A YAML value with placeholders: `\"{{ name }}\"` is the value of a variable with its type, \
                `\"{{? name }}\"` omits its key if the value is null. A map with a key that begins with `$` is a \
                directive: `$each`, `$switch`, `$if`, `$use`, `$merge` or, in a backend's request, `$reject`.",
            "items": skeleton,
            "if": { "type": "object" },
            "then": {
                "if": { "required": ["$use"] }, "then": fragment,
                "else": { "if": { "required": ["$each"] }, "then": each,
                "else": { "if": { "required": ["$if"] }, "then": condition,
                "else": { "if": { "required": ["$switch"] }, "then": switch,
                "else": { "if": { "required": ["$reject"] }, "then": reject,
                "else": { "if": { "required": ["$merge"] }, "then": merge,
                "else": { "propertyNames": { "pattern": "^([^$]|$)" }, "additionalProperties": skeleton },
                } } } } },
            },
        })
    }
}

section! {
    /// One map made of the members of several. A member of a later map takes precedence; what is null, absent or no map
    /// has no members.
    #[subject = "`$merge`"]
    #[title = "$merge"]
    pub struct Merge<'n> {
        /// The maps.
        parts as "$merge": List<SkeletonNode<'n>>,
    }
}

pub const DIRECTIVES: &[&str] = &["$each", "$switch", "$if", "$use", "$merge", "$reject"];

section! {
    /// A list with one element for each element of another list.
    #[subject = "`$each`"]
    #[title = "$each"]
    pub struct Each<'n> {
        /// The list: a variable, not an expression. If it is null, the result is an empty list.
        list as "$each": ExpressionNode<'n>,
        /// The name of an element in `where` and `do`.
        name as "as": String,
        /// A condition; elements that do not match are skipped.
        filter as "where": Option<ExpressionNode<'n>>,
        /// The result for each element.
        body as "do": SkeletonNode<'n>,
    }
}

section! {
    /// One of several values, selected by a word. Over a variable with a closed list of values it must have a case for
    /// each of them or `$default:`. Elsewhere the key is omitted if no case matches.
    #[subject = "`$switch`"]
    #[title = "$switch"]
    #[transform = other_keys_are_cases]
    pub struct Switch<'n> {
        /// An expression for the word.
        on as "$switch": ExpressionNode<'n>,
        /// For every other word.
        default as "$default": Option<SkeletonNode<'n>>,
    }
}

fn other_keys_are_cases(schema: &mut Schema) {
    schema.insert("additionalProperties".to_owned(), serde_json::json!({ "$ref": "#/$defs/Skeleton" }));
}

section! {
    /// A value if a condition is true.
    #[subject = "`$if`"]
    #[title = "$if"]
    pub struct If<'n> {
        /// The condition.
        condition as "$if": ExpressionNode<'n>,
        /// The value if it is true.
        then: SkeletonNode<'n>,
        /// The value if it is false; without it the key is omitted.
        otherwise as "else": Option<SkeletonNode<'n>>,
    }
}

section! {
    /// A fragment, inserted here. It sees the variables of this place.
    #[subject = "`$use`"]
    #[title = "$use"]
    pub struct Use<'n> {
        /// The name of the fragment, below `fragments:` of this file or of shared.yaml.
        fragment as "$use": Spanned<String>,
        /// Variables under other names: `{ usage: turn.usage }`.
        with: Map<ExpressionNode<'n>> = Map::default(),
    }
}

section! {
    /// Rejects the client's request with 400. Only in the body and the headers of a backend's request, for values that the
    /// backend does not support.
    #[subject = "`$reject`"]
    #[title = "$reject"]
    pub struct Reject<'n> {
        /// The error message.
        message as "$reject": SkeletonNode<'n>,
        /// The member of the client's request that is at fault; `content`: the one with the messages, by the client's name.
        param: Option<SkeletonNode<'n>>,
    }
}
