//! Fragments of skeletons: `$use` inserts one, with its own variables. Cycles are errors. A fragment is compiled once for
//! all its uses with the same variables.

use super::directives::Use;
use super::expression::Expression;
use super::scope::{FragmentUse, VariableScope};
use super::skeleton::Skeleton;
use super::skeleton_compiler::{MAX_VALUES, SkeletonCompiler};
use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean};
use crate::mapping::grammar::Section;
use crate::mapping::grammar::collections::MapEntry;
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::source::field_reader::text_of;
use crate::mapping::source::yaml::{Entry, Node};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// How many keys next to `$use` a message lists.
const MAX_LISTED_KEYS: usize = 5;
/// Limit for fragments that use fragments. A cycle is detected before it is reached.
const MAX_NESTED_FRAGMENTS: usize = 16;

/// The named fragments that a file can `$use`: its own, then the shared ones. They belong to one compiler: its pool
/// contains the expressions of what was compiled.
#[derive(Debug, Default)]
pub struct Fragments<'n> {
    fragments: Vec<Fragment<'n>>,
    /// The most `$use` around a node, of all that were compiled.
    deepest: Cell<usize>,
}

#[derive(Debug)]
struct Fragment<'n> {
    name: &'n str,
    node: &'n Node,
    /// All its texts, once it was used.
    texts: OnceCell<Rc<str>>,
    compiled: RefCell<Vec<CompiledFragment>>,
}

/// A fragment without mistakes, as it was compiled for one of its uses.
#[derive(Debug)]
struct CompiledFragment {
    scope: VariableScope,
    skeleton: Skeleton,
    policies_read: Vec<String>,
    /// How many values it has, with all fragments inserted.
    values: usize,
    /// How many `$use` are nested in it.
    nested: usize,
}

impl<'n> Fragments<'n> {
    pub fn add(&mut self, entries: &'n [Entry]) {
        for Entry { key: name, value: node, .. } in entries {
            if self.get(name).is_none() {
                let (texts, compiled) = Default::default();
                self.fragments.push(Fragment { name, node, texts, compiled });
            }
        }
    }

    fn get(&self, name: &str) -> Option<&Fragment<'n>> {
        self.fragments.iter().find(|fragment| fragment.name == name)
    }
}

impl Fragment<'_> {
    fn texts(&self) -> Rc<str> {
        let collect = || {
            let mut texts = String::new();
            self.node.visit("", &mut |_, inner| {
                texts.extend(inner.as_text().into_iter().flat_map(|text| [text, " "]));
            });
            texts.into()
        };
        self.texts.get_or_init(collect).clone()
    }
}

/// A `$use` that contains the node that is being compiled.
pub(super) struct FragmentInUse {
    fragment: String,
    pub(super) span: Span,
}

/// A cycle is found once from each of its fragments. To report it once, the diagnostic always points at the first
/// `$use` of the cycle in the file.
fn cycle_error(path: &[FragmentInUse], back_to: &str, span: Span) -> Diagnostic {
    let mut steps: Vec<(&str, Span)> = path.iter().map(|u| (u.fragment.as_str(), u.span)).collect();
    steps.push((back_to, span));
    let first = steps.iter().enumerate().min_by_key(|(_, (_, s))| (s.file, s.start)).map_or(0, |(i, _)| i);
    steps.rotate_left(first);
    let (fragment, span) = steps[0];
    let names: Vec<&str> = steps.iter().map(|(name, _)| *name).chain([fragment]).collect();
    Diagnostic::new(Code::FragmentCycle, span, format!("the fragment `{fragment}` uses itself: {}", names.join(" → ")))
        .help("fragments must not use each other in a cycle; use `$each` for lists")
}

