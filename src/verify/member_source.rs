//! The line of a member of a body: its YAML, walked by the path of what differs.

use super::difference::Difference;
use super::test_case::Case;
use crate::diagnostics::{Findings, Sources, Span};
use crate::mapping::source::yaml;
use crate::mapping::source::yaml::{Kind, Node};

/// How often a part may lead to a part.
const DEEPEST: usize = 16;

/// Differences of the body name the line of their member, where it can be found; else they keep the body's.
pub fn locate(case: &Case, differences: &mut [Difference], sources: &Sources) {
    let Some(dialect) = &case.dialect else { return };
    let span = dialect.body.span;
    if !differences.iter().any(|d| d.path.starts_with("body")) || is_patched(case, sources) {
        return;
    }
    let Some(file) = parsed(span, sources) else { return };
    for difference in differences {
        let Some(path) = difference.path.strip_prefix("body") else { continue };
        if let (Some(made), Some(found)) = (&mut difference.made, walk(&file, &steps(path)))
            && made.span == span
        {
            made.span = found;
        }
    }
}

/// What a profile puts in the place of a part stands in another file.
fn is_patched(case: &Case, sources: &Sources) -> bool {
    let Some(dialect) = &case.dialect else { return false };
    let Some(profile) = &dialect.profile else { return false };
    let name = format!("profiles/{profile}.yaml");
    let Some((id, source)) = sources.iter().find(|(_, s)| s.name == name) else { return true };
    let patch = yaml::parse(id, &source.text, &Findings::default());
    patch.is_none_or(|node| node.get("patch").is_some_and(|patch| patch.get(&dialect.name).is_some()))
}

fn parsed(span: Span, sources: &Sources) -> Option<Node> {
    yaml::parse(span.file, &sources.get(span.file)?.text, &Findings::default())
}

#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    Element,
}

/// `.choices[0].text`, ` $.choices[*].text`: as far as it can be read.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for name in path.trim_start().trim_start_matches('$').split('.').skip(1) {
        let (member, elements) = name.split_once('[').map_or((name, ""), |(member, rest)| (member, rest));
        if member.is_empty() || !member.chars().all(|c| c.is_alphanumeric() || c == '_') {
            break;
        }
        steps.push(Step::Member(member.to_owned()));
        if !elements.chars().all(|c| c.is_ascii_digit() || "*[]".contains(c)) {
            break;
        }
        steps.extend(elements.matches(']').map(|_| Step::Element));
    }
    steps
}

/// The last key on the way.
fn walk(file: &Node, steps: &[Step]) -> Option<Span> {
    let (mut node, mut found) = (file.get("body")?, None);
    for step in steps {
        let Some(opened) = open(node, file, DEEPEST) else { break };
        let next = match (step, &opened.kind) {
            (Step::Member(name), Kind::Map(entries)) => {
                entries.iter().find(|e| e.key == *name).map(|e| (&e.value, e.key_span))
            }
            (Step::Element, Kind::Map(_)) => opened.get("$each").and(opened.get("do")).map(|n| (n, n.span)),
            // Which one it is, is not said.
            (Step::Element | Step::Member(_), _) => None,
        };
        let Some((next, span)) = next else { break };
        if matches!(step, Step::Member(_)) {
            found = Some(span);
        }
        node = next;
    }
    found
}

/// Through parts and conditions to what is written.
fn open<'n>(node: &'n Node, file: &'n Node, left: usize) -> Option<&'n Node> {
    let left = left.checked_sub(1)?;
    if let Some(name) = node.get("$use").and_then(Node::as_text) {
        return open(file.get("parts")?.get(name)?, file, left);
    }
    if node.get("$if").is_some() {
        return open(node.get("then")?, file, left);
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::{Step, steps};

    #[test]
    fn a_path_is_read_as_far_as_it_is_plain() {
        let member = |name: &str| Step::Member(name.to_owned());
        assert_eq!(steps(".choices[0].text"), [member("choices"), Step::Element, member("text")]);
        assert_eq!(steps(" $.choices[*].text[1]"), [member("choices"), Step::Element, member("text"), Step::Element]);
        assert_eq!(steps(" $.a[?@.b].c"), [member("a")]);
        assert_eq!(steps(""), []);
    }
}
