//! Matchers for expected values: a subset of members, an exact value, a type, or the result of a JSONPath.
//!
//! `{ a: 1 }` requires `a` and ignores other members; `{ $exactly: { a: 1 } }` is the whole value; `{ $is: string }`
//! any string; `{ "$.list[*].a": [ 1, 2 ] }` the result of the path. Matchers can be nested.

use super::difference::Difference;
use crate::diagnostics::{Code, Diagnostic, did_you_mean};
use crate::domain::Tree;
use crate::engine::selector::Cursor;
use crate::mapping::language::condition::{ABSENT, EXISTS, TYPES};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

#[derive(Debug)]
pub enum Matcher {
    /// A scalar, or the whole value below `$exactly`.
    Value(Tree),
    /// `$is`: one of the test words of `where:` in rules.
    Is(&'static str),
    List(Vec<Matcher>),
    /// Required members, and the results of paths.
    Map(Vec<(String, Matcher)>, Vec<(Selector, Matcher)>),
}

/// Whether a map may have members that are not expected.
#[derive(Clone, Copy, PartialEq)]
pub enum MatchMode {
    /// Other members are ignored.
    Subset,
    Exact,
}

const IS: &str = "$is";
const EXACTLY: &str = "$exactly";

impl Matcher {
    pub fn parse(node: &Node, cx: LoadContext) -> Option<Matcher> {
        match &node.kind {
            YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) => {
                Some(Matcher::Value(constant(node)))
            }
            YamlKind::List(items) => {
                let matchers: Vec<_> = items.iter().map(|n| Matcher::parse(n, cx)).collect();
                matchers.into_iter().collect::<Option<_>>().map(Matcher::List)
            }
            YamlKind::Map(entries) => {
                if let Some(special) = entries.iter().find(|e| matches!(e.key.as_str(), IS | EXACTLY)) {
                    if entries.len() > 1 {
                        let message = format!("`{}` must be the only key: it describes the whole value", special.key);
                        cx.error(Code::UnknownKey, special.key_span, message);
                        return None;
                    }
                    if special.key == EXACTLY {
                        return Some(Matcher::Value(constant(&special.value)));
                    }
                    let words: Vec<&'static str> = TYPES.iter().copied().chain([EXISTS, ABSENT]).collect();
                    return cx.one_of(&special.value, &words).map(Matcher::Is);
                }
                let (mut members, mut paths, mut is_valid) = (Vec::new(), Vec::new(), true);
                for entry in entries {
                    let matcher = Matcher::parse(&entry.value, cx);
                    if entry.key.starts_with('$') && !is_path(&entry.key) {
                        unknown(entry, cx);
                        is_valid = false;
                    } else if is_path(&entry.key) {
                        match (Selector::parse(&entry.key, entry.key_span, cx), matcher) {
                            (Some(selector), Some(matcher)) => paths.push((selector, matcher)),
                            _ => is_valid = false,
                        }
                    } else {
                        match matcher {
                            Some(matcher) => members.push((entry.key.clone(), matcher)),
                            None => is_valid = false,
                        }
                    }
                }
                is_valid.then_some(Matcher::Map(members, paths))
            }
        }
    }

    /// Adds all differences, each with its path below `at`.
    pub fn compare(&self, got: Option<&Tree>, at: &str, mode: MatchMode, out: &mut Vec<Difference>) {
        let missing = Tree::Null;
        let value = got.unwrap_or(&missing);
        let differs = |expected: Tree| Difference::value(at, expected, got.cloned());
        match self {
            Matcher::Value(expected) => {
                if expected != value {
                    out.push(differs(expected.clone()));
                }
            }
            Matcher::Is(word) => {
                let is_match = match *word {
                    EXISTS => !value.is_null(),
                    ABSENT => value.is_null(),
                    kind => got.is_some() && value.type_name() == kind,
                };
                if !is_match {
                    out.push(Difference::kind(at, word, got.cloned()));
                }
            }
            Matcher::List(matchers) => match value {
                Tree::List(items) if items.len() == matchers.len() => {
                    for (i, (matcher, item)) in matchers.iter().zip(items).enumerate() {
                        matcher.compare(Some(item), &format!("{at}[{i}]"), mode, out);
                    }
                }
                _ => out.push(differs(self.to_tree()).with_diff_view(got.map(|g| self.prune(g, mode)))),
            },
            Matcher::Map(members, paths) => {
                // Paths alone apply to a value of any type.
                let only_paths = got.is_some() && members.is_empty() && !paths.is_empty();
                let found = match value {
                    Tree::Map(found) => found.as_slice(),
                    _ if only_paths => &[],
                    _ => return out.push(differs(self.to_tree())),
                };
                for (key, matcher) in members {
                    matcher.compare(value.get(key), &format!("{at}.{key}"), mode, out);
                }
                let is_expected = |key: &str| mode == MatchMode::Subset || members.iter().any(|(m, _)| m == key);
                for (key, more) in found.iter().filter(|(key, _)| !is_expected(key)) {
                    out.push(Difference::unexpected(&format!("{at}.{key}"), more.clone()));
                }
                for (selector, matcher) in paths {
                    compare_path(selector, matcher, value, at, MatchMode::Subset, out);
                }
            }
        }
    }

