//! A request member that clients may send and nothing reads.
//!
//! ## Why
//!
//! The schema of a dialect's requests (`schemas/FOLDER/request.json`) declares what clients may send. A member that no
//! selector of the dialect reads, and no expression of the dialect or of a backend, has no effect for any client.
//!
//! ## Example
//!
//! ```json
//! "tone": { "type": "string" }
//! ```
//!
//! ```text
//! warning[RF211]: nothing reads the request member `messages[].tone`
//! ```
//!
//! ## Fix
//!
//! Read it in `request:` of the dialect or in the body of a backend. If it is known and has no effect, list it in
//! `ignored:`; responses then do not list it as dropped. Or remove it from the schema.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::config::backend_request::RequestFieldsRead;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::schemas;
use crate::mapping::language::read_paths::ReadTree;
use crate::mapping::source::yaml::Node;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How deep members are compared.
const MAX_DEPTH: usize = 16;

pub(super) fn check(context: &LintContext) {
    let backends: Vec<&RequestFieldsRead> =
        context.plan.backends.iter().filter_map(|backend| backend.sends().map(|(reads, _)| reads)).collect();
    // Without a backend that is sent anything, nothing reads what backends are there for.
    if backends.is_empty() {
        return;
    }
    let mut unread: Vec<(&str, BTreeMap<String, Span>)> = Vec::new();
    let mut documents = Vec::new();
    for (dialect, _) in context.reachable_dialects() {
        let Some(found) = unread_members(dialect, &backends, &mut documents, context) else { continue };
        match unread.iter_mut().find(|(name, _)| *name == dialect.name) {
            // A member that is read under one profile is there for its clients.
            Some((_, known)) => known.retain(|path, _| found.contains_key(path)),
            None => unread.push((&dialect.name, found)),
        }
    }
    for (dialect, members) in unread {
        for (path, span) in members {
            let message = format!("nothing reads the request member `{path}`");
            let help = format!(
                "read it in `request:` of the dialect `{dialect}` or in a backend's body, list it in `ignored:` of \
                 `request:`, or remove it from the schema"
            );
            context.cx.add(Diagnostic::new(Code::UnreadMember, span, message).help(help));
        }
    }
}

/// By path. `None` for a dialect without a schema of its requests.
fn unread_members(
    dialect: &DialectPlan,
    backends: &[&RequestFieldsRead],
    documents: &mut Vec<Document>,
    context: &LintContext,
) -> Option<BTreeMap<String, Span>> {
    let request = &dialect.request;
    let document = request.schema.as_ref()?.name.split('#').next().unwrap_or_default().to_owned();
    let own = RequestFieldsRead::of(dialect.outputs());
    let mut expressions = backends.to_vec();
    expressions.push(&own);
    let mut reads = ReadTree::default();
    reads.merge(&request.always_read);
    request.items.add_possible_reads(&mut reads);
    request.tools.add_possible_reads(&mut reads);
    let mut walk = Walk { context, expressions: &expressions, documents, found: BTreeMap::new() };
    let root = walk.document(&document)?;
    walk.schema(&root, &document, &[&reads], "", 0);
    Some(walk.found)
}

/// The path of a schema, and its content if it can be parsed.
type Document = (String, Option<Rc<Node>>);

struct Walk<'c, 'p> {
    context: &'c LintContext<'p>,
    expressions: &'c [&'c RequestFieldsRead],
    /// Those that were parsed so far.
    documents: &'c mut Vec<Document>,
    found: BTreeMap<String, Span>,
}

impl Walk<'_, '_> {
    fn document(&mut self, name: &str) -> Option<Rc<Node>> {
        if let Some((_, known)) = self.documents.iter().find(|(known, _)| known == name) {
            return known.clone();
        }
        let node = schemas::read(name, self.context.cx.sources);
        self.documents.push((name.to_owned(), node.clone()));
        node
    }

    /// `reads`: what is read of a value of this schema.
    fn schema(&mut self, schema: &Node, document: &str, reads: &[&ReadTree], path: &str, depth: usize) {
        if depth > MAX_DEPTH || reads.iter().any(|tree| tree.whole) {
            return;
        }
        if let Some(reference) = schema.get("$ref").and_then(Node::as_text) {
            let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
            let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
            let file = if file.is_empty() { document.to_owned() } else { format!("{folder}/{file}") };
            if let Some(root) = self.document(&file) {
                let (target, _, is_found) = root.follow(pointer);
                if is_found {
                    self.schema(target, &file, reads, path, depth + 1);
                }
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for alternative in schema.get(keyword).and_then(Node::as_list).unwrap_or_default() {
                self.schema(alternative, document, reads, path, depth + 1);
            }
        }
        for keyword in ["then", "else"] {
            if let Some(inner) = schema.get(keyword) {
                self.schema(inner, document, reads, path, depth + 1);
            }
        }
        for member in schema.get("properties").and_then(Node::as_map).unwrap_or_default() {
            let inner = if path.is_empty() { member.key.clone() } else { format!("{path}.{}", member.key) };
            if reads.iter().any(|tree| tree.anywhere.contains(&member.key)) || self.is_in_expression(&inner) {
                continue;
            }
            let named = reads.iter().filter_map(|tree| tree.members.get(&member.key));
            let found: Vec<&ReadTree> = named.chain(reads.iter().filter_map(|tree| tree.children.as_deref())).collect();
            if found.iter().all(|tree| tree.is_empty()) {
                self.found.entry(inner).or_insert(member.key_span);
            } else {
                self.schema(&member.value, document, &found, &inner, depth + 1);
            }
        }
        if let Some(items) = schema.get("items") {
            let elements: Vec<&ReadTree> = reads.iter().filter_map(|tree| tree.children.as_deref()).collect();
            // A list of which no element is read is tested as a whole.
            if !elements.is_empty() {
                self.schema(items, document, &elements, &format!("{path}[]"), depth + 1);
            }
        }
    }

    /// Whether an expression reads a member as the client sent it, with everything in it.
    fn is_in_expression(&self, path: &str) -> bool {
        self.expressions.iter().any(|reads| match path.split_once('.') {
            None => reads.member(path),
            Some((member, inner)) => reads.nested(member, inner.split(['.', '[']).next().unwrap_or_default()),
        })
    }
}
