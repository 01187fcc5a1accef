//! The members of which a schema looks at the value. Of all others only the type matters: a document that is valid stays
//! valid with another string in place of a string, and with another count in place of a count.

use std::collections::HashSet;

use fnv::FnvHashMap;
use serde_json::Value;

use super::location::{SchemaLocation, Target};
use super::set::Documents;

/// The members of which a schema looks at more than the type, by their names, wherever they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ValueReads {
    members: FnvHashMap<String, Read>,
    /// It may look at any value.
    all: bool,
}

/// What a schema looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Read {
    /// Whether the member, if it is a string, has any text.
    Presence,
    /// The value of the member, if that is a scalar.
    Scalar,
    /// All values in the member.
    All,
}

impl ValueReads {
    pub(super) fn of(documents: &Documents, location: SchemaLocation) -> ValueReads {
        let mut walk = Walk { documents, reads: ValueReads::default(), visited: HashSet::new() };
        walk.at(&location, Place::default());
        walk.reads
    }

    pub(super) fn reads_all(&self) -> bool {
        self.all
    }

    pub(super) fn of_member(&self, name: &str) -> Option<Read> {
        self.members.get(name).copied()
    }

    /// Whether it looks at the value inside these members, the innermost last.
    pub(super) fn contains<'n>(&self, mut members: impl DoubleEndedIterator<Item = &'n str>) -> bool {
        let own = members.next_back().and_then(|name| self.of_member(name));
        self.all || own.is_some() || members.any(|name| self.of_member(name) == Some(Read::All))
    }
}

/// Where a value is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Place<'d> {
    /// The member that it is the value of; `None` for the document, for elements of lists and for members that are not
    /// known by name.
    member: Option<&'d str>,
    /// The innermost member with a known name that it is the value of, or inside of.
    around: Option<&'d str>,
}

