//! Locates the YAML line of a member of a dialect's body, by the path of the member in the rendered body.

use crate::diagnostics::{Findings, Sources, Span};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::source::yaml;
use crate::mapping::source::yaml::{Node, YamlKind};

/// How many fragments and conditions may be nested.
const MAX_DEPTH: usize = 16;

/// The YAML of a dialect file, for lookups in its `body:`.
pub struct BodyLocator {
    file: Node,
}

impl BodyLocator {
    /// `None` if a profile patches the dialect: its body is then defined in two files.
    pub fn new(dialect: &DialectPlan, sources: &Sources) -> Option<BodyLocator> {
        if is_patched(dialect, sources) {
            return None;
        }
        let file = dialect.body.span.file;
        let node = yaml::parse(file, &sources.get(file)?.text, &Findings::default())?;
        Some(BodyLocator { file: node })
    }

    /// The key of the deepest member on the path: `.choices[0].text`, ` $.choices[*].text`.
    pub fn locate(&self, path: &str) -> Option<Span> {
        let (mut node, mut found) = (self.file.get("body")?, None);
        for step in &parse_path(path) {
            let Some(definition) = resolve_directives(node, &self.file, MAX_DEPTH) else { break };
            let next = match (step, &definition.kind) {
                (PathStep::Member(name), YamlKind::Map(entries)) => {
                    entries.iter().find(|e| e.key == *name).map(|e| (&e.value, e.key_span))
                }
                (PathStep::Element, YamlKind::Map(_)) => {
                    definition.get("$each").and(definition.get("do")).map(|n| (n, n.span))
                }
                // The index of an element is not part of a step.
                (PathStep::Element | PathStep::Member(_), _) => None,
            };
            let Some((next, span)) = next else { break };
            if matches!(step, PathStep::Member(_)) {
                found = Some(span);
            }
            node = next;
        }
        found
    }
}

fn is_patched(dialect: &DialectPlan, sources: &Sources) -> bool {
    let Some(profile) = &dialect.profile else { return false };
    let name = format!("profiles/{profile}.yaml");
    let Some((id, source)) = sources.iter().find(|(_, s)| s.name == name) else { return true };
    let patch = yaml::parse(id, &source.text, &Findings::default());
    patch.is_none_or(|node| node.get("patch").is_some_and(|patch| patch.get(&dialect.name).is_some()))
}

#[derive(Debug, PartialEq)]
enum PathStep {
    Member(String),
    Element,
}

/// The leading steps of a path that are plain members and elements.
fn parse_path(path: &str) -> Vec<PathStep> {
    let mut steps = Vec::new();
    for name in path.trim_start().trim_start_matches('$').split('.').skip(1) {
        let (member, elements) = name.split_once('[').map_or((name, ""), |(member, rest)| (member, rest));
        if member.is_empty() || !member.chars().all(|c| c.is_alphanumeric() || c == '_') {
            break;
        }
        steps.push(PathStep::Member(member.to_owned()));
        if !elements.chars().all(|c| c.is_ascii_digit() || "*[]".contains(c)) {
            break;
        }
        steps.extend(elements.matches(']').map(|_| PathStep::Element));
    }
    steps
}

/// Follows fragments and conditions to the node that defines the value.
fn resolve_directives<'n>(node: &'n Node, file: &'n Node, depth_left: usize) -> Option<&'n Node> {
    let depth_left = depth_left.checked_sub(1)?;
    if let Some(name) = node.get("$use").and_then(Node::as_text) {
        return resolve_directives(file.get("fragments")?.get(name)?, file, depth_left);
    }
    if node.get("$if").is_some() {
        return resolve_directives(node.get("then")?, file, depth_left);
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::{PathStep, parse_path};

    #[test]
    fn a_path_is_parsed_up_to_the_first_filter() {
        let member = |name: &str| PathStep::Member(name.to_owned());
        assert_eq!(parse_path(".choices[0].text"), [member("choices"), PathStep::Element, member("text")]);
        assert_eq!(
            parse_path(" $.choices[*].text[1]"),
            [member("choices"), PathStep::Element, member("text"), PathStep::Element]
        );
        assert_eq!(parse_path(" $.a[?@.b].c"), [member("a")]);
        assert_eq!(parse_path(""), []);
    }
}
