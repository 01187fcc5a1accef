//! Compiles skeletons: checks placeholders and directives against the variables in scope, and inserts fragments.

use super::directives::{DIRECTIVES, Each, If, Merge, Reject, SkeletonNode, Switch};
use super::expression::{Expression, ExpressionPoolBuilder};
use super::scope::VariableScope;
use super::selector::Selector;
use super::skeleton::{Skeleton, TextSegment};
use super::skeleton_fragments::{FragmentInUse, Fragments};
use super::template::{Template, TemplateSegment};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::Tree;
use crate::domain::variables::VariableType;
use crate::mapping::config::rename_fields::RenameFields;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::grammar::{At, FromNode, Section};
use crate::mapping::source::field_reader::{LoadContext, constant, text_of};
use crate::mapping::source::yaml::{Node, YamlKind};
use std::sync::Arc;

pub struct SkeletonCompiler<'c, 'n> {
    pub cx: LoadContext<'c>,
    pub pool: &'c ExpressionPoolBuilder,
    pub fragments: &'c Fragments<'n>,
    /// Field names that the profile renames in all output.
    pub rename_fields: &'c RenameFields,
}

/// Limit for a value with all fragments inserted. Rendering, validating and writing it are recursive, and JSON that is
/// read has a similar limit.
const MAX_DEPTH: usize = 96;
/// Limit for nested `$each` with iterations that multiply: two over a list of a thousand elements are a million iterations.
const MAX_MULTIPLYING_LOOPS: usize = 2;
/// Limit for the values of one file with all fragments inserted. Fragments that use others several times multiply.
pub(super) const MAX_VALUES: usize = 50_000;

impl SkeletonCompiler<'_, '_> {
    pub fn compile(&self, node: &Node, scope: &VariableScope) -> Option<Skeleton> {
        let skeleton = self.node(node, scope, &mut Vec::new())?;
        let depth = skeleton.depth();
        if depth > MAX_DEPTH {
            let message =
                format!("with all fragments inserted, this is nested {depth} levels deep; the limit is {MAX_DEPTH}");
            self.cx.error(Code::FragmentCycle, node.span, message);
            return None;
        }
        Some(skeleton)
    }

    pub fn condition(&self, node: &Node, scope: &VariableScope) -> Option<Expression> {
        let Some(text) = node.as_text() else {
            self.cx.wrong_type(node, "an expression");
            return None;
        };
        self.pool.add(text, node.span, scope, self.cx).map(|(expression, _)| expression)
    }

