//! Values of variables, borrowed from the turn and copied only when they are written.

use crate::domain::{Choice, Fault, Item, ItemKind, Part, PartKind, Tree, TurnState, Usage};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    Tree(&'a Tree),
    Turn(&'a TurnState),
    Choice(&'a TurnState, &'a Choice),
    Item(&'a Item),
    Part(&'a Part),
    Usage(Usage),
    Fault(&'a Fault),
    List(Vec<Value<'a>>),
    Policies(&'a [(Arc<str>, Tree)]),
}

fn int(n: usize) -> Value<'static> {
    Value::Int(n as i64)
}

fn count(n: Option<u64>) -> Value<'static> {
    n.map_or(Value::Null, |n| Value::Int(n as i64))
}

impl<'a> Value<'a> {
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }

    fn maybe(text: Option<&'a str>) -> Value<'a> {
        text.map_or(Value::Null, Value::text)
    }

    /// The names are those of `domain::variables`, against which the loader has checked expressions.
    pub fn field(&self, name: &str) -> Value<'a> {
        match self {
            Value::Turn(turn) => turn_field(turn, name),
            Value::Choice(turn, choice) => choice_field(turn, choice, name),
            Value::Item(item) => item_field(item, name),
            Value::Part(part) => part_field(part, name),
            Value::Usage(usage) => match name {
                "input" => count(Some(usage.input.unwrap_or(0))),
                "output" => count(Some(usage.output.unwrap_or(0))),
                "total" => count(Some(usage.total())),
                "cached" => count(usage.cached),
                "cache_write" => count(usage.cache_write),
                "reasoning" => count(usage.reasoning),
                _ => Value::Null,
            },
            Value::Fault(fault) => fault_field(fault, name),
            Value::Tree(tree) => tree.get(name).map_or(Value::Null, Value::Tree),
            Value::Policies(words) => {
                words.iter().find(|(n, _)| &**n == name).map_or(Value::Null, |(_, v)| Value::Tree(v))
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Text(_) | Value::List(_) => Value::Null,
        }
    }

    /// As in Jinja: null, false, 0, "" and empty lists are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Null => false,
            Value::Bool(b) => *b,
            Value::Int(i) => *i != 0,
            Value::Text(t) => !t.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Tree(tree) => match tree {
                Tree::Null => false,
                Tree::Bool(b) => *b,
                Tree::Num(n) => n.as_f64() != Some(0.0),
                Tree::Str(s) => !s.is_empty(),
                Tree::SurrogateString(_) => true,
                Tree::List(items) => !items.is_empty(),
                Tree::Map(entries) => !entries.is_empty(),
            },
            Value::Turn(_)
            | Value::Choice(..)
            | Value::Item(_)
            | Value::Part(_)
            | Value::Usage(_)
            | Value::Fault(_)
            | Value::Policies(_) => true,
        }
    }

    /// The elements, for `$each`.
    pub fn elements(&self) -> Vec<Value<'a>> {
        match self {
            Value::List(items) => items.clone(),
            Value::Tree(Tree::List(items)) => items.iter().map(Value::Tree).collect(),
            _ => Vec::new(),
        }
    }

    pub fn to_tree(&self) -> Tree {
        let record = |names: &[(&'static str, crate::domain::variables::VariableType)]| {
            Tree::map(names.iter().map(|(n, _)| (*n, self.field(n).to_tree())))
        };
        use crate::domain::variables::RecordType;
        let fields = |shape: RecordType| record(shape.fields().unwrap_or(&[]));
        match self {
            Value::Null => Tree::Null,
            Value::Bool(b) => Tree::from(*b),
            Value::Int(i) => Tree::from(*i),
            Value::Text(t) => Tree::from(t.as_ref()),
            Value::Tree(tree) => (*tree).clone(),
            Value::List(items) => Tree::from(items.iter().map(Value::to_tree).collect::<Vec<_>>()),
            Value::Turn(_) => fields(RecordType::Turn),
            Value::Choice(..) => fields(RecordType::Choice),
            Value::Item(_) => fields(RecordType::Item),
            Value::Part(_) => fields(RecordType::Part),
            Value::Usage(_) => fields(RecordType::Usage),
            Value::Fault(_) => fields(RecordType::Fault),
            Value::Policies(words) => Tree::Map(words.to_vec()),
        }
    }
}

fn turn_field<'a>(turn: &'a TurnState, name: &str) -> Value<'a> {
    match name {
        "id" => Value::text(&turn.id),
        "created" => Value::Int(turn.created),
        "model" => Value::text(&turn.model),
        "state" => Value::text(turn.state().name()),
        "finish" => Value::maybe(turn.finish.map(|f| f.name())),
        "choices" => Value::List(turn.choices.iter().map(|c| Value::Choice(turn, c)).collect()),
        "items" => {
            let mut items: Vec<&Item> = turn.items.iter().collect();
            // Under `message_first` a message may open after the calls that it precedes.
            items.sort_by_key(|i| i.index);
            Value::List(items.into_iter().map(Value::Item).collect())
        }
        "usage" => turn.usage.map_or(Value::Null, Value::Usage),
        "error" => turn.error.as_ref().map_or(Value::Null, Value::Fault),
        "truncated" => Value::Bool(turn.finish.is_some_and(|f| f.is_truncated())),
        "ended" => turn.ended.map_or(Value::Null, Value::Int),
        "elapsed_ms" => Value::Int(turn.elapsed_ms),
        "first_ms" => turn.first_output_ms.map_or(Value::Null, Value::Int),
        _ => Value::Null,
    }
}