    /// The matcher as it is written, to display next to the actual value.
    fn to_tree(&self) -> Tree {
        match self {
            Matcher::Value(tree) => tree.clone(),
            Matcher::Is(word) => Tree::map([(IS, Tree::from(*word))]),
            Matcher::List(matchers) => Tree::from(matchers.iter().map(Matcher::to_tree).collect::<Vec<_>>()),
            Matcher::Map(members, paths) => {
                let members = members.iter().map(|(k, w)| (k.as_str(), w.to_tree()));
                Tree::map(members.chain(paths.iter().map(|(s, w)| (s.text.as_str(), w.to_tree()))))
            }
        }
    }

    /// In a list: the first element that does not match or is not expected.
    pub fn first_mismatch(&self, items: &[Tree]) -> Option<usize> {
        let Matcher::List(matchers) = self else { return None };
        let same =
            matchers.iter().zip(items).take_while(|(matcher, item)| matcher.matches(item, MatchMode::Subset)).count();
        (same < items.len()).then_some(same)
    }

    fn matches(&self, got: &Tree, mode: MatchMode) -> bool {
        let mut out = Vec::new();
        self.compare(Some(got), "", mode, &mut out);
        out.is_empty()
    }

    /// The actual value; without unexpected members where it matches, because they would hide the difference.
    fn prune(&self, got: &Tree, mode: MatchMode) -> Tree {
        match (self, got) {
            (Matcher::Map(members, _), Tree::Map(found)) if mode == MatchMode::Subset => {
                let expected = |key: &str| members.iter().find(|(m, _)| m == key).map(|(_, matcher)| matcher);
                let kept = found.iter().filter_map(|(k, v)| expected(k).map(|m| (k.clone(), m.prune(v, mode))));
                Tree::map(kept)
            }
            (Matcher::List(matchers), Tree::List(items)) => {
                let kept = items.iter().enumerate().map(|(i, v)| match matchers.get(i) {
                    Some(matcher) if matcher.matches(v, mode) => matcher.prune(v, mode),
                    Some(_) | None => v.clone(),
                });
                Tree::from(kept.collect::<Vec<_>>())
            }
            _ => got.clone(),
        }
    }
}

/// A singular path yields its value, or null if it is absent; any other path yields a list.
pub fn compare_path(
    selector: &Selector,
    matcher: &Matcher,
    value: &Tree,
    at: &str,
    mode: MatchMode,
    out: &mut Vec<Difference>,
) {
    let cursor = Cursor::new(value);
    let at = format!("{at} {}", selector.text);
    if selector.is_singular() {
        matcher.compare(selector.one(&cursor), &at, mode, out);
    } else {
        let found: Vec<Tree> = selector.many(&cursor).map(|(node, _)| node.clone()).collect();
        matcher.compare(Some(&Tree::from(found)), &at, mode, out);
    }
}

/// A member with a name that really begins with `$` can be expected below `$exactly`.
fn unknown(entry: &Entry, cx: LoadContext) {
    let message = format!("unknown matcher `{}`", entry.key);
    let diagnostic = Diagnostic::new(Code::UnknownKey, entry.key_span, message);
    let near = did_you_mean(&entry.key, [IS, EXACTLY]).map(|near| format!("did you mean `{near}`?"));
    let help = "use `$is`, `$exactly` or a JSONPath; a member that begins with `$` can be written below `$exactly`";
    cx.add(near.into_iter().fold(diagnostic, Diagnostic::label).help(help));
}

fn is_path(key: &str) -> bool {
    key.starts_with('$') && Selector::looks_like(key)
}
