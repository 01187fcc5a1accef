//! `gateway:` of a profile that was chosen by `--profile`: a layer on top of gateway.yaml, and on top of it the
//! environment variables of the profile that set something of the gateway.

use super::layers;
use super::profile::Profile;
use super::profile_environment::{Variable, VariableTarget, VariableValue};
use crate::diagnostics::{Span, did_you_mean};
use crate::mapping::policy::environment::Environment;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;

/// A setting of the gateway that an environment variable made. Its value may be a secret, so it is not kept.
#[derive(Clone, Debug)]
pub struct GatewayVariable {
    pub variable: String,
    /// `keepalive.every`, or several with commas.
    pub setting: String,
    /// Where the profile names the variable.
    pub span: Span,
}

/// A variable with a prefix of a profile that no profile names.
#[derive(Clone, Debug)]
pub struct UnknownVariable {
    pub name: String,
    pub did_you_mean: Option<String>,
}

/// gateway.yaml with the settings of a profile. `chain`: the profile after those that it extends.
pub fn with_profile(
    gateway: &Node,
    chain: &[&Profile],
    environment: &Environment,
    cx: LoadContext,
) -> (Arc<Node>, Vec<GatewayVariable>) {
    let own = chain.iter().filter_map(|profile| profile.gateway.map(|layer| Arc::new(layer.0.clone())));
    let files: Vec<Arc<Node>> = std::iter::once(Arc::new(gateway.clone())).chain(own).collect();
    let mut node = merged(&files, cx);
    let mut set = Vec::new();
    for entry in chain.iter().flat_map(|profile| profile.environment.items) {
        let Some(variable) = Variable::read(entry, cx) else { continue };
        let Some(text) = variable.text(|name| environment.get(name)) else { continue };
        let VariableTarget::Gateway(paths) = &variable.target else { continue };
        for path in paths {
            node = with_variable(node, &variable, path, text, cx);
        }
        set.push(GatewayVariable {
            variable: variable.name.to_owned(),
            setting: paths.join(", "),
            span: variable.span,
        });
    }
    (node, set)
}

/// The gateway with a setting of a variable.
fn with_variable(node: Arc<Node>, variable: &Variable, path: &str, text: &str, cx: LoadContext) -> Arc<Node> {
    let span = variable.span;
    match variable.value(text) {
        VariableValue::OfProfile(value) if is_scalar(value) => {
            let mut changed = Arc::unwrap_or_clone(node);
            set_path(&mut changed, path, value.clone());
            Arc::new(changed)
        }
        // A layer: it may add, replace and remove.
        VariableValue::OfProfile(value) => {
            let keys = path.rsplit('.').filter(|key| !key.is_empty());
            let layer = keys.fold(value.clone(), |value, key| nested(key, value, span));
            merged(&[node, Arc::new(layer)], cx)
        }
        VariableValue::Text(text) => {
            let element = |text: &str| Node { span, kind: scalar(text.trim()) };
            let value = match variable.list {
                true => Node { span, kind: YamlKind::List(text.split(',').map(element).collect()) },
                false => element(&text),
            };
            let mut changed = Arc::unwrap_or_clone(node);
            set_path(&mut changed, path, value);
            Arc::new(changed)
        }
    }
}

/// The variables that begin with a prefix of these profiles and that no profile of the set names.
pub fn unknown_variables(used: &[&Profile], all: &[Profile], environment: &Environment) -> Vec<UnknownVariable> {
    let known: Vec<&str> = all.iter().flat_map(|p| p.environment.items).map(|entry| entry.key.as_str()).collect();
    let prefixes: Vec<&String> = used.iter().flat_map(|profile| profile.environment_prefixes.iter()).collect();
    let is_unknown =
        |name: &&str| prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())) && !known.contains(name);
    let unknown = |name: &str| UnknownVariable {
        name: name.to_owned(),
        did_you_mean: did_you_mean(name, known.iter().copied()).map(str::to_owned),
    };
    environment.names().filter(is_unknown).map(unknown).collect()
}

fn merged(files: &[Arc<Node>], cx: LoadContext) -> Arc<Node> {
    let merged = layers::merge(SetFile::Gateway, files, cx).map(|(node, _)| node);
    merged
        .or_else(|| files.first().cloned())
        .unwrap_or_else(|| Arc::new(Node { span: Span::NOWHERE, kind: YamlKind::Null }))
}

/// Whether the value sets one key, and is not the word that removes one.
fn is_scalar(node: &Node) -> bool {
    match &node.kind {
        YamlKind::Text(text) => !text.starts_with('$'),
        YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) => true,
        YamlKind::List(_) | YamlKind::Map(_) => false,
    }
}

fn nested(key: &str, value: Node, span: Span) -> Node {
    Node { span, kind: YamlKind::Map(vec![Entry { key: key.to_owned(), key_span: span, value }]) }
}

fn scalar(text: &str) -> YamlKind {
    match text {
        "true" => YamlKind::Bool(true),
        "false" => YamlKind::Bool(false),
        _ => text.parse().map_or_else(|_| YamlKind::Text(text.to_owned()), YamlKind::Int),
    }
}

/// Sets the value below these keys. What is there and is no map is replaced.
fn set_path(node: &mut Node, path: &str, value: Node) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    if !matches!(node.kind, YamlKind::Map(_)) {
        node.kind = YamlKind::Map(Vec::new());
    }
    let YamlKind::Map(entries) = &mut node.kind else { return };
    let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
        entries.push(Entry {
            key: key.to_owned(),
            key_span: value.span,
            value: Node { span: value.span, kind: YamlKind::Null },
        });
        entries.len() - 1
    });
    let entry = &mut entries[at];
    match rest {
        Some(rest) => set_path(&mut entry.value, rest, value),
        None => (entry.key_span, entry.value) = (value.span, value),
    }
}
