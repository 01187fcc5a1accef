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
/// How many references in a row are followed at once.
const MAX_SKIPPED: usize = 2;
/// How many choices between branches are followed separately.
const MAX_ALTERNATIVES: usize = 32;
/// Limit for this analysis itself, in schemas that are added to a multiset.
const MAX_STEPS: usize = 2_000_000;

/// Locations by number, with what is known about each.
#[derive(Default)]
pub(super) struct Evaluations {
    numbers: RefCell<HashMap<SchemaLocation, Number>>,
    locations: RefCell<Vec<SchemaLocation>>,
    subschemas: RefCell<HashMap<Number, Rc<Subschemas>>>,
    /// Multisets that were found to be small enough, with everything that follows from them.
    checked: RefCell<HashSet<Applied>>,
}

type Number = u32;
/// Schemas that apply to one value, with how often each.
type Applied = BTreeMap<Number, u64>;

/// The subschemas of a schema, by the value that they apply to.
#[derive(Default)]
struct Subschemas {
    /// For the same value, with how often each is evaluated.
    same: Vec<(Number, u64)>,
    /// For the same value, at most one of them: `then` and `else`.
    branches: Vec<Number>,
    members: HashMap<String, Number>,
    /// For members without a schema of their own.
    other_members: Vec<Number>,
    /// For members whatever their name is.
    all_members: Vec<Number>,
    elements: Vec<Number>,
    other_elements: Vec<Number>,
    all_elements: Vec<Number>,
    /// How often schemas are evaluated for the same value, with this one.
    evaluations: u64,
}

