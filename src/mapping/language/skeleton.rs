//! Skeletons: YAML values with holes in them, and few directives. Frames, bodies, errors and backend requests are
//! all skeletons. `$use` is resolved here, so a compiled skeleton stands alone.

use super::expression::{Expr, PoolBuilder};
use super::scope;
use super::scope::Env;
use super::template::{Segment, Template};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::Tree;
use crate::domain::variables::Type;
use crate::mapping::config::rename_fields::Names;
use crate::mapping::source::field_reader::{Cx, Fields, constant, text_of};
use crate::mapping::source::yaml::{Entry, Kind, Node};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Skeleton {
    Constant(Tree),
    /// `optional`: its key (or list element) is left out when the value is null.
    Hole {
        expr: Expr,
        optional: bool,
    },
    Text(Vec<TextSegment>),
    List(Vec<Skeleton>),
    Map(Vec<(Arc<str>, Skeleton)>),
    Each {
        list: Expr,
        name: Arc<str>,
        filter: Option<Expr>,
        body: Box<Skeleton>,
    },
    Switch {
        on: Expr,
        cases: Vec<(String, Skeleton)>,
        default: Option<Box<Skeleton>>,
    },
    /// A part used with variables of another name: `{ $use: usage, with: { usage: turn.usage } }`.
    With {
        name: Arc<str>,
        value: Expr,
        body: Box<Skeleton>,
    },
    If {
        condition: Expr,
        then: Box<Skeleton>,
        otherwise: Option<Box<Skeleton>>,
    },
}

#[derive(Clone, Debug)]
pub enum TextSegment {
    Text(String),
    Hole(Expr),
}

impl Skeleton {
    /// Its fields, if it is a map and no directive.
    pub fn into_map(self) -> Option<Vec<(Arc<str>, Skeleton)>> {
        match self {
            Skeleton::Map(entries) => Some(entries),
            Skeleton::Constant(Tree::Map(entries)) => {
                Some(entries.into_iter().map(|(k, v)| (k, Skeleton::Constant(v))).collect())
            }
            _ => None,
        }
    }
}

/// The named parts that a file can `$use`: its own, then the shared ones.
#[derive(Clone, Debug, Default)]
pub struct Parts<'n>(pub Vec<(&'n str, &'n Node)>);

impl<'n> Parts<'n> {
    pub fn add(&mut self, entries: &'n [Entry]) {
        for entry in entries {
            if !self.0.iter().any(|(n, _)| *n == entry.key) {
                self.0.push((&entry.key, &entry.value));
            }
        }
    }

    fn get(&self, name: &str) -> Option<&'n Node> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, node)| *node)
    }
}

pub struct SkeletonCx<'c, 'n> {
    pub cx: Cx<'c>,
    pub pool: &'c PoolBuilder,
    pub parts: &'c Parts<'n>,
    /// Field names that the profile renames in everything that leaves.
    pub names: &'c Names,
}

const DIRECTIVES: &[&str] = &["$each", "$switch", "$if", "$use"];
/// Parts within parts; deeper is a design mistake, and a circle is found long before.
const MAX_NESTED_PARTS: usize = 16;

impl SkeletonCx<'_, '_> {
    pub fn compile(&self, node: &Node, env: &Env) -> Option<Skeleton> {
        self.at(node, env, &mut Vec::new())
    }

    pub fn condition(&self, node: &Node, env: &Env) -> Option<Expr> {
        let Some(text) = node.as_text() else {
            self.cx.wrong_type(node, "an expression");
            return None;
        };
        self.pool.add(text, node.span, env, self.cx).map(|(expr, _)| expr)
    }

    fn at(&self, node: &Node, env: &Env, used: &mut Vec<Used>) -> Option<Skeleton> {
        match &node.kind {
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => Some(Skeleton::Constant(constant(node))),
            Kind::Text(text) => self.text(text, node.span, env),
            Kind::List(items) => {
                let compiled: Vec<_> = items.iter().map(|i| self.at(i, env, used)).collect();
                compiled.into_iter().collect::<Option<Vec<_>>>().map(Skeleton::List).map(fold)
            }
            Kind::Map(entries) => match entries.iter().find(|e| e.key.starts_with('$')) {
                Some(directive) => self.directive(&directive.key, directive.key_span, node, env, used),
                None => {
                    let compiled: Vec<_> = entries
                        .iter()
                        .map(|e| self.at(&e.value, env, used).map(|s| (self.names.of(&e.key), s)))
                        .collect();
                    compiled.into_iter().collect::<Option<Vec<_>>>().map(Skeleton::Map).map(fold)
                }
            },
        }
    }

