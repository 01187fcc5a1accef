//! A value that a test expects: a part of it, all of it, its kind, or what a JSONPath finds in it.
//!
//! `{ a: 1 }` needs `a` and minds nothing else; `{ $exactly: { a: 1 } }` is the whole value; `{ $is: string }` any text;
//! `{ "$.list[*].a": [ 1, 2 ] }` what the path finds. They may stand in one another.

use super::difference::Difference;
use crate::diagnostics::{Code, Diagnostic, did_you_mean};
use crate::domain::Tree;
use crate::engine::select::Cursor;
use crate::mapping::language::condition::{ABSENT, EXISTS, TYPES};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::{Cx, constant};
use crate::mapping::source::yaml::{Entry, Kind, Node};

#[derive(Debug)]
pub enum Want {
    Value(Tree),
    /// `$exactly`: nothing more, nothing less.
    Exactly(Tree),
    /// `$is`: one of the words that `where:` of a rule knows.
    Is(&'static str),
    List(Vec<Want>),
    /// Members that must be there, and what paths must find.
    Map(Vec<(String, Want)>, Vec<(Selector, Want)>),
}

/// How much of a map must be said.
#[derive(Clone, Copy, PartialEq)]
pub enum Extent {
    /// What is expected must be there; other members do not matter.
    Part,
    Whole,
}

const IS: &str = "$is";
const EXACTLY: &str = "$exactly";

impl Want {
    pub fn parse(node: &Node, cx: Cx) -> Option<Want> {
        match &node.kind {
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => {
                Some(Want::Value(constant(node)))
            }
            Kind::List(items) => {
                let wants: Vec<_> = items.iter().map(|n| Want::parse(n, cx)).collect();
                wants.into_iter().collect::<Option<_>>().map(Want::List)
            }
            Kind::Map(entries) => {
                if let Some(special) = entries.iter().find(|e| matches!(e.key.as_str(), IS | EXACTLY)) {
                    if entries.len() > 1 {
                        let message = format!("`{}` stands alone: it speaks of the whole value", special.key);
                        cx.error(Code::UnknownKey, special.key_span, message);
                        return None;
                    }
                    if special.key == EXACTLY {
                        return Some(Want::Exactly(constant(&special.value)));
                    }
                    let words: Vec<&'static str> = TYPES.iter().copied().chain([EXISTS, ABSENT]).collect();
                    return cx.word(&special.value, &words).map(Want::Is);
                }
                let (mut members, mut paths, mut sound) = (Vec::new(), Vec::new(), true);
                for entry in entries {
                    let want = Want::parse(&entry.value, cx);
                    if entry.key.starts_with('$') && !is_path(&entry.key) {
                        unknown(entry, cx);
                        sound = false;
                    } else if is_path(&entry.key) {
                        match (Selector::parse(&entry.key, entry.key_span, cx), want) {
                            (Some(selector), Some(want)) => paths.push((selector, want)),
                            _ => sound = false,
                        }
                    } else {
                        match want {
                            Some(want) => members.push((entry.key.clone(), want)),
                            None => sound = false,
                        }
                    }
                }
                sound.then_some(Want::Map(members, paths))
            }
        }
    }

    /// Everything that differs, each with its path below `at`.
    pub fn compare(&self, got: Option<&Tree>, at: &str, extent: Extent, out: &mut Vec<Difference>) {
        let missing = Tree::Null;
        let value = got.unwrap_or(&missing);
        let differs = |expected: Tree| Difference::value(at, expected, got.cloned());
        match self {
            Want::Value(expected) => {
                if expected != value {
                    out.push(differs(expected.clone()));
                }
            }
            Want::Exactly(expected) => {
                if expected != value {
                    out.push(differs(expected.clone()));
                }
            }
            Want::Is(word) => {
                let holds = match *word {
                    EXISTS => !value.is_null(),
                    ABSENT => value.is_null(),
                    kind => got.is_some() && value.type_name() == kind,
                };
                if !holds {
                    out.push(Difference::kind(at, word, got.cloned()));
                }
            }
            Want::List(wants) => match value {
                Tree::List(items) if items.len() == wants.len() => {
                    for (i, (want, item)) in wants.iter().zip(items).enumerate() {
                        want.compare(Some(item), &format!("{at}[{i}]"), extent, out);
                    }
                }
                _ => out.push(differs(self.shown()).beside(got.map(|g| self.pruned(g, extent)))),
            },
            Want::Map(members, paths) => {
                let Tree::Map(found) = value else {
                    if !(members.is_empty() && got.is_some() && !paths.is_empty()) {
                        out.push(Difference::value(at, self.shown(), got.cloned()));
                        return;
                    }
                    return self.paths(value, at, paths, out);
                };
                for (key, want) in members {
                    want.compare(value.get(key), &format!("{at}.{key}"), extent, out);
                }
                if extent == Extent::Whole {
                    for (key, more) in found.iter().filter(|(k, _)| !members.iter().any(|(m, _)| **m == **k)) {
                        out.push(Difference::unexpected(&format!("{at}.{key}"), more.clone()));
                    }
                }
                self.paths(value, at, paths, out);
            }
        }
    }

