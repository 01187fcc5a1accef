//! Which variables exist at a place of a mapping, and their types.

use crate::diagnostics::Span;
use crate::domain::variables::{RecordType, Variable, VariableType};
use std::rc::Rc;

/// The variables in scope, for checking expressions at load time. Every `$use` and `$each` clones it.
#[derive(Clone, Debug)]
pub struct VariableScope {
    /// Completes the sentence "unknown variable `x` in …".
    pub description: Rc<str>,
    /// The fragment that is being compiled.
    pub fragment: Option<Rc<FragmentUse>>,
    visible: VisibleVariables,
    /// Each with its possible values.
    policies: PolicyWords,
    /// How many `$each` around this place go over a list that is not part of the element of the one around them. Their
    /// iterations multiply.
    multiplying_loops: usize,
    /// The names of the innermost element, and of its parts.
    element_names: Vec<Rc<str>>,
}

/// The names of policies, each with its possible values.
pub type PolicyWords = Rc<[(String, Vec<String>)]>;

/// The variables that a place provides, and those that are named around it.
#[derive(Clone, Debug)]
pub struct VisibleVariables {
    provided: Rc<[Variable]>,
    /// Named by `as:` and `with:`.
    local: Vec<(Rc<str>, VariableType)>,
}

impl PartialEq for VisibleVariables {
    fn eq(&self, other: &Self) -> bool {
        // Most are of the same place, and share the list.
        let same_place = Rc::ptr_eq(&self.provided, &other.provided) || self.provided == other.provided;
        same_place && self.local == other.local
    }
}

impl VisibleVariables {
    fn iter(&self) -> impl Iterator<Item = (&str, VariableType)> {
        let local = self.local.iter().map(|(name, kind)| (&**name, *kind));
        self.provided.iter().copied().chain(local)
    }

    /// An inner variable shadows an outer one with the same name.
    fn find(&self, name: &str) -> Option<VariableType> {
        let local = self.local.iter().rev().find(|(n, _)| &**n == name).map(|(_, kind)| *kind);
        local.or_else(|| self.provided.iter().rev().find(|(n, _)| *n == name).map(|(_, kind)| *kind))
    }
}

/// The use of a fragment.
#[derive(Clone, Debug)]
pub struct FragmentUse {
    pub name: String,
    /// The name after `$use`.
    pub span: Span,
    /// All texts of the fragment.
    pub text: Rc<str>,
}

impl FragmentUse {
    /// Whether the fragment refers to `root` or `root.…`.
    pub fn mentions(&self, root: &str) -> bool {
        self.text
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .any(|word| word.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }
}

/// Why a path does not resolve.
#[derive(Debug, PartialEq, Eq)]
pub struct UnresolvedPath {
    /// Full paths for did-you-mean.
    pub candidates: Vec<String>,
    /// The available names, for the help line.
    pub available: String,
    /// Already the first name of the path is unknown.
    pub is_root: bool,
}

impl VariableScope {
    pub fn new(description: impl Into<Rc<str>>, variables: impl IntoIterator<Item = Variable>) -> VariableScope {
        VariableScope {
            description: description.into(),
            fragment: None,
            visible: VisibleVariables { provided: variables.into_iter().collect(), local: Vec::new() },
            policies: Rc::new([]),
            multiplying_loops: 0,
            element_names: Vec::new(),
        }
    }

    pub fn in_fragment(&self, fragment: FragmentUse) -> VariableScope {
        VariableScope { fragment: Some(Rc::new(fragment)), ..self.clone() }
    }

    pub fn visible(&self) -> &VisibleVariables {
        &self.visible
    }

    /// Whether the variable was named by `as:` or `with:`, not provided by the place.
    pub fn is_local_variable(&self, path: &str) -> bool {
        let root = path.split('.').next().unwrap_or_default();
        self.visible.local.iter().any(|(name, _)| &**name == root)
    }

    pub fn policies(mut self, policies: PolicyWords) -> VariableScope {
        self.policies = policies;
        self
    }

    /// The possible values of a variable, where they are a closed set.
    pub fn closed_values(&self, path: &str) -> Option<Vec<&str>> {
        if let Some(name) = path.strip_prefix("policy.") {
            let (_, values) = self.policies.iter().find(|(n, _)| n == name)?;
            return Some(values.iter().map(String::as_str).collect());
        }
        match self.resolve(path) {
            Ok(VariableType::Enum(values)) => Some(values.to_vec()),
            _ => None,
        }
    }

    /// The names that an open list of values is known to have.
    pub fn known_values(&self, path: &str) -> Option<&'static [&'static str]> {
        match self.resolve(path) {
            Ok(VariableType::OpenEnum(values)) => Some(values),
            _ => None,
        }
    }

