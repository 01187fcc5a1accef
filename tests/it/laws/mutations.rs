//! Mutations of JSON: what a client can get wrong in a request. Types are replaced, members removed, added and renamed,
//! texts emptied, numbers made huge, values nested.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use reframe::testing::domain::Tree;

/// One change of one node, which is selected among all nodes of the tree.
#[derive(Clone, Debug)]
pub struct Mutation {
    at: Index,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Tree),
    Remove,
    Add(&'static str, Tree),
    Rename(&'static str),
    /// Appends copies of the last element.
    Repeat(usize),
    /// Puts the node into this many lists.
    Nest(usize),
    Append(&'static str),
}

/// Values of every type, and words that some other server knows.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "1.5",
    "100.0",
    "1e3",
    "1e400",
    "-0",
    "9223372036854775808",
    "1e-400",
    r#""""#,
    r#"" ""#,
    r#""max""#,
    r#""any""#,
    r#""auto""#,
    r#""none""#,
    r#""text""#,
    r#""function""#,
    r#""custom""#,
    r#""json_object""#,
    r#""grammar""#,
    r#""allowed_tools""#,
    r#""mcp""#,
    r#""1""#,
    r#""\u0000""#,
    r#""\ud83d""#,
    r#""a\r\nb""#,
    r#""é🙂﷽""#,
    r#""../..""#,
    "[]",
    "[null]",
    "[[]]",
    "[1]",
    r#"[""]"#,
    r#"["a","b"]"#,
    "{}",
    r#"{"type":""}"#,
    r#"{"type":"x"}"#,
    r#"{"type":null}"#,
    r#"{"type":1}"#,
    r#"{"type":"function"}"#,
    r#"{"type":"mcp","server_label":"s"}"#,
    r#"{"type":"allowed_tools","mode":"auto","tools":[]}"#,
    r#"{"name":"x"}"#,
    r#"{"":0}"#,
    r#"{"a":{"b":[{"c":null}]}}"#,
];

const NAMES: &[&str] = &[
    "",
    "type",
    "name",
    "id",
    "x",
    "content",
    "mode",
    "tools",
    "role",
    "format",
    "strict",
    "prompt",
    "model",
    "server_label",
    "error",
    "a.b",
    "a[0]",
    "é\n",
    "$ref",
    "constructor",
];

pub fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    proptest::collection::vec(mutation(), 1..4)
}

fn mutation() -> impl Strategy<Value = Mutation> {
    (any::<Index>(), change()).prop_map(|(at, change)| Mutation { at, change })
}

fn change() -> impl Strategy<Value = Change> {
    let value = || select(VALUES).prop_map(|json| Tree::parse(json.as_bytes()).unwrap());
    prop_oneof![
        8 => value().prop_map(Change::Replace),
        3 => Just(Change::Remove),
        3 => (select(NAMES), value()).prop_map(|(name, value)| Change::Add(name, value)),
        1 => select(NAMES).prop_map(Change::Rename),
        1 => (1usize..40).prop_map(Change::Repeat),
        1 => (1usize..100).prop_map(Change::Nest),
        1 => select(vec!["x", "\n", "\u{0}", " ", "🙂", "..", "/../"]).prop_map(Change::Append),
    ]
}

impl Mutation {
    pub fn apply(&self, tree: &mut Tree) {
        let mut at = self.at.index(count(tree));
        change_at(tree, &mut at, &self.change);
    }
}

/// For every member of every object: its path, the tree without it, and the tree with null in its place.
pub fn members_removed_and_null(tree: &Tree) -> Vec<(String, Tree, Tree)> {
    let nodes = count(tree);
    let mut found = Vec::new();
    for at in 1..nodes {
        let changed = |change: &Change| {
            let (mut copy, mut at) = (tree.clone(), at);
            change_at(&mut copy, &mut at, change);
            copy
        };
        let (removed, null) = (changed(&Change::Remove), changed(&Change::Replace(Tree::Null)));
        if let Some(path) = member_path(tree, &mut { at }) {
            found.push((path, removed, null));
        }
    }
    found
}

/// The path of the node that is `at` steps ahead in document order, if it is a member of an object.
fn member_path(tree: &Tree, at: &mut usize) -> Option<String> {
    *at -= 1;
    match tree {
        Tree::List(items) => items.iter().enumerate().find_map(|(index, item)| {
            let size = count(item);
            if *at >= size {
                *at -= size;
                return None;
            }
            Some((*at > 0).then(|| member_path(item, at)).flatten().map(|path| format!("[{index}].{path}")))
        })?,
        Tree::Map(members) => members.iter().find_map(|(name, value)| {
            let size = count(value);
            if *at >= size {
                *at -= size;
                return None;
            }
            Some(match *at {
                0 => Some(name.to_string()),
                _ => member_path(value, at).map(|path| format!("{name}.{path}")),
            })
        })?,
        _ => None,
    }
}

fn count(tree: &Tree) -> usize {
    match tree {
        Tree::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        Tree::Map(members) => 1 + members.iter().map(|(_, value)| count(value)).sum::<usize>(),
        _ => 1,
    }
}

/// Changes the node that is `at` steps ahead in document order; true if it was in this tree.
fn change_at(tree: &mut Tree, at: &mut usize, change: &Change) -> bool {
    if *at == 0 {
        change_node(tree, change);
        return true;
    }
    *at -= 1;
    match tree {
        Tree::List(items) => {
            let found = (0..items.len()).find_map(|index| {
                if *at == 0 && matches!(change, Change::Remove) {
                    items.remove(index);
                    return Some(());
                }
                change_at(&mut items[index], at, change).then_some(())
            });
            found.is_some()
        }
        Tree::Map(members) => {
            let found = (0..members.len()).find_map(|index| {
                match change {
                    Change::Remove if *at == 0 => {
                        members.remove(index);
                        return Some(());
                    }
                    Change::Rename(name) if *at == 0 && !members.iter().any(|(key, _)| **key == **name) => {
                        members[index].0 = (*name).into();
                        return Some(());
                    }
                    _ => {}
                }
                change_at(&mut members[index].1, at, change).then_some(())
            });
            found.is_some()
        }
        _ => false,
    }
}

fn change_node(node: &mut Tree, change: &Change) {
    match change {
        Change::Replace(value) => *node = value.clone(),
        Change::Remove | Change::Rename(_) => {}
        Change::Add(name, value) => match node {
            Tree::List(items) => items.push(value.clone()),
            other => other.insert(*name, value.clone()),
        },
        Change::Repeat(times) => {
            if let Tree::List(items) = node {
                items.extend(items.last().cloned().into_iter().cycle().take(*times).collect::<Vec<_>>());
            }
        }
        Change::Nest(depth) => {
            for _ in 0..*depth {
                *node = Tree::List(vec![std::mem::take(node)]);
            }
        }
        Change::Append(text) => {
            if let Tree::Str(old) = node {
                old.push_str(text);
            }
        }
    }
}