    fn text(&self, text: &str, span: Span, env: &Env) -> Option<Skeleton> {
        match Template::parse(text, span, self.cx)? {
            Template::Plain => {
                if let Some(path) = almost_a_hole(text).filter(|path| env.resolve(path).is_ok()) {
                    let label = format!("write \"{{{{ {path} }}}}\"");
                    self.cx
                        .add(Diagnostic::new(Code::BadHole, span, "a hole has two braces on each side").label(label));
                }
                Some(Skeleton::Constant(Tree::from(text)))
            }
            Template::Whole { hole, optional } => {
                let (expr, _) = self.pool.add(&hole.expression, hole.span, env, self.cx)?;
                Some(Skeleton::Hole { expr, optional })
            }
            Template::Mixed(segments) => {
                let compiled: Vec<_> = segments
                    .into_iter()
                    .map(|s| match s {
                        Segment::Text(text) => Some(TextSegment::Text(text)),
                        Segment::Hole(hole) => {
                            let added = self.pool.add(&hole.expression, hole.span, env, self.cx);
                            added.map(|(expr, _)| TextSegment::Hole(expr))
                        }
                    })
                    .collect();
                compiled.into_iter().collect::<Option<Vec<_>>>().map(Skeleton::Text)
            }
        }
    }

    fn directive(&self, name: &str, span: Span, node: &Node, env: &Env, used: &mut Vec<Used>) -> Option<Skeleton> {
        let fields = Fields::of(node, format!("`{name}`"), self.cx)?;
        match name {
            "$use" => {
                let part = fields.get("$use")?;
                let mut inner = env.clone();
                let mut bound = Vec::new();
                for entry in fields.map("with") {
                    let (value, kind) =
                        self.pool.add(text_of(&entry.value, self.cx)?, entry.value.span, env, self.cx)?;
                    if !matches!(value, Expr::Variable(_)) {
                        let message = "`with:` names a variable, not an expression";
                        self.cx.error(Code::BadDirective, entry.value.span, message);
                        return None;
                    }
                    inner = inner.with(&entry.key, kind);
                    bound.push((Arc::from(entry.key.as_str()), value));
                }
                fields.done();
                let body = self.part(part, &inner, used)?;
                Some(bound.into_iter().fold(body, |body, (name, value)| Skeleton::With {
                    name,
                    value,
                    body: Box::new(body),
                }))
            }
            "$each" => self.each(&fields, env, used).inspect(|_| fields.done()),
            "$if" => {
                let condition = fields.get("$if").and_then(|c| self.condition(c, env));
                let then = fields.required("then").and_then(|n| self.at(n, env, used));
                let otherwise = match fields.get("else") {
                    Some(node) => Some(Box::new(self.at(node, env, used)?)),
                    None => None,
                };
                fields.done();
                let condition = condition?;
                match self
                    .pool
                    .settled(&condition)
                    .map(|v| !matches!(&v, Tree::Bool(false) | Tree::Null) && v.as_str() != Some(""))
                {
                    Some(true) => then,
                    Some(false) if otherwise.is_some() => otherwise.map(|o| *o),
                    Some(false) | None => Some(Skeleton::If { condition, then: Box::new(then?), otherwise }),
                }
            }
            "$switch" => self.switch(&fields, env, used),
            unknown => {
                let message = format!("no directive is called `{unknown}`");
                self.cx.unknown(Code::BadDirective, span, message, unknown, DIRECTIVES.iter().copied());
                None
            }
        }
    }

    fn part(&self, name: &Node, env: &Env, used: &mut Vec<Used>) -> Option<Skeleton> {
        let text = text_of(name, self.cx)?;
        let Some(node) = self.parts.get(text) else {
            let message = format!("no part is called `{text}`");
            self.cx.unknown(Code::UnknownPart, name.span, message, text, self.parts.0.iter().map(|(n, _)| *n));
            return None;
        };
        if let Some(first) = used.iter().position(|u| u.part == text) {
            self.cx.add(circle(&used[first + 1..], text, name.span));
            return None;
        }
        if used.len() >= MAX_NESTED_PARTS {
            let message = format!("parts within parts, more than {MAX_NESTED_PARTS} deep");
            self.cx.error(Code::PartCycle, name.span, message);
            return None;
        }
        used.push(Used { part: text.to_owned(), span: name.span });
        let mut words = String::new();
        all_text(node, &mut words);
        let part = scope::Used { name: text.to_owned(), span: name.span, text: words.into() };
        let compiled = self.at(node, &env.in_part(part), used);
        used.pop();
        compiled
    }

    fn each(&self, fields: &Fields, env: &Env, used: &mut Vec<Used>) -> Option<Skeleton> {
        let list_node = fields.get("$each")?;
        let text = text_of(list_node, self.cx)?;
        let compiled = self.pool.add(text, list_node.span, env, self.cx);
        let name = fields.required_text("as");
        let body = fields.required("do");
        let (list, kind) = compiled?;
        if !matches!(list, Expr::Variable(_)) {
            self.cx.error(Code::BadDirective, list_node.span, "`$each` walks a variable, not an expression");
            return None;
        }
        let element = match kind {
            Type::List(shape) => Type::Record(shape),
            Type::Json | Type::Scalars => Type::Json,
            Type::Text | Type::Int | Type::Number | Type::Bool | Type::Word(_) | Type::Record(_) => {
                self.cx.error(Code::BadDirective, list_node.span, format!("`{text}` is not a list"));
                return None;
            }
        };
        let inner = env.with(name?, element);
        let filter = match fields.get("where") {
            Some(node) => Some(self.condition(node, &inner)?),
            None => None,
        };
        let body = self.at(body?, &inner, used)?;
        Some(Skeleton::Each { list, name: Arc::from(name?), filter, body: Box::new(body) })
    }