    fn paths(&self, value: &Tree, at: &str, paths: &[(Selector, Want)], out: &mut Vec<Difference>) {
        for (selector, want) in paths {
            compare_path(selector, want, value, at, Extent::Part, out);
        }
    }

    /// As it was written, for a person to read beside what came.
    fn shown(&self) -> Tree {
        match self {
            Want::Value(tree) | Want::Exactly(tree) => tree.clone(),
            Want::Is(word) => Tree::map([(IS, Tree::from(*word))]),
            Want::List(wants) => Tree::from(wants.iter().map(Want::shown).collect::<Vec<_>>()),
            Want::Map(members, paths) => {
                let members = members.iter().map(|(k, w)| (k.as_str(), w.shown()));
                Tree::map(members.chain(paths.iter().map(|(s, w)| (s.text.as_str(), w.shown()))))
            }
        }
    }

    /// In a list: the first element that is not as expected, or not expected.
    pub fn first_that_differs(&self, items: &[Tree]) -> Option<usize> {
        let Want::List(wants) = self else { return None };
        let same = wants.iter().zip(items).take_while(|(want, item)| want.holds(item, Extent::Part)).count();
        (same < items.len()).then_some(same)
    }

    fn holds(&self, got: &Tree, extent: Extent) -> bool {
        let mut out = Vec::new();
        self.compare(Some(got), "", extent, &mut out);
        out.is_empty()
    }

    /// What came; where it is as expected, without the members that nobody asked for: they would hide what differs.
    fn pruned(&self, got: &Tree, extent: Extent) -> Tree {
        match (self, got) {
            (Want::Map(members, _), Tree::Map(found)) if extent == Extent::Part => {
                let asked = |key: &str| members.iter().find(|(m, _)| m == key).map(|(_, want)| want);
                let kept = found.iter().filter_map(|(k, v)| asked(k).map(|w| (k.clone(), w.pruned(v, extent))));
                Tree::map(kept)
            }
            (Want::List(wants), Tree::List(items)) => {
                let like = |(i, v): (usize, &Tree)| {
                    wants.get(i).filter(|want| want.holds(v, extent)).map(|w| w.pruned(v, extent))
                };
                let kept = items.iter().enumerate().map(|(i, v)| like((i, v)).unwrap_or_else(|| v.clone()));
                Tree::from(kept.collect::<Vec<_>>())
            }
            _ => got.clone(),
        }
    }
}

/// A path that can find many finds a list; one that can find one finds that value, and what is absent is null.
pub fn compare_path(
    selector: &Selector,
    want: &Want,
    value: &Tree,
    at: &str,
    extent: Extent,
    out: &mut Vec<Difference>,
) {
    let cursor = Cursor::new(value);
    let at = format!("{at} {}", selector.text);
    if selector.is_single() {
        want.compare(selector.one(&cursor), &at, extent, out);
    } else {
        let found: Vec<Tree> = selector.many(&cursor).into_iter().map(|(node, _)| node.clone()).collect();
        want.compare(Some(&Tree::from(found)), &at, extent, out);
    }
}

/// A member that really begins so can be said below `$exactly`.
fn unknown(entry: &Entry, cx: Cx) {
    let message = format!("`{}` is no word of `expect:`", entry.key);
    let diagnostic = Diagnostic::new(Code::UnknownKey, entry.key_span, message);
    let near = did_you_mean(&entry.key, [IS, EXACTLY]).map(|near| format!("did you mean `{near}`?"));
    let help = "there is `$is`, `$exactly` and JSONPath; a member that begins with `$` can stand below `$exactly`";
    cx.add(near.into_iter().fold(diagnostic, Diagnostic::label).help(help));
}

fn is_path(key: &str) -> bool {
    key.starts_with('$') && Selector::looks_like(key)
}
