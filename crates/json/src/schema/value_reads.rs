//! The members of which a schema looks at the value. Of all others only the type matters: a document that is valid stays
//! valid with another string in place of a string.

use std::collections::HashSet;

use serde_json::Value;

use super::location::{SchemaLocation, Target};
use super::set::Documents;

/// The members of which a schema looks at more than the type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ValueReads {
    names: HashSet<String>,
    /// Not known by name, so it may be any member.
    any: bool,
}

impl ValueReads {
    pub(super) fn of(documents: &Documents, location: SchemaLocation) -> ValueReads {
        let mut walk = Walk { documents, reads: ValueReads::default(), visited: HashSet::new() };
        walk.at(&location, None);
        walk.reads
    }

    pub(super) fn contains(&self, member: &str) -> bool {
        self.any || self.names.contains(member)
    }
}

/// Keywords without an effect on the validity of a value, or with one that depends only on its type, on the names of its
/// members or on the number of its elements.
const INDIFFERENT: [&str; 24] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "$anchor",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
    "type",
    "required",
    "dependentRequired",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "minItems",
    "maxItems",
    "minContains",
    "maxContains",
];

struct Walk<'d> {
    documents: &'d Documents,
    reads: ValueReads,
    /// Schemas, by their address, with the member that they were reached by.
    visited: HashSet<(usize, Option<&'d str>)>,
}

impl<'d> Walk<'d> {
    fn at(&mut self, location: &SchemaLocation, member: Option<&'d str>) {
        let found = self.documents.get_key_value(&location.document);
        match found.and_then(|(path, document)| Some((path, document.pointer(&location.pointer)?))) {
            Some((path, schema)) => self.schema(schema, path, member),
            None => self.reads.any = true,
        }
    }

    /// `document`: the path of the document that the schema is in. `member`: of the value that the schema is for; `None`
    /// for the document, for elements of lists and for members that are not known by name.
    fn schema(&mut self, schema: &'d Value, document: &'d str, member: Option<&'d str>) {
        if self.reads.any || !self.visited.insert((std::ptr::from_ref(schema).addr(), member)) {
            return;
        }
        let keywords = match schema {
            Value::Bool(_) => return,
            Value::Object(keywords) => keywords,
            _ => return self.reads.any = true,
        };
        for (keyword, held) in keywords {
            let elements = || held.as_array().into_iter().flatten();
            let members = || held.as_object().into_iter().flatten();
            match keyword.as_str() {
                "properties" => members().for_each(|(name, inner)| self.schema(inner, document, Some(name))),
                "dependentSchemas" => members().for_each(|(_, inner)| self.schema(inner, document, member)),
                "patternProperties" => members().for_each(|(_, inner)| self.schema(inner, document, None)),
                "allOf" | "anyOf" | "oneOf" => elements().for_each(|inner| self.schema(inner, document, member)),
                "if" | "then" | "else" | "not" => self.schema(held, document, member),
                // Elements are no members, but what is in them may be.
                "prefixItems" => elements().for_each(|inner| self.schema(inner, document, None)),
                "additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems" | "contains" => {
                    self.schema(held, document, None);
                }
                "$ref" => self.reference(held, document, member),
                // A bound that no count of frames is below.
                "minimum" if held.as_f64().is_some_and(|least| least <= 0.0) => {}
                "const" => self.value(&[held], member),
                "enum" => self.value(&elements().collect::<Vec<_>>(), member),
                "uniqueItems" if *held == Value::Bool(false) => {}
                "uniqueItems" => self.reads.any = true,
                indifferent if INDIFFERENT.contains(&indifferent) => {}
                // A length, a pattern, a bound; or a keyword that is not known here.
                _ => self.value(&[], member),
            }
        }
    }

    fn reference(&mut self, reference: &Value, document: &str, member: Option<&'d str>) {
        let here = SchemaLocation { document: document.to_owned(), pointer: String::new() };
        match reference.as_str().map(|reference| here.follow(reference)) {
            Some(Target::SchemaLocation(target)) => self.at(&target, member),
            Some(Target::BuiltIn | Target::Remote) | None => self.reads.any = true,
        }
    }

    /// The value of this member is compared, perhaps with these.
    fn value(&mut self, others: &[&Value], member: Option<&str>) {
        // Of a list or an object, everything in it is compared.
        let is_deep = others.iter().any(|other| other.is_array() || other.is_object());
        match member.filter(|_| !is_deep) {
            Some(name) => {
                self.reads.names.insert(name.to_owned());
            }
            None => self.reads.any = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reads(schema: Value) -> (bool, Vec<String>) {
        let documents = Documents::from([("a.json".to_owned(), schema)]);
        let reads = ValueReads::of(&documents, SchemaLocation::parse("a.json"));
        let mut names: Vec<String> = reads.names.into_iter().collect();
        names.sort();
        (reads.any, names)
    }

    fn named(names: &[&str]) -> (bool, Vec<String>) {
        (false, names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn members_with_a_keyword_for_their_value_are_found() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["object"],
            "properties": {
                "object": { "const": "chunk" },
                "seq": { "type": "integer", "minimum": 0 },
                "choices": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/choice" } }
            },
            "$defs": { "choice": { "properties": {
                "text": { "type": ["string", "null"] },
                "long": { "minLength": 1 },
                "number": { "minimum": 1 },
                "finish": { "anyOf": [ { "type": "null" }, { "enum": ["stop"] } ] },
                "self": { "$ref": "#/$defs/choice" }
            } } }
        });
        assert_eq!(reads(schema), named(&["finish", "long", "number", "object"]));
    }

    #[test]
    fn what_is_not_known_by_name_may_be_any_member() {
        for schema in [
            json!({ "additionalProperties": { "const": "a" } }),
            json!({ "patternProperties": { "^x": { "pattern": "a" } } }),
            json!({ "properties": { "a": { "const": { "b": "c" } } } }),
            json!({ "properties": { "a": { "enum": [["c"]] } } }),
            json!({ "properties": { "a": { "uniqueItems": true, "items": {} } }, "enum": [1] }),
            json!({ "$ref": "#anchor" }),
            json!({ "$ref": "#/nowhere" }),
            json!({ "$dynamicRef": "#/a" }),
            json!({ "items": { "format": "uri" } }),
        ] {
            assert!(reads(schema.clone()).0, "{schema}");
        }
    }

    #[test]
    fn elements_that_must_differ_are_read() {
        // With the member that contains the list; what is inside its elements may be any member.
        let schema = json!({ "properties": { "a": { "uniqueItems": true } } });
        assert!(reads(schema).0);
    }
}