impl SkeletonCompiler<'_, '_> {
    /// Reads `$use`. Other keys next to it are one mistake: the author expects that they are merged with the fragment.
    pub(super) fn use_section<'n>(&self, node: &'n Node, key: &str) -> Option<Use<'n>> {
        let fields = Use::open(node, key, self.cx)?;
        let section = Use::read_fields(&fields);
        let others = fields.unread();
        let Some(first) = others.first().filter(|_| others.iter().all(|e| did_you_mean(&e.key, ["with"]).is_none()))
        else {
            fields.finish();
            return section;
        };
        let names: Vec<String> = others.iter().take(MAX_LISTED_KEYS).map(|e| format!("`{}`", e.key)).collect();
        let more = if others.len() > MAX_LISTED_KEYS { ", …" } else { "" };
        let message = format!("`$use` cannot have other keys next to it: {}{more}", names.join(", "));
        let help = "a fragment is not merged with other keys: add them to the fragment, or write `KEY: { $use: NAME }`";
        self.cx.add(Diagnostic::new(Code::UnknownKey, first.key_span, message).help(help));
        None
    }

    pub(super) fn fragment_use(
        &self,
        section: Use,
        scope: &VariableScope,
        used: &mut Vec<FragmentInUse>,
    ) -> Option<Skeleton> {
        let mut inner = scope.clone();
        let mut bound = Vec::new();
        for MapEntry { key, value: ExpressionNode(node), .. } in section.with.iter() {
            let (value, kind) = self.pool.add(text_of(node, self.cx)?, node.span, scope, self.cx)?;
            if !matches!(value, Expression::Variable(_)) {
                self.cx.error(Code::BadDirective, node.span, "`with:` takes a variable, not an expression");
                return None;
            }
            inner = inner.with_alias(key, kind, text_of(node, self.cx)?);
            bound.push((Arc::from(key.as_str()), value));
        }
        let body = self.fragment(&section.fragment, &inner, used)?;
        Some(bound.into_iter().fold(body, |body, (name, value)| Skeleton::With { name, value, body: Arc::new(body) }))
    }

    fn fragment(
        &self,
        name: &Spanned<String>,
        scope: &VariableScope,
        used: &mut Vec<FragmentInUse>,
    ) -> Option<Skeleton> {
        let text = name.as_str();
        let Some(fragment) = self.fragments.get(text) else {
            let message = format!("unknown fragment `{text}`");
            self.cx.unknown(
                Code::UnknownFragment,
                name.span,
                message,
                text,
                self.fragments.fragments.iter().map(|f| f.name),
            );
            return None;
        };
        if let Some(first) = used.iter().position(|u| u.fragment == text) {
            self.cx.add(cycle_error(&used[first + 1..], text, name.span));
            return None;
        }
        if used.len() >= MAX_NESTED_FRAGMENTS {
            let message = format!("fragments are nested more than {MAX_NESTED_FRAGMENTS} levels deep");
            self.cx.error(Code::FragmentCycle, name.span, message);
            return None;
        }
        if let Some(known) = self.known_fragment(fragment, scope, used.len()) {
            return Some(known);
        }
        used.push(FragmentInUse { fragment: text.to_owned(), span: name.span });
        let fragment_use = FragmentUse { name: text.to_owned(), span: name.span, text: fragment.texts() };
        let (depth, deepest) = (used.len(), self.fragments.deepest.replace(used.len()));
        let (values, findings) = (self.pool.count_values(0), self.cx.findings.count());
        let (compiled, policies_read) =
            self.pool.with_policies_read(|| self.node(fragment.node, &scope.in_fragment(fragment_use), used));
        used.pop();
        let nested = self.fragments.deepest.get() - depth;
        self.fragments.deepest.set(deepest.max(depth + nested));
        // What was found depends on the place of the use.
        if let Some(skeleton) = compiled.as_ref().filter(|_| self.cx.findings.count() == findings) {
            let values = self.pool.count_values(0) - values;
            let (scope, skeleton) = (scope.clone(), skeleton.clone());
            let known = CompiledFragment { scope, skeleton, policies_read, values, nested };
            fragment.compiled.borrow_mut().push(known);
        }
        compiled
    }

    /// The fragment as it was compiled for another use, if it is the same here.
    fn known_fragment(&self, fragment: &Fragment, scope: &VariableScope, depth: usize) -> Option<Skeleton> {
        let compiled = fragment.compiled.borrow();
        let known = compiled.iter().find(|known| known.scope.is_equivalent(scope))?;
        // Beyond a limit, the node that exceeds it is reported.
        let is_within = depth + known.nested < MAX_NESTED_FRAGMENTS
            && self.pool.count_values(0) + known.values <= MAX_VALUES
            && self.cx.budget.spend(known.values as u64);
        if !is_within {
            return None;
        }
        self.pool.count_values(known.values);
        self.pool.add_policies_read(&known.policies_read);
        self.fragments.deepest.set(self.fragments.deepest.get().max(depth + 1 + known.nested));
        Some(known.skeleton.clone())
    }
}
