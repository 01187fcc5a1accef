//! Which variables exist at a place of a mapping, and of what type.

use crate::diagnostics::Span;
use crate::domain::variables::{Shape, Type};
use std::rc::Rc;

/// The variables in sight.
#[derive(Clone, Debug)]
pub struct Env {
    /// Completes the sentence "no variable `x` in …".
    pub place: String,
    /// The part at hand.
    pub part: Option<Used>,
    variables: Vec<(String, Type)>,
    /// How many of them the place offers; those behind were named in the mapping, by `as:` and `with:`.
    offered: usize,
    /// Each with the words that it can be.
    policies: Vec<(String, Vec<String>)>,
}

/// A part in use.
#[derive(Clone, Debug)]
pub struct Used {
    pub name: String,
    /// The name behind `$use`.
    pub span: Span,
    /// All that stands in the part.
    pub text: Rc<str>,
}

impl Used {
    /// Does the part speak of `root.…`, or of `root` itself?
    pub fn speaks_of(&self, root: &str) -> bool {
        self.text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .any(|word| word.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }
}

/// Why a path does not resolve.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Full paths that could have been meant.
    pub near: Vec<String>,
    /// What there is, for the help line.
    pub offered: String,
    /// Not even the first word is known.
    pub root: bool,
}

impl Env {
    pub fn new(place: impl Into<String>, variables: impl IntoIterator<Item = (&'static str, Type)>) -> Env {
        let variables: Vec<_> = variables.into_iter().map(|(n, t)| (n.to_owned(), t)).collect();
        let offered = variables.len();
        Env { place: place.into(), part: None, variables, offered, policies: Vec::new() }
    }

    pub fn in_part(&self, part: Used) -> Env {
        Env { part: Some(part), ..self.clone() }
    }

    /// Named by `as:` or `with:`, not offered by the place.
    pub fn is_named_here(&self, path: &str) -> bool {
        let root = path.split('.').next().unwrap_or_default();
        self.variables.iter().skip(self.offered).any(|(name, _)| name == root)
    }

    pub fn policies(mut self, policies: Vec<(String, Vec<String>)>) -> Env {
        self.policies = policies;
        self
    }

    /// The words that a variable can be, where they are a closed set.
    pub fn words(&self, path: &str) -> Option<Vec<&str>> {
        if let Some(name) = path.strip_prefix("policy.") {
            let (_, values) = self.policies.iter().find(|(n, _)| n == name)?;
            return Some(values.iter().map(String::as_str).collect());
        }
        match self.resolve(path) {
            Ok(Type::Word(words)) => Some(words.to_vec()),
            _ => None,
        }
    }

    pub fn with(&self, name: &str, kind: Type) -> Env {
        let mut env = self.clone();
        env.variables.push((name.to_owned(), kind));
        env
    }

    /// The innermost variable of a name wins, as in any language.
    fn variable(&self, name: &str) -> Option<Type> {
        self.variables.iter().rev().find(|(n, _)| n == name).map(|(_, t)| *t)
    }

    pub fn resolve(&self, path: &str) -> Result<Type, Unknown> {
        let mut steps = path.split('.');
        let root = steps.next().unwrap_or_default();
        if root == "policy" {
            let name = steps.collect::<Vec<_>>().join(".");
            let names: Vec<&str> = self.policies.iter().map(|(n, _)| n.as_str()).collect();
            return if names.contains(&name.as_str()) {
                Ok(Type::Text)
            } else {
                let near = names.iter().map(|p| format!("policy.{p}")).collect();
                Err(Unknown { near, offered: format!("`policy` offers {}", names.join(", ")), root: false })
            };
        }
        let Some(mut kind) = self.variable(root) else {
            return Err(Unknown { near: self.all_paths(), offered: self.offer(), root: true });
        };
        let mut so_far = root.to_owned();
        for step in steps {
            kind = match kind {
                Type::Json => Type::Json,
                Type::Record(shape) => match shape.field(step) {
                    Some(kind) => kind,
                    None => return Err(fields_unknown(&so_far, shape)),
                },
                Type::Text | Type::Int | Type::Number | Type::Bool | Type::Word(_) | Type::List(_) | Type::Scalars => {
                    let offered = format!("`{so_far}` has no fields");
                    return Err(Unknown { near: vec![so_far], offered, root: false });
                }
            };
            so_far = format!("{so_far}.{step}");
        }
        Ok(kind)
    }

    fn all_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (name, kind) in &self.variables {
            paths.push(name.clone());
            if let Type::Record(shape) = kind {
                paths.extend(shape.fields().unwrap_or(&[]).iter().map(|(f, _)| format!("{name}.{f}")));
            }
        }
        paths.extend(self.policies.iter().map(|(name, _)| format!("policy.{name}")));
        paths
    }

    fn offer(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (name, kind) in &self.variables {
            let shown = if matches!(kind, Type::Record(_)) { format!("{name}.*") } else { name.clone() };
            if !names.contains(&shown) {
                names.push(shown);
            }
        }
        if !self.policies.is_empty() {
            names.push("policy.*".to_owned());
        }
        format!("{} offers {}", self.place, names.join(", "))
    }
}

fn fields_unknown(path: &str, shape: Shape) -> Unknown {
    let fields: Vec<&str> = shape.fields().unwrap_or(&[]).iter().map(|(n, _)| *n).collect();
    Unknown {
        near: fields.iter().map(|f| format!("{path}.{f}")).collect(),
        offered: format!("`{path}` offers {}", fields.join(", ")),
        root: false,
    }
}
