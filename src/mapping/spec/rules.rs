//! Rules for backend events, client requests and captures. They differ only in what they can emit.

use super::field;
use super::notation::{AnyValue, BySelector, List, OneOrMore, Selector, closed, exactly_one};
use crate::domain::emit::{EVENTS, EmitGrammar, ITEMS, OBSERVATIONS, PARTS, TOOLS};
use crate::mapping::language::condition::TYPES;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// What a rule can emit.
pub trait Emits {
    const NAME: &'static str;
    const GRAMMAR: &'static EmitGrammar;
}

macro_rules! emits {
    ($($name:ident = $grammar:ident),*) => {$(
        pub struct $name;

        impl Emits for $name {
            const NAME: &'static str = stringify!($name);
            const GRAMMAR: &'static EmitGrammar = &$grammar;
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                Schema::default()
            }
        }
    )*};
}
emits!(Event = EVENTS, Item = ITEMS, Part = PARTS, Tool = TOOLS, Observation = OBSERVATIONS);

/// All matching rules fire, in the order of the file, and emit in the order of the list. Adjacent rules with the same
/// `each` form a group, which walks the list once, element by element. A rule has exactly one of `emit`, `drop` and
/// `fail`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "{V}Rule", title = "rule", extend("oneOf" = exactly_one(["emit", "drop", "fail"])))]
pub struct Rule<V: Emits + JsonSchema> {
    /// A description for readers.
    pub name: Option<String>,
    /// A selector; the rule is applied to every node that it finds, as `@`.
    pub each: Option<Selector>,
    /// Conditions, all of which must match: selector to test.
    #[schemars(rename = "where")]
    pub conditions: Option<BySelector<Test>>,
    /// Applies only if no earlier rule of its group matched.
    #[schemars(extend("default" = false))]
    pub otherwise: Option<bool>,
    /// What the rule emits. An entry may have its own `each:` and `where:`.
    pub emit: Option<OneOrMore<Emit<V>>>,
    /// The reason why the event is ignored: it is known and has no effect.
    pub drop: Option<String>,
    /// The message of the fault that ends the turn; in a request, of the 400.
    pub fail: Option<String>,
}

/// A rule for events, which can also match the event name.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "rule", rename = "Named{V}Rule")]
pub struct NamedRule<V: Emits + JsonSchema> {
    /// One event name or a list of names; needs `event_name:` next to `rules:`.
    pub event: Option<List<String>>,
    #[schemars(flatten)]
    pub rule: Rule<V>,
}

/// A test of one node: `exists`, `absent`, a type (`string`, `number`, `boolean`, `object`, `array`, `"null"`), an
/// equal value, a list of such values, or `{ equals: VALUE }`.
pub struct Test;

impl JsonSchema for Test {
    fn schema_name() -> Cow<'static, str> {
        "Test".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<AnyValue>();
        let words: Vec<&str> = ["exists", "absent"].into_iter().chain(TYPES.iter().copied()).collect();
        let shown = words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
        json_schema!({
            "title": "test",
            "description": format!(
                "A test of one node: {shown}; an equal value, a list of such values, or `{{ equals: VALUE }}`."
            ),
            "examples": words,
            "if": { "type": "object" },
            "then": { "required": ["equals"], "additionalProperties": false, "properties": { "equals": value } },
        })
    }
}

/// One emitted value with its fields.
pub struct Emit<V>(PhantomData<V>);

impl<V: Emits> JsonSchema for Emit<V> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Emit", V::NAME).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let described = |mut schema: Schema, text: &str| -> Value {
            schema.insert("description".to_owned(), text.into());
            schema.to_value()
        };
        let mut properties = Map::new();
        let each = generator.subschema_for::<Selector>();
        properties.insert("each".to_owned(), described(each, "Emits once for every node that it finds, as `@`."));
        let conditions = generator.subschema_for::<BySelector<Test>>();
        properties.insert("where".to_owned(), described(conditions, "Emits only if these conditions match."));
        for kind in V::GRAMMAR.kinds {
            let fields = field::fields(kind.fields, generator);
            properties.insert(kind.name.to_owned(), described(fields, kind.description));
        }
        let mut schema = closed(properties);
        schema.insert("title".to_owned(), V::GRAMMAR.noun.into());
        let about = format!("One {} with its fields. A field without a value is omitted.", V::GRAMMAR.noun);
        schema.insert("description".to_owned(), about.into());
        schema.insert("oneOf".to_owned(), exactly_one(V::GRAMMAR.names()));
        schema
    }
}

/// `event:` in a rule requires the selector of the event name.
pub fn event_rules_need_a_name_selector(schema: &mut Schema) {
    let nameless = json!({ "properties": { "event": false } });
    schema.insert("if".to_owned(), json!({ "not": { "required": ["event_name"] } }));
    let rules = json!({ "if": { "type": "array" }, "then": { "items": nameless }, "else": nameless });
    schema.insert("then".to_owned(), json!({ "properties": { "rules": rules } }));
}
