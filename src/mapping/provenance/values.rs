//! Traces a value of a rendered frame, body or error back to its YAML line, through `base:`, fragments, directives and
//! the patch of a profile. Used only for values that violate a schema; stops at the deepest node that is certain.

use crate::diagnostics::{Span, did_you_mean};
use crate::domain::{Scope, Text, Tree};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::profile_patch::PatchedDialect;
use crate::mapping::source::field_reader::constant;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use reframe_json::{SchemaViolation, ViolationKind};
use std::sync::Arc;

/// The YAML of the files that define frames, bodies and errors.
#[derive(Debug, Default)]
pub struct DialectSources {
    pub dialects: Vec<PatchedDialect>,
    pub shared: Option<Arc<Node>>,
}

/// Finds the lines of one compiled dialect.
pub struct DialectLocator<'w> {
    source: &'w PatchedDialect,
    shared: Option<&'w Node>,
    policies: &'w [(Text, Tree)],
}

/// The current position of a walk.
struct Cursor<'n> {
    node: &'n Node,
    /// The deepest span that is certain.
    span: Span,
}

impl DialectSources {
    pub fn of<'w>(&'w self, dialect: &'w DialectPlan) -> Option<DialectLocator<'w>> {
        let source = self.dialects.iter().find(|s| s.dialect == dialect.name && s.profile == dialect.profile)?;
        let policies = &dialect.resolved.policies.values;
        Some(DialectLocator { source, shared: self.shared.as_deref(), policies })
    }
}