impl<'d> Place<'d> {
    fn member(name: &'d str) -> Place<'d> {
        Place { member: Some(name), around: Some(name) }
    }

    /// Inside of a list, or in a member without a known name.
    fn inside(self) -> Place<'d> {
        Place { member: None, ..self }
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

/// Keywords that look at a scalar, and at nothing that is in a list or an object.
const OF_SCALARS: [&str; 11] = [
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "contentEncoding",
    "contentMediaType",
];

struct Walk<'d> {
    documents: &'d Documents,
    reads: ValueReads,
    /// Schemas, by their address, with the places that they were reached for.
    visited: HashSet<(usize, Place<'d>)>,
}

impl<'d> Walk<'d> {
    fn at(&mut self, location: &SchemaLocation, place: Place<'d>) {
        let found = self.documents.get_key_value(&location.document);
        match found.and_then(|(path, document)| Some((path, document.pointer(&location.pointer)?))) {
            Some((path, schema)) => self.schema(schema, path, place),
            None => self.reads.all = true,
        }
    }

    /// `document`: the path of the document that the schema is in. `place`: of the value that the schema is for.
    fn schema(&mut self, schema: &'d Value, document: &'d str, place: Place<'d>) {
        if self.reads.all || !self.visited.insert((std::ptr::from_ref(schema).addr(), place)) {
            return;
        }
        let keywords = match schema {
            Value::Bool(_) => return,
            Value::Object(keywords) => keywords,
            _ => return self.reads.all = true,
        };
        for (keyword, held) in keywords {
            let elements = || held.as_array().into_iter().flatten();
            let members = || held.as_object().into_iter().flatten();
            match keyword.as_str() {
                "properties" => {
                    members().for_each(|(name, inner)| self.schema(inner, document, Place::member(name)));
                }
                "dependentSchemas" => members().for_each(|(_, inner)| self.schema(inner, document, place)),
                "patternProperties" => members().for_each(|(_, inner)| self.schema(inner, document, place.inside())),
                "allOf" | "anyOf" | "oneOf" => elements().for_each(|inner| self.schema(inner, document, place)),
                "if" | "then" | "else" | "not" => self.schema(held, document, place),
                // Elements are no members, but what is in them may be.
                "prefixItems" => elements().for_each(|inner| self.schema(inner, document, place.inside())),
                "additionalProperties" | "unevaluatedProperties" | "items" | "unevaluatedItems" | "contains" => {
                    self.schema(held, document, place.inside());
                }
                "$ref" => self.reference(held, document, place),
                // A bound that no count is below.
                "minimum" if held.as_f64().is_some_and(|least| least <= 0.0) => {}
                // Any text is as long as that.
                "minLength" if held.as_u64().is_some_and(|least| least <= 1) => self.read(place, Read::Presence),
                "maxLength" if held.as_u64() == Some(0) => self.read(place, Read::Presence),
                "const" => self.compared(&[held], place),
                "enum" => self.compared(&elements().collect::<Vec<_>>(), place),
                "uniqueItems" if *held == Value::Bool(false) => {}
                indifferent if INDIFFERENT.contains(&indifferent) => {}
                scalar if OF_SCALARS.contains(&scalar) => self.read(place, Read::Scalar),
                // `uniqueItems`, and keywords that are not known here.
                _ => self.read(place, Read::All),
            }
        }
    }

    fn reference(&mut self, reference: &Value, document: &str, place: Place<'d>) {
        let here = SchemaLocation { document: document.to_owned(), pointer: String::new() };
        match reference.as_str().map(|reference| here.follow(reference)) {
            Some(Target::SchemaLocation(target)) => self.at(&target, place),
            Some(Target::BuiltIn | Target::Remote) | None => self.reads.all = true,
        }
    }

    /// The value is compared with these.
    fn compared(&mut self, others: &[&Value], place: Place<'d>) {
        // Of a list or an object, everything in it is compared.
        let is_deep = others.iter().any(|other| other.is_array() || other.is_object());
        self.read(place, if is_deep { Read::All } else { Read::Scalar });
    }

    fn read(&mut self, Place { member, around }: Place<'d>, read: Read) {
        let (name, read) = match (member, around) {
            (Some(name), _) => (name, read),
            (None, Some(name)) => (name, Read::All),
            (None, None) => return self.reads.all = true,
        };
        let known = self.reads.members.entry(name.to_owned()).or_insert(read);
        *known = read.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reads(schema: Value) -> Vec<(String, Read)> {
        let documents = Documents::from([("a.json".to_owned(), schema)]);
        let reads = ValueReads::of(&documents, SchemaLocation::parse("a.json"));
        let mut members: Vec<(String, Read)> = reads.members.into_iter().collect();
        members.sort();
        if reads.all { vec![("(all)".to_owned(), Read::All)] } else { members }
    }

    fn members(names: &[&str], read: Read) -> Vec<(String, Read)> {
        names.iter().map(|name| ((*name).to_owned(), read)).collect()
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
                "long": { "minLength": 2 },
                "id": { "minLength": 1 },
                "start": { "maxLength": 0 },
                "number": { "minimum": 1 },
                "finish": { "anyOf": [ { "type": "null" }, { "enum": ["stop"] } ] },
                "self": { "$ref": "#/$defs/choice" }
            } } }
        });
        let mut expected = members(&["finish", "long", "number", "object"], Read::Scalar);
        expected.extend(members(&["id", "start"], Read::Presence));
        expected.sort();
        assert_eq!(reads(schema), expected);
    }

    #[test]
    fn all_of_a_member_is_read_if_a_value_in_it_has_no_known_name() {
        for schema in [
            json!({ "additionalProperties": { "maxLength": 8 } }),
            json!({ "patternProperties": { "^x": { "pattern": "a" } } }),
            json!({ "items": { "enum": ["b"] } }),
            json!({ "items": { "additionalProperties": { "const": 1 } } }),
            json!({ "const": { "b": "c" } }),
            json!({ "enum": ["b", ["c"]] }),
            json!({ "uniqueItems": true }),
            json!({ "$dynamicRef": "#b" }),
            json!({ "maxLength": 8, "newKeyword": 1 }),
        ] {
            let within = json!({ "properties": { "a": schema } });
            assert_eq!(reads(within.clone()), members(&["a"], Read::All), "{within}");
        }
    }

    #[test]
    fn what_is_in_no_known_member_may_be_anywhere() {
        for schema in [
            json!({ "additionalProperties": { "const": "a" } }),
            json!({ "patternProperties": { "^x": { "pattern": "a" } } }),
            json!({ "properties": { "a": { "uniqueItems": true, "items": {} } }, "enum": [1] }),
            json!({ "$ref": "#anchor" }),
            json!({ "$ref": "#/nowhere" }),
            json!({ "$dynamicRef": "#/a" }),
            json!({ "items": { "format": "uri" } }),
        ] {
            assert_eq!(reads(schema.clone()), members(&["(all)"], Read::All), "{schema}");
        }
    }

    #[test]
    fn a_value_is_read_if_all_of_a_member_around_it_is() {
        let schema = json!({ "properties": { "a": { "uniqueItems": true }, "b": { "const": 1 } } });
        let documents = Documents::from([("a.json".to_owned(), schema)]);
        let reads = ValueReads::of(&documents, SchemaLocation::parse("a.json"));
        let contains = |members: &[&str]| reads.contains(members.iter().copied());
        assert!(contains(&["a"]) && contains(&["a", "c"]) && contains(&["c", "a", "c", "d"]) && contains(&["c", "b"]));
        assert!(!contains(&["c"]) && !contains(&["b", "c"]) && !contains(&[]));
    }
}
