//! The schema files that an OpenAPI document refers to, as its components. Only names and references are rewritten.

use crate::domain::Tree;
use crate::mapping::Plan;

pub struct Components<'p> {
    plan: &'p Plan,
    /// File below `schemas/` → its parsed text, in the order of first reference.
    included: Vec<(String, Tree)>,
}

impl<'p> Components<'p> {
    pub fn new(plan: &'p Plan) -> Components<'p> {
        Components { plan, included: Vec::new() }
    }

    /// `chat/body.json`, or `responses/events.json#/$defs/x`, as a reference within the document.
    pub fn reference(&mut self, name: &str) -> Tree {
        let (file, fragment) = name.split_once('#').unwrap_or((name, ""));
        self.include(file);
        Tree::map([("$ref", Tree::from(pointer(file, fragment)))])
    }

    pub fn title(&self, name: &str) -> Option<String> {
        let file = name.split('#').next().unwrap_or_default();
        let (_, tree) = self.included.iter().find(|(f, _)| f == file)?;
        tree.get("title").and_then(Tree::as_str).map(str::to_owned)
    }

    fn include(&mut self, file: &str) {
        if self.included.iter().any(|(f, _)| f == file) {
            return;
        }
        let name = format!("schemas/{file}");
        let source = self.plan.sources.iter().find(|(_, s)| s.name == name);
        let Some(mut tree) = source.and_then(|(_, s)| Tree::parse(s.text.as_bytes()).ok()) else { return };
        // Added before its references are followed: files may refer to each other.
        let at = self.included.len();
        self.included.push((file.to_owned(), Tree::Null));
        let mut references = Vec::new();
        rewrite(&mut tree, file, &mut references);
        self.included[at].1 = tree;
        references.iter().for_each(|other| self.include(other));
    }

    pub fn schemas(self) -> Tree {
        let mut all: Vec<(String, Tree)> = self.included.into_iter().map(|(f, t)| (component(&f), t)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Tree::map(all)
    }
}

/// `chat/body.json` → `chat.body`
fn component(file: &str) -> String {
    file.trim_end_matches(".json").replace('/', ".")
}

fn pointer(file: &str, fragment: &str) -> String {
    format!("#/components/schemas/{}{fragment}", component(file))
}

fn rewrite(tree: &mut Tree, file: &str, references: &mut Vec<String>) {
    match tree {
        Tree::Map(members) => {
            for (key, value) in members {
                match value.as_str().filter(|_| &**key == "$ref") {
                    Some(reference) => {
                        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
                        let target = resolve(file, path);
                        let rewritten = pointer(&target, fragment);
                        references.push(target);
                        *value = Tree::from(rewritten);
                    }
                    None => rewrite(value, file, references),
                }
            }
        }
        Tree::List(items) => items.iter_mut().for_each(|i| rewrite(i, file, references)),
        _ => {}
    }
}

/// Resolves a path relative to `file`: `../shared/x.json` in `chat/body.json` is `shared/x.json`.
fn resolve(file: &str, path: &str) -> String {
    if path.is_empty() {
        return file.to_owned();
    }
    let mut steps: Vec<&str> = file.split('/').collect();
    steps.pop();
    for step in path.split('/') {
        match step {
            "." | "" => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}
