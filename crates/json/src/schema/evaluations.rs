//! How many subschemas a validation evaluates for one value, found before the first validation.
//!
//! The validator evaluates a schema as often as it is referred to: thirty definitions that each refer twice to the next
//! one cost 2³⁰ evaluations, although the file is small. The same can happen from one level of a value to the next. So
//! the schemas that apply to a value are followed as a multiset: first all that apply to the value itself, then to each
//! of its members and elements, until no new multiset is found or one is too large.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use super::location::{SchemaLocation, Target};
use super::set::SchemaError;
use super::subschemas::{SubschemaRole, direct_subschemas};

/// Far above any real schema: a choice of a hundred events is a hundred evaluations.
const MAX_EVALUATIONS: u64 = 2_000;
/// How many schemas in a row may lead to another one for the same value: the validator calls itself for each.
const MAX_CHAIN: usize = 32;
/// Limit for this analysis itself, in schemas that are added to a multiset.
const MAX_STEPS: usize = 2_000_000;

/// Locations by number, with what is known about each.
#[derive(Default)]
pub(super) struct Evaluations {
    numbers: RefCell<HashMap<SchemaLocation, Number>>,
    locations: RefCell<Vec<SchemaLocation>>,
    expanded: RefCell<HashMap<Number, Rc<Expansion>>>,
    /// Multisets that were found to be small enough, with everything that follows from them.
    checked: RefCell<HashSet<Applied>>,
}

type Number = u32;
/// Schemas that apply to one value, with how often each.
type Applied = BTreeMap<Number, u64>;

/// A schema with all that apply to the same value.
#[derive(Default)]
struct Expansion {
    evaluations: u64,
    /// The schemas for members and elements of the value, of each schema that applies to it.
    parts: Vec<(Rc<Parts>, u64)>,
}

/// The schemas that a schema has for parts of its value.
#[derive(Default)]
struct Parts {
    members: HashMap<String, Number>,
    /// For members without a schema of their own.
    other_members: Vec<Number>,
    /// For members whatever their name is.
    all_members: Vec<Number>,
    elements: Vec<Number>,
    other_elements: Vec<Number>,
    all_elements: Vec<Number>,
}

/// Why a schema is refused, and where.
struct Refused(SchemaLocation, String);

impl Evaluations {
    /// The first error in the schema at `start` or in anything that it contains or refers to.
    pub(super) fn first_error(
        &self,
        documents: &HashMap<String, Value>,
        start: &SchemaLocation,
    ) -> Option<SchemaError> {
        let search = Search { known: self, documents };
        let Refused(SchemaLocation { document, pointer }, message) = search.run(start).err()?;
        Some(SchemaError::Invalid { document, pointer, message })
    }

    fn number(&self, location: SchemaLocation) -> Number {
        let mut locations = self.locations.borrow_mut();
        *self.numbers.borrow_mut().entry(location).or_insert_with_key(|location| {
            locations.push(location.clone());
            locations.len() as Number - 1
        })
    }

    fn location(&self, number: Number) -> SchemaLocation {
        self.locations.borrow()[number as usize].clone()
    }
}

struct Search<'s> {
    known: &'s Evaluations,
    documents: &'s HashMap<String, Value>,
}