impl DialectLocator<'_> {
    /// The order of a scope.
    pub fn locate_order(&self, scope: Scope) -> Option<Span> {
        Some(self.source.node.get("stream")?.get("order")?.get(scope.name())?.span)
    }

    /// The line that causes a violation, in the output of the frame, body or error that begins at `template`.
    pub fn locate_violation(&self, template: Span, data: &Tree, violation: &SchemaViolation) -> Option<Span> {
        let path: Vec<String> = reframe_json::pointer_tokens(&violation.pointer).collect();
        match &violation.kind {
            ViolationKind::Missing(name) => self.locate_missing_member(template, data, &path, name),
            ViolationKind::NotAllowed(names) => {
                self.locate_unknown_member(template, data, &path, names.first().map_or("", String::as_str))
            }
            ViolationKind::WrongType(_)
            | ViolationKind::NotOneOf(_)
            | ViolationKind::NotEqual(_)
            | ViolationKind::Unmet(_)
            | ViolationKind::NoAlternative(_)
            | ViolationKind::Rejected
            | ViolationKind::Other(_) => self.locate_value(template, data, &path),
        }
    }

    /// Where a member of the body is defined, by its path in a test: `.choices[0].text`, ` $.choices[*].text`. The
    /// deepest member that is certain; `None` if not even the first is.
    pub fn locate_body_member(&self, body: Span, data: &Tree, path: &str) -> Option<Span> {
        let whole = self.template_root(body)?.span;
        let (cursor, _) = self.walk(body, data, &path_tokens(path))?;
        Some(cursor.span).filter(|span| *span != whole)
    }

    /// Where the value at `path` is defined, in the output of the frame, body or error that begins at `template`.
    fn locate_value(&self, template: Span, data: &Tree, path: &[String]) -> Option<Span> {
        let (cursor, value) = self.walk(template, data, path)?;
        let Some(value) = value else { return Some(cursor.span) };
        // A value from a fragment or a branch is located there, and a value from a table in its row.
        let cursor = self.resolve_directives(cursor, Some(value)).unwrap_or_else(|cursor| cursor);
        Some(self.table_row(cursor.node, value).unwrap_or(cursor.span))
    }

    /// Where a member is defined that the schema does not allow.
    fn locate_unknown_member(&self, template: Span, data: &Tree, path: &[String], name: &str) -> Option<Span> {
        if let Some(rename) = self.source.renames.iter().find(|r| r.value.as_text() == Some(name)) {
            return Some(rename.value.span);
        }
        let path: Vec<String> = path.iter().cloned().chain([name.to_owned()]).collect();
        self.walk(template, data, &path).map(|(cursor, _)| cursor.span)
    }

    /// Where a required member is missing: the renaming that gave it another name, the only patch that removes a member
    /// of this name, or else the map that should contain it.
    fn locate_missing_member(&self, template: Span, data: &Tree, path: &[String], name: &str) -> Option<Span> {
        let owner = path.iter().try_fold(data, |node, name| match name.parse::<usize>() {
            Ok(index) if node.as_list().is_some() => node.at(index),
            _ => node.get(name),
        });
        let renames_it = |rename: &&Entry| {
            let new = rename.value.as_text().filter(|new| owner.is_some_and(|o| o.get(new).is_some()));
            new.is_some_and(|new| rename.key == name || did_you_mean(new, [name]).is_some())
        };
        if let Some(rename) = self.source.renames.iter().find(renames_it) {
            return Some(rename.value.span);
        }
        let mut removals = Vec::new();
        let removes = |entry: &&Entry| entry.key == name && entry.value.as_text() == Some("$remove");
        self.source.patches.iter().for_each(|patch| {
            patch.value.visit("", &mut |_, node| {
                removals.extend(node.as_map().unwrap_or_default().iter().filter(removes).map(|entry| entry.key_span));
            });
        });
        match removals[..] {
            [only] => Some(only),
            _ => self.locate_value(template, data, path),
        }
    }

    /// Walks as far as is certain. Returns the value at that position, or `None` if the walk stopped before the end of
    /// `path`.
    fn walk<'t>(&self, template: Span, data: &'t Tree, path: &[String]) -> Option<(Cursor<'_>, Option<&'t Tree>)> {
        let (mut cursor, mut path, mut value) = (self.template_root(template)?, path, data);
        if let Some((frame, base)) = self.frame(template) {
            let own = frame.value.get("data")?;
            cursor = Cursor { node: own, span: frame.key_span };
            if let (Some(base), Some((first, rest))) = (base, path.split_first()) {
                // The frame's own keys override those of `base:`; the output does not show which of the two a key is
                // from.
                let own = self.resolve_directives(cursor, None).unwrap_or_else(|cursor| cursor);
                let base = self
                    .resolve_directives(Cursor { node: base, span: frame.key_span }, None)
                    .unwrap_or_else(|cursor| cursor);
                let Some(next) = self.member(&own, first).or_else(|| self.member(&base, first)) else {
                    return Some((Cursor { span: frame.key_span, ..own }, None));
                };
                let Some(member) = data.get(first) else { return Some((next, None)) };
                (cursor, path, value) = (next, rest, member);
            }
        }
        for name in path {
            cursor = match self.resolve_directives(cursor, Some(value)) {
                Ok(cursor) => cursor,
                Err(cursor) => return Some((cursor, None)),
            };
            let index = name.parse::<usize>().ok().filter(|_| value.as_list().is_some());
            let next = match index {
                Some(index) => element(&cursor, index, value.as_list().map_or(0, <[Tree]>::len)),
                None => self.member(&cursor, name),
            };
            let Some(next) = next else { return Some((cursor, None)) };
            cursor = next;
            value = match index.map_or_else(|| value.get(name), |index| value.at(index)) {
                Some(value) => value,
                None => return Some((cursor, None)),
            };
        }
        Some((cursor, Some(value)))
    }

    fn template_root(&self, template: Span) -> Option<Cursor<'_>> {
        let entries = self.source.node.as_map()?;
        let keys = ["body", "errors"].into_iter().filter_map(|key| entries.iter().find(|e| e.key == key));
        let whole = keys.into_iter().find(|e| e.value.span == template);
        let cursor = whole.map(|e| Cursor { node: &e.value, span: entry_span(e) });
        cursor.or_else(|| self.frame(template).map(|(frame, _)| Cursor { node: &frame.value, span: frame.key_span }))
    }

    /// The frame with this key span, and the base that it extends.
    fn frame(&self, template: Span) -> Option<(&Entry, Option<&Node>)> {
        let stream = self.source.node.get("stream")?;
        let moments = stream.get("frames")?.as_map()?;
        let frame = moments.iter().filter_map(|m| m.value.as_map()).flatten().find(|f| f.key_span == template)?;
        let without_base = matches!(frame.value.get("base"), Some(Node { kind: YamlKind::Bool(false), .. }));
        Some((frame, stream.get("base").filter(|_| !without_base)))
    }

    /// Follows the directives at this node to the value that they produce. `Err` with the original position if more
    /// than one branch is possible.
    fn resolve_directives<'n>(&'n self, cursor: Cursor<'n>, value: Option<&Tree>) -> Result<Cursor<'n>, Cursor<'n>> {
        let mut cursor = cursor;
        loop {
            let Some(directive) = directive(cursor.node) else { return Ok(cursor) };
            let next = match directive {
                "$use" => self
                    .fragment(cursor.node)
                    .map(|fragment| Cursor { node: &fragment.value, span: entry_span(fragment) }),
                "$if" | "$switch" => {
                    let mut candidates = self.branches(cursor.node);
                    candidates.retain(|candidate| self.can_produce(candidate, value));
                    match candidates[..] {
                        [only] => Some(Cursor { node: only, span: only.span }),
                        _ => None,
                    }
                }
                _ => return Ok(cursor),
            };
            match next {
                Some(next) => cursor = next,
                None => return Err(cursor),
            }
        }
    }

    fn member<'n>(&self, cursor: &Cursor<'n>, name: &str) -> Option<Cursor<'n>> {
        let called = |key: &str| {
            let renamed = self.source.renames.iter().find(|r| r.key == key).and_then(|r| r.value.as_text());
            renamed.unwrap_or(key) == name
        };
        let entry = cursor.node.as_map()?.iter().find(|e| called(&e.key))?;
        Some(Cursor { node: &entry.value, span: entry_span(entry) })
    }

    fn fragment(&self, node: &Node) -> Option<&Entry> {
        let name = node.get("$use")?.as_text()?;
        self.definition("fragments", name)
    }

    /// A definition of the dialect, or else of shared.yaml.
    fn definition(&self, key: &str, name: &str) -> Option<&Entry> {
        let files = [Some(&*self.source.node), self.shared];
        files.into_iter().flatten().filter_map(|n| n.get(key)?.as_map()).flatten().find(|e| e.key == name)
    }

    /// The branches of a directive that are possible with the policies.
    fn branches<'n>(&self, node: &'n Node) -> Vec<&'n Node> {
        if let Some(condition) = node.get("$if") {
            let settled = condition.as_text().and_then(|text| {
                let (policy, word) = text.split_once(" == ")?;
                Some(self.policy(policy)? == word.strip_prefix('\'')?.strip_suffix('\'')?)
            });
            let candidates: &[&str] = match settled {
                Some(true) => &["then"],
                Some(false) => &["else"],
                None => &["then", "else"],
            };
            return candidates.iter().filter_map(|candidate| node.get(candidate)).collect();
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

    /// Whether the node can produce this value. True unless it certainly cannot.
    fn can_produce(&self, node: &Node, value: Option<&Tree>) -> bool {
        let Some(value) = value else { return true };
        match (directive(node), &node.kind) {
            (Some("$use"), _) => {
                self.fragment(node).is_none_or(|fragment| self.can_produce(&fragment.value, Some(value)))
            }
            (Some("$if" | "$switch"), _) => {
                self.branches(node).iter().any(|candidate| self.can_produce(candidate, Some(value)))
            }
            (Some(_), _) => match (value.as_list(), node.get("do")) {
                (Some(items), Some(each)) => items.iter().all(|item| self.can_produce(each, Some(item))),
                _ => false,
            },
            (None, YamlKind::Text(text)) if text.contains("{{") => {
                text.starts_with("{{") && text.ends_with("}}") || value.as_str().is_some()
            }
            (None, YamlKind::Text(_) | YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_)) => {
                constant(node) == *value
            }
            (None, YamlKind::List(_)) => value.as_list().is_some(),
            (None, YamlKind::Map(_)) => value.as_map().is_some_and(|members| {
                let cursor = Cursor { node, span: node.span };
                members.iter().all(|(name, value)| {
                    self.member(&cursor, name).is_some_and(|member| self.can_produce(member.node, Some(value)))
                })
            }),
        }
    }

    /// The table row that a value comes from; the table itself if several rows have this value.
    fn table_row(&self, node: &Node, value: &Tree) -> Option<Span> {
        let text = node.as_text()?;
        let name = text.split("table(").nth(1)?.split(['\'', '"']).nth(1)?;
        let table = self.definition("tables", name)?;
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

/// All elements of a loop have one definition. A list of another length has lost null elements and is not walked.
fn element<'n>(cursor: &Cursor<'n>, index: usize, length: usize) -> Option<Cursor<'n>> {
    if let Some(each) = cursor.node.get("do").filter(|_| cursor.node.get("$each").is_some()) {
        return Some(Cursor { node: each, span: cursor.span });
    }
    let item = cursor.node.as_list().filter(|items| items.len() == length)?.get(index)?;
    Some(Cursor { node: item, span: item.span })
}

/// The span of the key; of the value if a patch replaced it.
fn entry_span(entry: &Entry) -> Span {
    if entry.key_span.file == entry.value.span.file { entry.key_span } else { entry.value.span }
}

/// The leading steps of a path that are plain members and elements. `[*]` is read as the first element.
fn path_tokens(path: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for step in path.trim_start().trim_start_matches('$').split('.').skip(1) {
        let (member, elements) = step.split_once('[').unwrap_or((step, ""));
        if member.is_empty() || !member.chars().all(|c| c.is_alphanumeric() || c == '_') {
            break;
        }
        tokens.push(member.to_owned());
        if !elements.chars().all(|c| c.is_ascii_digit() || "*[]".contains(c)) {
            break;
        }
        let indices = elements.split(['[', ']']).filter(|index| !index.is_empty());
        tokens.extend(indices.map(|index| index.replace('*', "0")));
    }
    tokens
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_provenance_values.rs"]
mod tests;
