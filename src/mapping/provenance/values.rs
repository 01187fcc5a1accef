//! From a value that left back to the line that says it: through `base:`, parts, directives and a profile's patch. Asked
//! only of what broke its contract, and answered only as deep as the way is certain.

use crate::diagnostics::{Findings, Sources, Span, did_you_mean};
use crate::domain::{Scope, Tree};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::profile_patch;
use crate::mapping::source::field_reader::{Cx, constant};
use crate::mapping::source::layout::Files;
use crate::mapping::source::yaml::{Entry, Kind, Node};
use std::borrow::Cow;
use std::sync::Arc;

/// The files that shapes are written in.
#[derive(Debug, Default)]
pub struct Written {
    dialects: Vec<Node>,
    profiles: Vec<Node>,
    shared: Option<Node>,
}

/// A dialect as its profile leaves it: each node knows the file that it was written in.
pub struct Origin<'w> {
    node: Cow<'w, Node>,
    patch: Option<&'w Node>,
    renames: &'w [Entry],
    shared: Option<&'w Node>,
    policies: &'w [(Arc<str>, Tree)],
}

/// How far the way back has come.
struct Walk<'n> {
    node: &'n Node,
    /// The deepest place that is certain.
    place: Span,
}

impl Written {
    pub(crate) fn take(files: &mut Files) -> Written {
        let dialects = std::mem::take(&mut files.dialects);
        Written { dialects, profiles: std::mem::take(&mut files.profiles), shared: files.shared.take() }
    }

    pub fn of<'w>(&'w self, dialect: &'w DialectPlan, sources: &Sources) -> Option<Origin<'w>> {
        let is = |node: &&Node, key: &str, name: &str| node.get(key).and_then(Node::as_text) == Some(name);
        let node = self.dialects.iter().find(|n| is(n, "dialect", &dialect.name))?;
        let profile = dialect.profile.as_ref().and_then(|p| self.profiles.iter().find(|n| is(n, "profile", p)));
        let of_profile = |key: &str| profile.and_then(|p| p.get(key)?.get(&dialect.name));
        let patch = of_profile("patch");
        let node = match patch {
            None => Cow::Borrowed(node),
            Some(patch) => {
                let mut patched = node.clone();
                // It was applied before, and nothing was wrong with it.
                let findings = Findings::default();
                profile_patch::apply(&mut patched, patch, &dialect.name, Cx { sources, findings: &findings });
                Cow::Owned(patched)
            }
        };
        let renames = of_profile("names").and_then(Node::as_map).unwrap_or_default();
        let policies = &dialect.resolved.policies.words;
        Some(Origin { node, patch, renames, shared: self.shared.as_ref(), policies })
    }
}