fn choice_field<'a>(turn: &'a TurnState, choice: &'a Choice, name: &str) -> Value<'a> {
    let items = || turn.items_of(choice.index);
    let texts = |kind: PartKind| {
        let parts = items().flat_map(|i| &i.parts).filter(move |p| p.kind == kind && !p.text.is_empty());
        joined(parts.map(|p| p.text.as_str()))
    };
    match name {
        "index" => int(choice.index),
        "items" => Value::List(items().map(Value::Item).collect()),
        "text" => texts(PartKind::Text),
        "last_text" => {
            let has_text = |i: &&Item| i.parts.iter().any(|p| p.kind == PartKind::Text && !p.text.is_empty());
            let last = items().filter(has_text).last();
            let parts = last.into_iter().flat_map(|i| &i.parts).filter(|p| p.kind == PartKind::Text);
            joined(parts.map(|p| p.text.as_str()))
        }
        "refusal" => texts(PartKind::Refusal),
        "content" => {
            let has_text = |p: &&Part| matches!(p.kind, PartKind::Text | PartKind::Refusal) && !p.text.is_empty();
            joined(items().flat_map(|i| &i.parts).filter(has_text).map(|p| p.text.as_str()))
        }
        "thoughts" => texts(PartKind::Thought),
        "summary" => joined(items().flat_map(|i| &i.summaries).map(|p| p.text.as_str())),
        "calls" => Value::List(items().filter(|i| i.is_call()).map(Value::Item).collect()),
        "annotations" => trees(items().flat_map(|i| &i.parts).flat_map(|p| &p.annotations)),
        "logprobs" => trees(items().flat_map(|i| &i.parts).flat_map(|p| &p.logprobs)),
        "finish" => Value::maybe(choice.finish.map(|f| f.name())),
        _ => Value::Null,
    }
}

fn item_field<'a>(item: &'a Item, name: &str) -> Value<'a> {
    match name {
        "id" => Value::text(&item.id),
        "index" => int(item.index),
        "ordinal" => int(item.ordinal),
        "kind" => Value::text(item.kind.name()),
        "state" => Value::text(item.state.name()),
        "parts" => Value::List(item.parts.iter().map(Value::Part).collect()),
        "summaries" => Value::List(item.summaries.iter().map(Value::Part).collect()),
        "text" => match item.kind {
            ItemKind::Message | ItemKind::Reasoning => joined(item.parts.iter().map(|p| p.text.as_str())),
            ItemKind::Function | ItemKind::Custom => Value::Null,
        },
        "encrypted" => Value::maybe(item.encrypted.as_deref()),
        "call_id" => Value::text(&item.call_id),
        "name" => Value::text(&item.name),
        "arguments" => Value::text(&item.arguments),
        _ => Value::Null,
    }
}

fn part_field<'a>(part: &'a Part, name: &str) -> Value<'a> {
    match name {
        "index" => int(part.index),
        "kind" => Value::text(part.kind.name()),
        "text" => Value::text(&part.text),
        "annotations" => Value::List(part.annotations.iter().map(Value::Tree).collect()),
        "logprobs" => Value::List(part.logprobs.iter().map(Value::Tree).collect()),
        _ => Value::Null,
    }
}

fn fault_field<'a>(fault: &'a Fault, name: &str) -> Value<'a> {
    match name {
        "kind" => Value::text(fault.kind.name()),
        "message" => Value::text(&fault.message),
        "param" => Value::maybe(fault.param.as_deref()),
        "code" => Value::maybe(fault.code.as_deref()),
        "status" => Value::Int(i64::from(fault.status())),
        "retry_after" => count(fault.retry_after),
        _ => Value::Null,
    }
}

/// Null when there is nothing, borrowed when there is one, joined when there are more.
fn joined<'a>(mut texts: impl Iterator<Item = &'a str>) -> Value<'a> {
    let Some(first) = texts.next() else { return Value::Null };
    match texts.next() {
        None => Value::text(first),
        Some(second) => Value::Text(Cow::Owned([first, second].into_iter().chain(texts).collect())),
    }
}

fn trees<'a>(values: impl Iterator<Item = &'a Tree>) -> Value<'a> {
    Value::List(values.map(Value::Tree).collect())
}
