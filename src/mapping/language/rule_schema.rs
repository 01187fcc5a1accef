//! Schemas of rules for backend events, client requests and captures. They differ only in what they can emit.

use super::condition::Conditions;
use super::field_schema;
use super::rule::RuleEntry;
use super::selector::{LoopName, Selector};
use crate::domain::emit::{EVENTS, EmitGrammar, ITEMS, OBSERVATIONS, PARTS, TOOLS};
use crate::mapping::grammar::collections::OneOrMore;
use crate::mapping::grammar::notation::{closed, exactly_one};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// What a rule can emit.
pub trait Emits {
    const NAME: &'static str;
    /// What the rules emit, in the reference.
    const PLURAL: &'static str;
    const GRAMMAR: &'static EmitGrammar;
}

macro_rules! emits {
    ($($type:ident: $name:literal, $plural:literal = $grammar:ident),*) => {$(
        #[derive(Clone, Copy, Debug)]
        pub struct $type;

        impl Emits for $type {
            const NAME: &'static str = $name;
            const PLURAL: &'static str = $plural;
            const GRAMMAR: &'static EmitGrammar = &$grammar;
        }
    )*};
}
emits!(
    EventRules: "Event", "events" = EVENTS,
    ItemRules: "Item", "items" = ITEMS,
    PartRules: "Part", "content parts" = PARTS,
    ToolRules: "Tool", "tools" = TOOLS,
    ObservationRules: "Observation", "observations" = OBSERVATIONS
);

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleOf<V>(PhantomData<V>);

impl<V: Emits> JsonSchema for RuleOf<V> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Rule", V::NAME).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = NamedRuleOf::<V>::json_schema(generator);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.shift_remove("event");
        }
        schema
    }
}

/// A rule for events, which can also match the event name.
#[derive(Clone, Copy, Debug)]
pub struct NamedRuleOf<V>(PhantomData<V>);

impl<V: Emits> JsonSchema for NamedRuleOf<V> {
    fn schema_name() -> Cow<'static, str> {
        format!("Named{}Rule", V::NAME).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = RuleEntry::json_schema(generator);
        schema.insert("title".to_owned(), format!("rule for {}", V::PLURAL).into());
        let emit = generator.subschema_for::<OneOrMore<Emit<V>>>();
        if let Some(Value::Object(property)) = schema.get_mut("properties").and_then(|p| p.get_mut("emit")) {
            property.extend(emit.as_object().cloned().unwrap_or_default());
        }
        schema
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
        let name = generator.subschema_for::<LoopName>();
        properties.insert("as".to_owned(), described(name, "A name for the element of `each`: `$NAME.index`."));
        let conditions = generator.subschema_for::<Conditions>();
        properties.insert("where".to_owned(), described(conditions, "Emits only if these conditions match."));
        for kind in V::GRAMMAR.kinds {
            let fields = field_schema::fields(kind.fields, generator);
            properties.insert(kind.name.to_owned(), described(fields, kind.description));
        }
        let inner = generator.subschema_for::<OneOrMore<Emit<V>>>();
        let about = "Entries for each element of the list, which may have lists of their own, at most four in all.";
        properties.insert("emit".to_owned(), described(inner, about));
        let mut schema = closed(properties);
        schema.insert("title".to_owned(), V::GRAMMAR.noun.into());
        let about = format!("One {} with its fields. A field without a value is omitted.", V::GRAMMAR.noun);
        schema.insert("description".to_owned(), about.into());
        schema.insert("dependentRequired".to_owned(), json!({ "as": ["each"] }));
        schema.insert("oneOf".to_owned(), exactly_one(V::GRAMMAR.names().chain(["emit"])));
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