impl Search<'_> {
    fn run(&self, start: &SchemaLocation) -> Result<(), Refused> {
        let mut pending = vec![Applied::from([(self.known.number(start.clone()), 1)])];
        let mut steps = 0;
        while let Some(applied) = pending.pop() {
            if !self.known.checked.borrow_mut().insert(applied.clone()) {
                continue;
            }
            let (parts, count) = self.parts(&applied)?;
            steps += count;
            let next = parts.into_iter().filter(|applied| !applied.is_empty());
            for applied in next {
                steps += applied.len();
                pending.push(applied);
            }
            if steps > MAX_STEPS {
                let message = "this schema combines too many others to be analysed".to_owned();
                return Err(Refused(start.clone(), message));
            }
        }
        Ok(())
    }

    /// What applies to each member and element of a value, and how many schemas were looked at.
    fn parts(&self, applied: &Applied) -> Result<(Vec<Applied>, usize), Refused> {
        let mut evaluations: u64 = 0;
        let mut all: Vec<(Rc<Parts>, u64)> = Vec::new();
        for (number, times) in applied {
            let expansion = self.expand(*number, &mut Vec::new())?;
            evaluations = evaluations.saturating_add(expansion.evaluations.saturating_mul(*times));
            if evaluations > MAX_EVALUATIONS {
                return Err(too_many(self.known.location(*number)));
            }
            all.extend(expansion.parts.iter().map(|(parts, n)| (parts.clone(), n * times)));
        }
        let mut names: Vec<&String> = all.iter().flat_map(|(parts, _)| parts.members.keys()).collect();
        names.sort();
        names.dedup();
        let longest = all.iter().map(|(parts, _)| parts.elements.len()).max().unwrap_or(0);
        let steps = all.len() * (names.len() + longest + 2);
        if steps > MAX_STEPS {
            return Ok((Vec::new(), steps));
        }
        let mut found = Vec::new();
        for name in names.into_iter().map(Some).chain([None]) {
            let of_member = |parts: &Parts| match name.and_then(|name| parts.members.get(name)) {
                Some(own) => [&[*own], parts.all_members.as_slice()].concat(),
                None => [parts.other_members.as_slice(), parts.all_members.as_slice()].concat(),
            };
            found.push(sum(&all, of_member));
        }
        for index in 0..=longest {
            let of_element = |parts: &Parts| match parts.elements.get(index) {
                Some(own) => [&[*own], parts.all_elements.as_slice()].concat(),
                None => [parts.other_elements.as_slice(), parts.all_elements.as_slice()].concat(),
            };
            found.push(sum(&all, of_element));
        }
        Ok((found, steps))
    }

    /// `around`: the schemas that apply to the same value and lead here.
    fn expand(&self, number: Number, around: &mut Vec<Number>) -> Result<Rc<Expansion>, Refused> {
        if let Some(known) = self.known.expanded.borrow().get(&number) {
            return Ok(known.clone());
        }
        let location = self.known.location(number);
        if around.contains(&number) {
            let message = "this schema refers to itself for the same value".to_owned();
            return Err(Refused(location, message));
        }
        if around.len() == MAX_CHAIN {
            let message = format!("more than {MAX_CHAIN} schemas in a row refer to the next one for the same value");
            return Err(Refused(location, message));
        }
        around.push(number);
        let (parts, same) = self.read(&location);
        let mut expansion = Expansion { evaluations: 1, parts: vec![(Rc::new(parts), 1)] };
        for (inner, times) in same {
            let inner = self.expand(inner, around)?;
            expansion.evaluations += inner.evaluations * times;
            expansion.parts.extend(inner.parts.iter().map(|(parts, n)| (parts.clone(), n * times)));
            if expansion.evaluations > MAX_EVALUATIONS {
                return Err(too_many(location));
            }
        }
        around.pop();
        let expansion = Rc::new(expansion);
        self.known.expanded.borrow_mut().insert(number, expansion.clone());
        Ok(expansion)
    }

    /// The schemas at a location for parts of the value, and those for the same value with how often each is evaluated.
    fn read(&self, location: &SchemaLocation) -> (Parts, Vec<(Number, u64)>) {
        let (mut parts, mut same) = (Parts::default(), Vec::new());
        let schema = self.documents.get(&location.document).and_then(|d| d.pointer(&location.pointer));
        let Some(schema) = schema else { return (parts, same) };
        // To find out what was not evaluated, the validator evaluates the other subschemas once more.
        let unevaluated = schema.get("unevaluatedProperties").or(schema.get("unevaluatedItems")).is_some();
        let times = if unevaluated { 2 } else { 1 };
        for inner in direct_subschemas(schema) {
            let pointer = format!("{}{}", location.pointer, inner.pointer);
            let keyword = inner.pointer.split('/').nth(1).unwrap_or_default();
            let at = SchemaLocation { document: location.document.clone(), pointer };
            match inner.role {
                SubschemaRole::Definition => {}
                SubschemaRole::Same | SubschemaRole::Condition => same.push((self.known.number(at), times)),
                SubschemaRole::Part => parts.add(keyword, &inner.pointer, self.known.number(at)),
            }
        }
        for keyword in ["$ref", "$dynamicRef"] {
            let reference = schema.get(keyword).and_then(Value::as_str);
            let target = reference.and_then(|reference| self.target(location, reference));
            same.extend(target.map(|target| (self.known.number(target), times)));
        }
        (parts, same)
    }

    fn target(&self, location: &SchemaLocation, reference: &str) -> Option<SchemaLocation> {
        match location.follow(reference) {
            Target::SchemaLocation(target) => Some(target),
            Target::Remote => None,
            Target::BuiltIn => {
                let (path, anchor) = reference.split_once('#')?;
                let document = if path.is_empty() { location.document.clone() } else { location.sibling(path) };
                let pointer = find_anchor(self.documents.get(&document)?, anchor)?;
                Some(SchemaLocation { document, pointer })
            }
        }
    }
}

impl Parts {
    fn add(&mut self, keyword: &str, pointer: &str, number: Number) {
        match keyword {
            "properties" => {
                let name = pointer.splitn(3, '/').nth(2).unwrap_or_default();
                self.members.insert(name.to_owned(), number);
            }
            "additionalProperties" => self.other_members.push(number),
            "prefixItems" => self.elements.push(number),
            "items" => self.other_elements.push(number),
            "contains" | "unevaluatedItems" => self.all_elements.push(number),
            // A pattern may match any name.
            "patternProperties" | "unevaluatedProperties" | "propertyNames" => self.all_members.push(number),
            // `contentSchema` is not evaluated.
            _ => {}
        }
    }
}

fn sum(all: &[(Rc<Parts>, u64)], of: impl Fn(&Parts) -> Vec<Number>) -> Applied {
    let mut applied = Applied::new();
    for (parts, times) in all {
        for number in of(parts) {
            *applied.entry(number).or_default() += times;
        }
    }
    applied
}

fn find_anchor(document: &Value, anchor: &str) -> Option<String> {
    let mut pending = vec![(String::new(), document)];
    while let Some((pointer, schema)) = pending.pop() {
        let is_it = |keyword| schema.get(keyword).and_then(Value::as_str) == Some(anchor);
        if is_it("$anchor") || is_it("$dynamicAnchor") {
            return Some(pointer);
        }
        pending.extend(direct_subschemas(schema).into_iter().map(|i| (format!("{pointer}{}", i.pointer), i.schema)));
    }
    None
}

fn too_many(location: SchemaLocation) -> Refused {
    let message = format!("validating one value here takes more than {MAX_EVALUATIONS} evaluations of subschemas");
    Refused(location, message)
}