    fn with(&self, name: &str, kind: VariableType) -> VariableScope {
        let mut scope = self.clone();
        scope.visible.local.push((Rc::from(name), kind));
        scope
    }

    /// Inside `$each`, with a name for the element of the list at `path`.
    pub fn with_element(&self, name: &str, kind: VariableType, path: &str) -> VariableScope {
        let multiplying_loops = self.multiplying_loops + usize::from(!self.is_part_of_element(path));
        VariableScope { multiplying_loops, element_names: vec![Rc::from(name)], ..self.with(name, kind) }
    }

    /// Inside a fragment, with another name for the variable at `path`.
    pub fn with_alias(&self, name: &str, kind: VariableType, path: &str) -> VariableScope {
        let mut scope = self.with(name, kind);
        scope.element_names.retain(|known| &**known != name);
        if self.is_part_of_element(path) {
            scope.element_names.push(Rc::from(name));
        }
        scope
    }

    /// Whether what compiles here compiles there, to the same skeleton.
    pub fn is_equivalent(&self, other: &VariableScope) -> bool {
        self.visible == other.visible
            && self.multiplying_loops == other.multiplying_loops
            && self.element_names == other.element_names
            && (Rc::ptr_eq(&self.policies, &other.policies) || (self.policies.is_empty() && other.policies.is_empty()))
    }

    pub fn multiplying_loops(&self) -> usize {
        self.multiplying_loops
    }

    fn is_part_of_element(&self, path: &str) -> bool {
        let root = path.split('.').next().unwrap_or_default();
        self.element_names.iter().any(|name| &**name == root)
    }

    pub fn resolve(&self, path: &str) -> Result<VariableType, UnresolvedPath> {
        let mut steps = path.split('.');
        let root = steps.next().unwrap_or_default();
        if root == "policy" {
            let name = path.strip_prefix("policy.").unwrap_or_default();
            return if self.policies.iter().any(|(n, _)| n == name) {
                Ok(VariableType::Text)
            } else {
                let names: Vec<&str> = self.policies.iter().map(|(n, _)| n.as_str()).collect();
                let candidates = names.iter().map(|p| format!("policy.{p}")).collect();
                Err(UnresolvedPath {
                    candidates,
                    available: format!("available policies: {}", names.join(", ")),
                    is_root: false,
                })
            };
        }
        let Some(mut kind) = self.visible.find(root) else {
            return Err(UnresolvedPath {
                candidates: self.all_paths(),
                available: self.available_names(),
                is_root: true,
            });
        };
        // The part of the path that is resolved.
        let mut prefix = root.len();
        for step in steps {
            kind = match kind {
                VariableType::Json => VariableType::Json,
                VariableType::Record(record) => match record.field(step) {
                    Some(kind) => kind,
                    None => return Err(unknown_field(&path[..prefix], record)),
                },
                VariableType::Text
                | VariableType::Int
                | VariableType::Number
                | VariableType::Bool
                | VariableType::Enum(_)
                | VariableType::OpenEnum(_)
                | VariableType::List(_)
                | VariableType::ScalarList => {
                    let prefix = &path[..prefix];
                    let available = format!("`{prefix}` has no fields");
                    return Err(UnresolvedPath { candidates: vec![prefix.to_owned()], available, is_root: false });
                }
            };
            prefix += 1 + step.len();
        }
        Ok(kind)
    }

    fn all_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for (name, kind) in self.visible.iter() {
            paths.push(name.to_owned());
            if let VariableType::Record(record) = kind {
                paths.extend(record.fields().unwrap_or(&[]).iter().map(|(f, _)| format!("{name}.{f}")));
            }
        }
        paths.extend(self.policies.iter().map(|(name, _)| format!("policy.{name}")));
        paths
    }

    fn available_names(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (name, kind) in self.visible.iter() {
            let display = if matches!(kind, VariableType::Record(_)) { format!("{name}.*") } else { name.to_owned() };
            if !names.contains(&display) {
                names.push(display);
            }
        }
        if !self.policies.is_empty() {
            names.push("policy.*".to_owned());
        }
        format!("available in {}: {}", self.description, names.join(", "))
    }
}

fn unknown_field(path: &str, record: RecordType) -> UnresolvedPath {
    let fields: Vec<&str> = record.fields().unwrap_or(&[]).iter().map(|(n, _)| *n).collect();
    UnresolvedPath {
        candidates: fields.iter().map(|f| format!("{path}.{f}")).collect(),
        available: format!("fields of `{path}`: {}", fields.join(", ")),
        is_root: false,
    }
}