    pub(super) fn node(&self, node: &Node, scope: &VariableScope, used: &mut Vec<FragmentInUse>) -> Option<Skeleton> {
        if !self.cx.budget.spend(1) {
            return None;
        }
        let count = self.pool.count_values(1);
        if count > MAX_VALUES {
            // Reported once, at the outermost `$use`.
            if let Some(fragment) = used.first().filter(|_| count == MAX_VALUES + 1) {
                let message = format!("with all fragments inserted, this file has more than {MAX_VALUES} values");
                let help = "a fragment that is used several times by another one multiplies: use `$each` for lists";
                self.cx.add(Diagnostic::new(Code::FragmentCycle, fragment.span, message).help(help));
            }
            return None;
        }
        match &node.kind {
            YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) => {
                Some(Skeleton::Constant(constant(node)))
            }
            YamlKind::Text(text) => self.text(text, node.span, scope),
            YamlKind::List(items) => {
                let compiled: Vec<_> = items.iter().map(|i| self.node(i, scope, used)).collect();
                compiled.into_iter().collect::<Option<Vec<_>>>().map(Skeleton::list)
            }
            YamlKind::Map(entries) => match entries.iter().find(|e| e.key.starts_with('$')) {
                Some(directive) => self.directive(&directive.key, directive.key_span, node, scope, used),
                None => {
                    let compiled: Vec<_> = entries
                        .iter()
                        .map(|e| self.node(&e.value, scope, used).map(|s| (self.rename_fields.renamed(&e.key), s)))
                        .collect();
                    compiled.into_iter().collect::<Option<Vec<_>>>().map(Skeleton::map)
                }
            },
        }
    }

    fn text(&self, text: &str, span: Span, scope: &VariableScope) -> Option<Skeleton> {
        match Template::parse(text, span, self.cx)? {
            Template::Plain => {
                if let Some(path) = single_brace_placeholder(text).filter(|path| scope.resolve(path).is_ok()) {
                    let label = format!("write \"{{{{ {path} }}}}\"");
                    self.cx.add(
                        Diagnostic::new(Code::BadPlaceholder, span, "a placeholder has two braces on each side")
                            .label(label),
                    );
                }
                if is_selector(text) {
                    let message =
                        format!("`{text}` is a selector, which only rules can read; here it would be sent as text");
                    let help = format!(
                        "write a variable, such as \"{{{{ request.model }}}}\", or \"{{{{ '{text}' }}}}\" for the text"
                    );
                    self.cx.add(Diagnostic::new(Code::BadPlaceholder, span, message).help(help));
                    return None;
                }
                Some(Skeleton::Constant(Tree::from(text)))
            }
            Template::Whole { placeholder, optional } => {
                let (expression, _) = self.pool.add(&placeholder.expression, placeholder.span, scope, self.cx)?;
                Some(Skeleton::Placeholder { expression, optional })
            }
            Template::Mixed(segments) => {
                let compiled: Vec<_> = segments
                    .into_iter()
                    .map(|s| match s {
                        TemplateSegment::Text(text) => Some(TextSegment::Text(text)),
                        TemplateSegment::Placeholder(placeholder) => {
                            let added = self.pool.add(&placeholder.expression, placeholder.span, scope, self.cx);
                            added.map(|(expression, _)| TextSegment::Placeholder(expression))
                        }
                    })
                    .collect();
                compiled.into_iter().collect::<Option<_>>().map(Skeleton::Text)
            }
        }
    }

    fn directive(
        &self,
        name: &str,
        span: Span,
        node: &Node,
        scope: &VariableScope,
        used: &mut Vec<FragmentInUse>,
    ) -> Option<Skeleton> {
        let at = At { key: name, key_span: span, cx: self.cx };
        match name {
            "$use" => self.fragment_use(self.use_section(node, name)?, scope, used),
            "$each" => self.each(Each::from_node(node, at)?, scope, used),
            "$if" => self.choose(If::from_node(node, at)?, scope, used),
            "$switch" => self.switch(node, scope, used),
            "$merge" => self.merge(Merge::from_node(node, at)?, scope, used),
            "$reject" => self.reject(Reject::from_node(node, at)?, span, scope, used),
            unknown => {
                let message = format!("unknown directive `{unknown}`");
                self.cx.unknown(Code::BadDirective, span, message, unknown, DIRECTIVES.iter().copied());
                None
            }
        }
    }

    fn reject(
        &self,
        section: Reject,
        span: Span,
        scope: &VariableScope,
        used: &mut Vec<FragmentInUse>,
    ) -> Option<Skeleton> {
        // Elsewhere the backend has already responded.
        if ["request", "upstream"].iter().any(|name| scope.resolve(name).is_err()) {
            let message = "`$reject` is only possible in the body and the headers of a backend's request";
            self.cx.error(Code::BadDirective, span, message);
            return None;
        }
        let message = self.node(section.message.0, scope, used);
        let param = match section.param {
            Some(SkeletonNode(node)) => Some(Arc::new(self.node(node, scope, used)?)),
            None => None,
        };
        Some(Skeleton::Reject { message: Arc::new(message?), param })
    }

    fn choose(&self, section: If, scope: &VariableScope, used: &mut Vec<FragmentInUse>) -> Option<Skeleton> {
        let condition = self.condition(section.condition.0, scope);
        let then = self.node(section.then.0, scope, used);
        let otherwise = match section.otherwise {
            Some(SkeletonNode(node)) => Some(Arc::new(self.node(node, scope, used)?)),
            None => None,
        };
        let condition = condition?;
        let constant = self.pool.constant_value(&condition);
        match constant.map(|v| !matches!(&v, Tree::Bool(false) | Tree::Null) && v.as_str() != Some("")) {
            Some(true) => then,
            Some(false) if otherwise.is_some() => otherwise.map(|o| (*o).clone()),
            Some(false) | None => Some(Skeleton::If { condition, then: Arc::new(then?), otherwise }),
        }
    }

    fn each(&self, section: Each, scope: &VariableScope, used: &mut Vec<FragmentInUse>) -> Option<Skeleton> {
        let list_node = section.list.0;
        let text = text_of(list_node, self.cx)?;
        let (list, kind) = self.pool.add(text, list_node.span, scope, self.cx)?;
        if !matches!(list, Expression::Variable(_)) {
            self.cx.error(Code::BadDirective, list_node.span, "`$each` takes a variable, not an expression");
            return None;
        }
        let element = match kind {
            VariableType::List(record) => VariableType::Record(record),
            VariableType::Json | VariableType::ScalarList => VariableType::Json,
            VariableType::Text
            | VariableType::Int
            | VariableType::Number
            | VariableType::Bool
            | VariableType::Enum(_)
            | VariableType::OpenEnum(_)
            | VariableType::Record(_) => {
                self.cx.error(Code::BadDirective, list_node.span, format!("`{text}` is not a list"));
                return None;
            }
        };
        let inner = scope.with_element(&section.name, element, text);
        if inner.multiplying_loops() > MAX_MULTIPLYING_LOOPS {
            let message = format!("more than {MAX_MULTIPLYING_LOOPS} nested `$each` go over lists of their own");
            let help = "their iterations multiply; an inner `$each` can go over a list of the element around it";
            self.cx.add(Diagnostic::new(Code::BadDirective, list_node.span, message).help(help));
            return None;
        }
        let filter = match section.filter {
            Some(ExpressionNode(node)) => Some(self.condition(node, &inner)?),
            None => None,
        };
        let body = self.node(section.body.0, &inner, used)?;
        Some(Skeleton::Each { list, name: Arc::from(section.name), filter, body: Arc::new(body) })
    }

    fn merge(&self, section: Merge, scope: &VariableScope, used: &mut Vec<FragmentInUse>) -> Option<Skeleton> {
        let mut parts = Vec::new();
        for SkeletonNode(node) in section.parts.0 {
            let part = self.node(node, scope, used)?;
            if let Skeleton::List(_) | Skeleton::Each { .. } | Skeleton::Text(_) = &part {
                self.cx.error(Code::BadDirective, node.span, "`$merge` takes maps");
                return None;
            }
            if let Skeleton::Constant(constant) = &part
                && constant.as_map().is_none()
            {
                self.cx.error(Code::BadDirective, node.span, "`$merge` takes maps");
                return None;
            }
            parts.push(part);
        }
        Some(Skeleton::Merge(parts.into()))
    }

    fn switch(&self, node: &Node, scope: &VariableScope, used: &mut Vec<FragmentInUse>) -> Option<Skeleton> {
        let fields = Switch::open(node, "$switch", self.cx)?;
        let section = Switch::read_fields(&fields)?;
        let on_node = section.on.0;
        let text = text_of(on_node, self.cx)?;
        let compiled = self.pool.add(text, on_node.span, scope, self.cx);
        let mut valid = true;
        let mut cases = Vec::new();
        for entry in fields.unread() {
            match self.node(&entry.value, scope, used) {
                Some(case) => cases.push((entry.key.clone(), case)),
                None => valid = false,
            }
        }
        let default = match section.default {
            Some(SkeletonNode(node)) => Some(Arc::new(self.node(node, scope, used)?)),
            None => None,
        };
        let (on, _) = compiled?;
        if let Some(words) = scope.closed_values(text) {
            for entry in fields.unread() {
                if !words.contains(&entry.key.as_str()) {
                    let message = format!("`{text}` is never `{}`", entry.key);
                    let known = words.iter().copied().chain(["$default"]);
                    self.cx.unknown(Code::PartialSwitch, entry.key_span, message, &entry.key, known);
                    valid = false;
                }
            }
            let missing: Vec<&str> =
                words.iter().copied().filter(|w| !cases.iter().any(|(name, _)| name == w)).collect();
            if default.is_none() && !missing.is_empty() && valid {
                let message = format!("this switch has no case for {}, which `{text}` can be", missing.join(", "));
                self.cx.add(
                    Diagnostic::new(Code::PartialSwitch, on_node.span, message)
                        .help("add a case for each, or `$default:` for the rest"),
                );
                valid = false;
            }
        }
        if let Some(words) = scope.known_values(text) {
            let missing: Vec<&str> =
                words.iter().copied().filter(|w| !cases.iter().any(|(name, _)| name == w)).collect();
            if default.is_none() && !missing.is_empty() && valid {
                let message = format!("this switch has no case for {}, which `{text}` can be", missing.join(", "));
                let help = "add `$default:`: dialects may emit others too";
                self.cx.add(Diagnostic::new(Code::PartialSwitch, on_node.span, message).help(help));
                valid = false;
            }
        }
        if let Some(Tree::Str(word)) = self.pool.constant_value(&on).filter(|_| valid) {
            let case = cases.iter().position(|(name, _)| *name == word);
            return match (case, default) {
                (Some(at), _) => Some(cases.swap_remove(at).1),
                (None, Some(default)) => Some((*default).clone()),
                (None, None) => {
                    let message = format!("`{text}` is `{word}`, and this switch has no case for it");
                    self.cx.error(Code::PartialSwitch, on_node.span, message);
                    None
                }
            };
        }
        valid.then_some(Skeleton::Switch { on, cases: cases.into(), default })
    }
}

/// The inner text of `{ text }` or `{ { text } }`, if it could be a variable.
fn single_brace_placeholder(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let inner = inner.strip_prefix('{').and_then(|i| i.strip_suffix('}')).map_or(inner, str::trim);
    let is_path = !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    is_path.then_some(inner)
}

/// `$.model` or `@['a']`, but not `$.50`: a text that is hardly anything but a selector.
fn is_selector(text: &str) -> bool {
    let mut after = text.chars().skip(2);
    let begins_name = |c: char| c.is_alphabetic() || matches!(c, '_' | '\'' | '"' | '*');
    Selector::looks_like(text) && after.next().is_some_and(begins_name) && !text.contains(char::is_whitespace)
}
