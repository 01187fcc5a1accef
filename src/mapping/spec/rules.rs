//! Rules for backend events, client requests and captures. They differ only in what they can emit.

use super::field;
use super::notation::{Anything, BySelector, List, OneOrMore, Selector, closed, exactly_one};
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

/// All rules that hold fire, in the order of the file, and emit in the order of the list. Rules that stand together and
/// have the same `each` walk it once, element by element. A rule says exactly one of `emit`, `drop` and `fail`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "{V}Rule", title = "rule", extend("oneOf" = exactly_one(["emit", "drop", "fail"])))]
pub struct Rule<V: Emits + JsonSchema> {
    /// For people.
    pub name: Option<String>,
    /// A selector; the rule looks at every node that it finds, as `@`.
    pub each: Option<Selector>,
    /// Conditions, all of which must hold: selector to test.
    #[schemars(rename = "where")]
    pub conditions: Option<BySelector<Test>>,
    /// Only if no earlier rule of its group held.
    #[schemars(extend("default" = false))]
    pub otherwise: Option<bool>,
    /// What is said. An entry may have an `each:` and a `where:` of its own, beside the word.
    pub emit: Option<OneOrMore<Emit<V>>>,
    /// Why: it is known and says nothing.
    pub drop: Option<String>,
    /// The message: it ends the turn; in a request, it is refused.
    pub fail: Option<String>,
}

/// A rule over events, which may also go by their names.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "rule", rename = "Named{V}Rule")]
pub struct NamedRule<V: Emits + JsonSchema> {
    /// The name of the events, or several; needs `event_name:` beside `rules:`.
    pub event: Option<List<String>>,
    #[schemars(flatten)]
    pub rule: Rule<V>,
}

/// A test of one node: `exists`, `absent`, a type (`string`, `number`, `boolean`, `object`, `array`, `"null"`), a value
/// that it equals, a list of such values, or `{ equals: VALUE }`.
pub struct Test;

impl JsonSchema for Test {
    fn schema_name() -> Cow<'static, str> {
        "Test".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Anything>();
        let words: Vec<&str> = ["exists", "absent"].into_iter().chain(TYPES.iter().copied()).collect();
        let shown = words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
        json_schema!({
            "title": "test",
            "description": format!(
                "A test of one node: {shown}; a value that it equals, a list of such values, or `{{ equals: VALUE }}`."
            ),
            "examples": words,
            "if": { "type": "object" },
            "then": { "required": ["equals"], "additionalProperties": false, "properties": { "equals": value } },
        })
    }
}

/// One word with its fields.
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
        properties.insert("each".to_owned(), described(each, "Once for every node that it finds, as `@`."));
        let conditions = generator.subschema_for::<BySelector<Test>>();
        properties.insert("where".to_owned(), described(conditions, "Only if these hold."));
        for word in V::GRAMMAR.kinds {
            let fields = field::fields(word.fields, generator);
            properties.insert(word.name.to_owned(), described(fields, word.description));
        }
        let mut schema = closed(properties);
        schema.insert("title".to_owned(), V::GRAMMAR.noun.into());
        let about = format!("One {} with its fields. What is not there is not said.", V::GRAMMAR.noun);
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