impl Origin<'_> {
    /// The text of the order of a scope.
    pub fn order(&self, scope: Scope) -> Option<Span> {
        Some(self.node.get("stream")?.get("order")?.get(scope.word())?.span)
    }

    /// Where the value at `path` is written, in what was made at `made`: a frame by its name, the body or an error.
    pub fn value(&self, made: Span, data: &Tree, path: &[String]) -> Option<Span> {
        let (walk, value) = self.go(made, data, path)?;
        let Some(value) = value else { return Some(walk.place) };
        // What is written in a part or a branch is wrong there, and what comes from a table is wrong in its row.
        let walk = self.open(walk, Some(value)).unwrap_or_else(|walk| walk);
        Some(self.row(walk.node, value).unwrap_or(walk.place))
    }

    /// Where a member is written that does not belong there.
    pub fn member(&self, made: Span, data: &Tree, path: &[String], name: &str) -> Option<Span> {
        if let Some(rename) = self.renames.iter().find(|r| r.value.as_text() == Some(name)) {
            return Some(rename.value.span);
        }
        let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
        self.go(made, data, &path).map(|(walk, _)| walk.place)
    }

    /// Where the map is written that lacks a member; or the only patch that takes one of this name away, or the name
    /// that stands there instead.
    pub fn lack(&self, made: Span, data: &Tree, path: &[String], name: &str) -> Option<Span> {
        let owner = path.iter().try_fold(data, |node, step| match step.parse::<usize>() {
            Ok(index) if node.as_list().is_some() => node.at(index),
            _ => node.get(step),
        });
        let instead = |rename: &&Entry| {
            let new = rename.value.as_text().filter(|new| owner.is_some_and(|o| o.get(new).is_some()));
            new.is_some_and(|new| rename.key == name || did_you_mean(new, [name]).is_some())
        };
        if let Some(rename) = self.renames.iter().find(instead) {
            return Some(rename.value.span);
        }
        let mut removals = Vec::new();
        self.patch.iter().for_each(|patch| removed(patch, name, &mut removals));
        match removals[..] {
            [only] => Some(only),
            _ => self.value(made, data, path),
        }
    }

    /// As far as the way is certain, and what came of that place; nothing where the way broke off.
    fn go<'t>(&self, made: Span, data: &'t Tree, path: &[String]) -> Option<(Walk<'_>, Option<&'t Tree>)> {
        let (mut walk, mut path, mut value) = (self.root(made)?, path, data);
        if let Some((frame, base)) = self.frame(made) {
            let own = frame.value.get("data")?;
            walk = Walk { node: own, place: frame.key_span };
            if let (Some(base), Some((first, rest))) = (base, path.split_first()) {
                // The frame's own key wins, and which keys are its own is not seen in what came out.
                let own = self.open(walk, None).unwrap_or_else(|walk| walk);
                let base = self.open(Walk { node: base, place: frame.key_span }, None).unwrap_or_else(|walk| walk);
                let Some(next) = self.step(&own, first).or_else(|| self.step(&base, first)) else {
                    return Some((Walk { place: frame.key_span, ..own }, None));
                };
                let Some(member) = data.get(first) else { return Some((next, None)) };
                (walk, path, value) = (next, rest, member);
            }
        }
        for name in path {
            walk = match self.open(walk, Some(value)) {
                Ok(walk) => walk,
                Err(walk) => return Some((walk, None)),
            };
            let index = name.parse::<usize>().ok().filter(|_| value.as_list().is_some());
            let next = match index {
                Some(index) => element(&walk, index, value.as_list().map_or(0, <[Tree]>::len)),
                None => self.step(&walk, name),
            };
            let Some(next) = next else { return Some((walk, None)) };
            walk = next;
            value = match index.map_or_else(|| value.get(name), |index| value.at(index)) {
                Some(value) => value,
                None => return Some((walk, None)),
            };
        }
        Some((walk, Some(value)))
    }

    fn root(&self, made: Span) -> Option<Walk<'_>> {
        let entries = self.node.as_map()?;
        let keys = ["body", "errors"].into_iter().filter_map(|key| entries.iter().find(|e| e.key == key));
        let whole = keys.into_iter().find(|e| e.value.span == made);
        let walk = whole.map(|e| Walk { node: &e.value, place: place_of(e) });
        walk.or_else(|| self.frame(made).map(|(frame, _)| Walk { node: &frame.value, place: frame.key_span }))
    }

    /// The frame that has its name there, and the base that it is laid over.
    fn frame(&self, made: Span) -> Option<(&Entry, Option<&Node>)> {
        let stream = self.node.get("stream")?;
        let moments = stream.get("frames")?.as_map()?;
        let frame = moments.iter().filter_map(|m| m.value.as_map()).flatten().find(|f| f.key_span == made)?;
        let bare = matches!(frame.value.get("base"), Some(Node { kind: Kind::Bool(false), .. }));
        Some((frame, stream.get("base").filter(|_| !bare)))
    }

    /// Through the directives that stand in place of a value; back where it came from if it is not certain which way.
    fn open<'n>(&'n self, walk: Walk<'n>, value: Option<&Tree>) -> Result<Walk<'n>, Walk<'n>> {
        let mut walk = walk;
        loop {
            let Some(directive) = directive(walk.node) else { return Ok(walk) };
            let next = match directive {
                "$use" => self.part(walk.node).map(|part| Walk { node: &part.value, place: place_of(part) }),
                "$if" | "$switch" => {
                    let mut ways = self.branches(walk.node);
                    ways.retain(|way| self.fits(way, value));
                    match ways[..] {
                        [only] => Some(Walk { node: only, place: only.span }),
                        _ => None,
                    }
                }
                _ => return Ok(walk),
            };
            match next {
                Some(next) => walk = next,
                None => return Err(walk),
            }
        }
    }

    fn step<'n>(&self, walk: &Walk<'n>, name: &str) -> Option<Walk<'n>> {
        let called = |key: &str| {
            let renamed = self.renames.iter().find(|r| r.key == key).and_then(|r| r.value.as_text());
            renamed.unwrap_or(key) == name
        };
        let entry = walk.node.as_map()?.iter().find(|e| called(&e.key))?;
        Some(Walk { node: &entry.value, place: place_of(entry) })
    }

    fn part(&self, node: &Node) -> Option<&Entry> {
        let name = node.get("$use")?.as_text()?;
        self.named("parts", name)
    }

    /// The dialect's own, then the shared one.
    fn named(&self, key: &str, name: &str) -> Option<&Entry> {
        let files = [Some(&*self.node), self.shared];
        files.into_iter().flatten().filter_map(|n| n.get(key)?.as_map()).flatten().find(|e| e.key == name)
    }

    /// The ways that a directive can go under the policies.
    fn branches<'n>(&self, node: &'n Node) -> Vec<&'n Node> {
        if let Some(condition) = node.get("$if") {
            let settled = condition.as_text().and_then(|text| {
                let (policy, word) = text.split_once(" == ")?;
                Some(self.policy(policy)? == word.strip_prefix('\'')?.strip_suffix('\'')?)
            });
            let ways = match settled {
                Some(true) => ["then", "then"],
                Some(false) => ["else", "else"],
                None => ["then", "else"],
            };
            let mut ways: Vec<&Node> = ways.iter().filter_map(|way| node.get(way)).collect();
            ways.dedup_by(|a, b| std::ptr::eq(*a, *b));
            return ways;
        }
        let cases = node.as_map().unwrap_or_default();
        let settled = node.get("$switch").and_then(Node::as_text).and_then(|text| self.policy(text));
        match settled {
            Some(word) => node.get(word).or_else(|| node.get("$default")).into_iter().collect(),
            None => cases.iter().filter(|e| e.key != "$switch").map(|e| &e.value).collect(),
        }
    }

    fn policy(&self, variable: &str) -> Option<&str> {
        let name = variable.trim().strip_prefix("policy.")?;
        self.policies.iter().find(|(known, _)| **known == *name)?.1.as_str()
    }

    /// Can this come out of that? Yes, unless it certainly cannot.
    fn fits(&self, node: &Node, value: Option<&Tree>) -> bool {
        let Some(value) = value else { return true };
        match (directive(node), &node.kind) {
            (Some("$use"), _) => self.part(node).is_none_or(|part| self.fits(&part.value, Some(value))),
            (Some("$if" | "$switch"), _) => self.branches(node).iter().any(|way| self.fits(way, Some(value))),
            (Some(_), _) => match (value.as_list(), node.get("do")) {
                (Some(items), Some(each)) => items.iter().all(|item| self.fits(each, Some(item))),
                _ => false,
            },
            (None, Kind::Text(text)) if text.contains("{{") => {
                text.starts_with("{{") && text.ends_with("}}") || value.as_str().is_some()
            }
            (None, Kind::Text(_) | Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_)) => {
                constant(node) == *value
            }
            (None, Kind::List(_)) => value.as_list().is_some(),
            (None, Kind::Map(_)) => value.as_map().is_some_and(|members| {
                let walk = Walk { node, place: node.span };
                let written = |name: &str| self.step(&walk, name);
                members.iter().all(|(name, value)| written(name).is_some_and(|w| self.fits(w.node, Some(value))))
            }),
        }
    }

    /// The row that a value was looked up in; the table, where several rows say it.
    fn row(&self, node: &Node, value: &Tree) -> Option<Span> {
        let text = node.as_text()?;
        let name = text.split("table(").nth(1)?.split(['\'', '"']).nth(1)?;
        let table = self.named("tables", name)?;
        let rows = table.value.as_map()?.iter().filter(|row| constant(&row.value) == *value);
        match rows.collect::<Vec<_>>()[..] {
            [] => None,
            [row] => Some(row.value.span),
            [..] => Some(table.key_span),
        }
    }
}