/// A part of a value.
#[derive(Clone, Copy)]
enum Part<'n> {
    Member(&'n str),
    OtherMember,
    Element(usize),
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
        for (number, times) in applied {
            let schema = self.expand(*number, &mut Vec::new())?;
            evaluations = evaluations.saturating_add(schema.evaluations.saturating_mul(*times));
            if evaluations > MAX_EVALUATIONS {
                return Err(too_many(self.known.location(*number)));
            }
        }
        let all = self.same_value(applied)?;
        let mut names: Vec<&str> = all.iter().flat_map(|schema| schema.members.keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        let longest = all.iter().map(|schema| schema.elements.len()).max().unwrap_or(0);
        let steps = all.len() * (names.len() + longest + 2);
        if steps > MAX_STEPS {
            return Ok((Vec::new(), steps));
        }
        let members = names.into_iter().map(Part::Member).chain([Part::OtherMember]);
        let mut found = Vec::new();
        for part in members.chain((0..=longest).map(Part::Element)) {
            let mut alternatives = vec![Applied::new()];
            let mut known = HashMap::new();
            for (number, times) in applied {
                let inner = self.alternatives(part, *number, &mut known)?;
                alternatives = combined(&alternatives, &inner, *times);
            }
            found.extend(alternatives);
        }
        Ok((found, steps))
    }

    /// These schemas and all that apply to the same value, each once.
    fn same_value(&self, applied: &Applied) -> Result<Vec<Rc<Subschemas>>, Refused> {
        let mut seen: HashSet<Number> = applied.keys().copied().collect();
        let mut pending: Vec<Number> = applied.keys().copied().collect();
        let mut all = Vec::new();
        while let Some(number) = pending.pop() {
            let schema = self.expand(number, &mut Vec::new())?;
            let inner = schema.same.iter().map(|(inner, _)| *inner).chain(schema.branches.iter().copied());
            pending.extend(inner.filter(|inner| seen.insert(*inner)));
            all.push(schema);
        }
        Ok(all)
    }

    /// What the schema, and those for the same value, apply to a part of the value, for each choice of branches.
    fn alternatives(
        &self,
        part: Part,
        number: Number,
        known: &mut HashMap<Number, Rc<Vec<Applied>>>,
    ) -> Result<Rc<Vec<Applied>>, Refused> {
        if let Some(alternatives) = known.get(&number) {
            return Ok(alternatives.clone());
        }
        let schema = self.expand(number, &mut Vec::new())?;
        let mut own = Applied::new();
        for number in schema.own(part) {
            *own.entry(number).or_default() += 1;
        }
        let mut alternatives = vec![own];
        for (inner, times) in &schema.same {
            alternatives = combined(&alternatives, &self.alternatives(part, *inner, known)?, *times);
        }
        let mut branches = Vec::new();
        for branch in &schema.branches {
            branches.extend(self.alternatives(part, *branch, known)?.iter().cloned());
        }
        if !branches.is_empty() {
            alternatives = combined(&alternatives, &branches, 1);
        }
        let alternatives = Rc::new(alternatives);
        known.insert(number, alternatives.clone());
        Ok(alternatives)
    }

    /// `around`: the schemas that apply to the same value and lead here.
    fn expand(&self, number: Number, around: &mut Vec<Number>) -> Result<Rc<Subschemas>, Refused> {
        if let Some(known) = self.known.subschemas.borrow().get(&number) {
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
        let mut schema = self.read(&location);
        let mut evaluations: u64 = 1;
        for (inner, times) in &schema.same {
            evaluations = evaluations.saturating_add(self.expand(*inner, around)?.evaluations.saturating_mul(*times));
        }
        let mut most = 0;
        for branch in &schema.branches {
            most = self.expand(*branch, around)?.evaluations.max(most);
        }
        schema.evaluations = evaluations.saturating_add(most);
        if schema.evaluations > MAX_EVALUATIONS {
            return Err(too_many(location));
        }
        around.pop();
        let schema = Rc::new(schema);
        self.known.subschemas.borrow_mut().insert(number, schema.clone());
        Ok(schema)
    }

    fn read(&self, location: &SchemaLocation) -> Subschemas {
        let mut found = Subschemas::default();
        let schema = self.documents.get(&location.document).and_then(|d| d.pointer(&location.pointer));
        let Some(schema) = schema else { return found };
        let unevaluated = schema.get("unevaluatedProperties").or(schema.get("unevaluatedItems")).is_some();
        for inner in direct_subschemas(schema) {
            let pointer = format!("{}{}", location.pointer, inner.pointer);
            let keyword = inner.pointer.split('/').nth(1).unwrap_or_default();
            let number = self.number(SchemaLocation { document: location.document.clone(), pointer });
            match (inner.role, keyword) {
                (SubschemaRole::Definition, _) => {}
                (SubschemaRole::Part, _) => found.add_part(keyword, &inner.pointer, number),
                (SubschemaRole::Same, "then" | "else") => found.branches.push(number),
                // To find out what was not evaluated, the validator evaluates the alternatives once more.
                (SubschemaRole::Same | SubschemaRole::Condition, "anyOf" | "oneOf" | "if") if unevaluated => {
                    found.same.push((number, 2));
                }
                (SubschemaRole::Same | SubschemaRole::Condition, _) => found.same.push((number, 1)),
            }
        }
        for keyword in ["$ref", "$dynamicRef"] {
            let reference = schema.get(keyword).and_then(Value::as_str);
            let target = reference.and_then(|reference| self.target(location, reference));
            found.same.extend(target.map(|target| (self.number(target), 1)));
        }
        found
    }

    /// The number of a location; if there is nothing but a reference, the number of its target. So schemas that are
    /// reached in several ways are recognised.
    fn number(&self, mut location: SchemaLocation) -> Number {
        for _ in 0..MAX_SKIPPED {
            let schema = self.documents.get(&location.document).and_then(|d| d.pointer(&location.pointer));
            let Some(members) = schema.and_then(Value::as_object) else { break };
            let is_plain = |name: &String| ["$ref", "title", "description", "examples", "default"].contains(&&**name);
            let reference = members.get("$ref").and_then(Value::as_str).filter(|_| members.keys().all(is_plain));
            let Some(target) = reference.and_then(|reference| self.target(&location, reference)) else { break };
            location = target;
        }
        self.known.number(location)
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

impl Subschemas {
    fn add_part(&mut self, keyword: &str, pointer: &str, number: Number) {
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

    /// Its own schemas for a part of the value.
    fn own(&self, part: Part) -> Vec<Number> {
        let (own, others, all) = match part {
            Part::Member(name) => (self.members.get(name), &self.other_members, &self.all_members),
            Part::OtherMember => (None, &self.other_members, &self.all_members),
            Part::Element(index) => (self.elements.get(index), &self.other_elements, &self.all_elements),
        };
        own.map_or(others.as_slice(), std::slice::from_ref).iter().chain(all).copied().collect()
    }
}

/// Each of `all` with each of `inner`.
fn combined(all: &[Applied], inner: &[Applied], times: u64) -> Vec<Applied> {
    let mut found: Vec<Applied> = Vec::new();
    for (one, other) in all.iter().flat_map(|one| inner.iter().map(move |other| (one, other))) {
        let mut sum = one.clone();
        for (number, count) in other {
            let entry = sum.entry(*number).or_default();
            *entry = entry.saturating_add(count.saturating_mul(times));
        }
        if !found.contains(&sum) {
            found.push(sum);
        }
    }
    if found.len() <= MAX_ALTERNATIVES {
        return found;
    }
    // Too many to follow: one that is at least as large as each.
    let mut largest = Applied::new();
    for (number, count) in found.iter().flatten() {
        let entry = largest.entry(*number).or_default();
        *entry = (*entry).max(*count);
    }
    vec![largest]
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