    fn switch(&self, fields: &Fields, env: &Env, used: &mut Vec<Used>) -> Option<Skeleton> {
        let on_node = fields.get("$switch")?;
        let text = text_of(on_node, self.cx)?;
        let compiled = self.pool.add(text, on_node.span, env, self.cx);
        let default = fields.get("$default");
        let mut sound = true;
        let mut cases = Vec::new();
        for entry in fields.rest() {
            match self.at(&entry.value, env, used) {
                Some(case) => cases.push((entry.key.clone(), case)),
                None => sound = false,
            }
        }
        let default = match default {
            Some(node) => Some(Box::new(self.at(node, env, used)?)),
            None => None,
        };
        let (on, _) = compiled?;
        if let Some(words) = env.words(text) {
            for entry in fields.rest() {
                if !words.contains(&entry.key.as_str()) {
                    let message = format!("`{text}` is never `{}`", entry.key);
                    let known = words.iter().copied().chain(["$default"]);
                    self.cx.unknown(Code::PartialSwitch, entry.key_span, message, &entry.key, known);
                    sound = false;
                }
            }
            let missing: Vec<&str> =
                words.iter().copied().filter(|w| !cases.iter().any(|(name, _)| name == w)).collect();
            if default.is_none() && !missing.is_empty() && sound {
                let message = format!("this switch lacks {}, and `{text}` can be that", missing.join(", "));
                self.cx.add(
                    Diagnostic::new(Code::PartialSwitch, on_node.span, message)
                        .help("add a case for each, or `$default:` for the rest"),
                );
                sound = false;
            }
        }
        if let Some(Tree::Str(word)) = self.pool.settled(&on).filter(|_| sound) {
            let case = cases.iter().position(|(name, _)| *name == word);
            return match (case, default) {
                (Some(at), _) => Some(cases.swap_remove(at).1),
                (None, Some(default)) => Some(*default),
                (None, None) => {
                    let message = format!("`{text}` is `{word}`, and this switch has no case for it");
                    self.cx.error(Code::PartialSwitch, on_node.span, message);
                    None
                }
            };
        }
        sound.then_some(Skeleton::Switch { on, cases, default })
    }
}

/// A `$use` on the way to the place at hand.
struct Used {
    part: String,
    span: Span,
}

/// The values of a tree, one after the other.
fn all_text(node: &Node, words: &mut String) {
    match &node.kind {
        Kind::Text(text) => {
            words.push_str(text);
            words.push(' ');
        }
        Kind::List(items) => items.iter().for_each(|i| all_text(i, words)),
        Kind::Map(entries) => entries.iter().for_each(|e| all_text(&e.value, words)),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
    }
}

/// The same circle is met from every part of it. It is said once, at the first `$use` of it in the file.
fn circle(way: &[Used], back_to: &str, span: Span) -> Diagnostic {
    let mut steps: Vec<(&str, Span)> = way.iter().map(|u| (u.part.as_str(), u.span)).collect();
    steps.push((back_to, span));
    let first = steps.iter().enumerate().min_by_key(|(_, (_, s))| (s.file, s.start)).map_or(0, |(i, _)| i);
    steps.rotate_left(first);
    let (part, span) = steps[0];
    let names: Vec<&str> = steps.iter().map(|(name, _)| *name).chain([part]).collect();
    Diagnostic::new(Code::PartCycle, span, format!("the part `{part}` uses itself: {}", names.join(" → ")))
        .help("a part may use other parts, but no circle; lists are walked with `$each`")
}

/// What has no hole is a constant, however deep.
fn fold(skeleton: Skeleton) -> Skeleton {
    match skeleton {
        Skeleton::Map(entries) if entries.iter().all(|(_, s)| matches!(s, Skeleton::Constant(_))) => {
            Skeleton::Constant(Tree::Map(
                entries
                    .into_iter()
                    .filter_map(|(k, s)| match s {
                        Skeleton::Constant(tree) => Some((k, tree)),
                        _ => None,
                    })
                    .collect(),
            ))
        }
        Skeleton::List(items) if items.iter().all(|s| matches!(s, Skeleton::Constant(_))) => {
            Skeleton::Constant(Tree::List(
                items
                    .into_iter()
                    .filter_map(|s| match s {
                        Skeleton::Constant(tree) => Some(tree),
                        _ => None,
                    })
                    .collect(),
            ))
        }
        other => other,
    }
}

/// `{ text }`, `{ { text } }`: what stands in it, if that could be a variable.
fn almost_a_hole(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let inner = inner.strip_prefix('{').and_then(|i| i.strip_suffix('}')).map_or(inner, str::trim);
    let is_path = !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    is_path.then_some(inner)
}