fn directive(node: &Node) -> Option<&str> {
    node.as_map()?.iter().map(|e| e.key.as_str()).find(|key| key.starts_with('$'))
}

/// Every element of a loop is written once. A list may lose elements that are null, and is then not walked.
fn element<'n>(walk: &Walk<'n>, index: usize, length: usize) -> Option<Walk<'n>> {
    if let Some(each) = walk.node.get("do").filter(|_| walk.node.get("$each").is_some()) {
        return Some(Walk { node: each, place: walk.place });
    }
    match &walk.node.kind {
        Kind::List(items) if items.len() == length => {
            items.get(index).map(|item| Walk { node: item, place: item.span })
        }
        Kind::List(_) | Kind::Map(_) => None,
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => None,
    }
}

/// Its name; where a patch changed what stands behind the name, that.
fn place_of(entry: &Entry) -> Span {
    if entry.key_span.file == entry.value.span.file { entry.key_span } else { entry.value.span }
}

/// Where a patch takes a key of this name away.
fn removed(patch: &Node, name: &str, found: &mut Vec<Span>) {
    for entry in patch.as_map().unwrap_or_default() {
        if entry.key == name && entry.value.as_text() == Some("$remove") {
            found.push(entry.key_span);
        }
        removed(&entry.value, name, found);
    }
}
