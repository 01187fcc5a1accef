//! The interpreter of skeletons. It is the reference: cached frames must give the same bytes.

use super::conditions::{chosen, is_true};
use super::target::{Drafts, JsonText, ShapedText, Target};
use super::{Scope, Value};
use crate::domain::{Draft, Tree};
use crate::mapping::language::expression::{Expression, ExpressionPool, Filter, VariablePath};
use crate::mapping::language::field::{scalar_str, scalar_text};
use crate::mapping::language::filters::prefixed;
use crate::mapping::language::jinja_values::{from_jinja, to_jinja};
use crate::mapping::language::skeleton::{Skeleton, TextSegment};
use reframe_json::Schema;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderError {
    /// An expression failed at run time: an error of the mapping that no check found at load.
    Failed(String),
    /// `$reject`: the request asks for something that the backend does not support.
    Rejected { message: String, param: Option<String> },
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RenderError::Failed(message) | RenderError::Rejected { message, .. } => f.write_str(message),
        }
    }
}

/// `None`: the key (or list element) is left out.
pub fn render(skeleton: &Skeleton, scope: &Scope, pool: &ExpressionPool) -> Result<Option<Tree>, RenderError> {
    Ok(draft(skeleton, &mut scope.clone(), pool)?.map(Draft::into_tree))
}

/// The same, without a copy of what is in the skeleton and in the variables.
pub fn draft<'a>(
    skeleton: &'a Skeleton,
    scope: &mut Scope<'a>,
    pool: &ExpressionPool,
) -> Result<Option<Draft<'a>>, RenderError> {
    let mut drafts = Drafts::default();
    render_into(skeleton, scope, pool, &mut drafts)?;
    Ok(drafts.into_root())
}

/// As compact JSON, which is appended. False if the value is left out: then nothing is appended. For bodies that nothing
/// changes or checks before they are sent.
pub fn write<'a>(
    skeleton: &'a Skeleton,
    scope: &mut Scope<'a>,
    pool: &ExpressionPool,
    out: &mut Vec<u8>,
) -> Result<bool, RenderError> {
    render_into(skeleton, scope, pool, &mut JsonText::new(out))
}

/// The same for what must be valid. False, and nothing is appended, if it is left out or if no valid document had its
/// shape before: then it has to be validated.
pub fn write_known<'a>(
    skeleton: &'a Skeleton,
    scope: &mut Scope<'a>,
    pool: &ExpressionPool,
    schema: &Schema,
    out: &mut Vec<u8>,
) -> Result<bool, RenderError> {
    let Some(shape) = schema.shape() else { return Ok(false) };
    let start = out.len();
    let mut target = ShapedText::new(out, shape);
    let is_known = render_into(skeleton, scope, pool, &mut target)? && schema.knows(&target.into_shape());
    if !is_known {
        out.truncate(start);
    }
    Ok(is_known)
}

/// The same, into any target. False: the value is left out, and the target did not change.
fn render_into<'a, T: Target<'a>>(
    skeleton: &'a Skeleton,
    scope: &mut Scope<'a>,
    pool: &ExpressionPool,
    target: &mut T,
) -> Result<bool, RenderError> {
    match skeleton {
        Skeleton::Constant(tree) => target.put(Draft::Tree(tree)),
        // Most placeholders.
        Skeleton::Placeholder { expression: Expression::Variable(path), optional } => {
            let value = scope.get(path);
            if *optional && value.is_null() {
                return Ok(false);
            }
            target.put(value.into_draft());
        }
        Skeleton::Placeholder { expression, optional } => {
            let value = evaluate(expression, scope, pool)?;
            if *optional && value.is_null() {
                return Ok(false);
            }
            target.put(value);
        }
        Skeleton::Text(segments) => {
            let mut text = String::new();
            for segment in segments.iter() {
                match segment {
                    TextSegment::Text(plain) => text.push_str(plain),
                    TextSegment::Placeholder(expression) => {
                        let value = evaluate(expression, scope, pool)?;
                        match scalar(&value) {
                            Some(scalar) => text.push_str(&scalar),
                            None if value.is_null() => {}
                            None => text.push_str(&value.to_json()),
                        }
                    }
                }
            }
            target.put(Draft::Text(Cow::Owned(text)));
        }
        Skeleton::List(items) => {
            let outer = target.begin_list(items.len());
            for item in items.iter() {
                render_into(item, scope, pool, target)?;
            }
            target.end_list(outer);
        }
        Skeleton::Map(entries) => {
            let outer = target.begin_map(entries.len());
            for (key, value) in entries.iter() {
                target.set_key(key);
                render_into(value, scope, pool, target)?;
            }
            target.end_map(outer);
        }
        Skeleton::Each { list, name, filter, body } => {
            let list = named_value(list, scope);
            let outer = target.begin_list(list.len());
            for element in list.elements() {
                scope.within(name, element, |inner| match filter {
                    Some(filter) if !is_true(filter, inner, pool)? => Ok(false),
                    Some(_) | None => render_into(body, inner, pool, target),
                })?;
            }
            target.end_list(outer);
        }
        Skeleton::Merge(parts) => {
            let mut members = Vec::new();
            for part in parts.iter() {
                // Like null, what is no map has no members.
                members.extend(draft(part, scope, pool)?.and_then(Draft::into_members).into_iter().flatten());
            }
            target.put(Draft::map(members));
        }
        Skeleton::Switch { on, cases, default } => {
            let value = evaluate(on, scope, pool)?;
            let word = scalar(&value).unwrap_or_default();
            let case = cases.iter().find(|(name, _)| *name == word).map(|(_, case)| case);
            return match case.or(default.as_deref()) {
                Some(case) => render_into(case, scope, pool, target),
                None => Ok(false),
            };
        }
        Skeleton::With { name, value, body } => {
            let value = named_value(value, scope);
            return scope.within(name, value, |inner| render_into(body, inner, pool, target));
        }
        Skeleton::Reject { message, param } => {
            let mut text = |skeleton: &'a Skeleton| {
                let rendered = draft(skeleton, scope, pool)?;
                Ok(rendered.and_then(|value| scalar(&value).map(Cow::into_owned)))
            };
            let param = param.as_ref().map_or(Ok(None), |param| text(param))?;
            return Err(RenderError::Rejected { message: text(message)?.unwrap_or_default(), param });
        }
        Skeleton::If { condition, then, otherwise } => {
            return match (is_true(condition, scope, pool)?, otherwise) {
                (true, _) => render_into(then, scope, pool, target),
                (false, Some(otherwise)) => render_into(otherwise, scope, pool, target),
                (false, None) => Ok(false),
            };
        }
    }
    Ok(true)
}

/// The text of a scalar; `None` for null, lists and maps.
pub(super) fn scalar<'v>(value: &'v Draft) -> Option<Cow<'v, str>> {
    match value {
        Draft::Text(text) => Some(Cow::Borrowed(text)),
        Draft::Bool(bool) => scalar_text(&Tree::Bool(*bool)).map(Cow::Owned),
        Draft::Num(num) => scalar_text(&Tree::Num(num.clone())).map(Cow::Owned),
        Draft::Null | Draft::List(_) | Draft::Map(_) => None,
        Draft::Tree(_) | Draft::Owned(_) => value.as_tree().and_then(scalar_str),
    }
}

/// Like `render`, but `None` if any placeholder is null: for headers, which must not be sent incomplete.
pub fn render_if_complete(
    skeleton: &Skeleton,
    scope: &Scope,
    pool: &ExpressionPool,
) -> Result<Option<Tree>, RenderError> {
    let segments: &[TextSegment] = match skeleton {
        Skeleton::Text(segments) => segments,
        _ => &[],
    };
    for segment in segments.iter() {
        if let TextSegment::Placeholder(expression) = segment
            && evaluate(expression, scope, pool)?.is_null()
        {
            return Ok(None);
        }
    }
    Ok(render(skeleton, scope, pool)?.filter(|tree| !tree.is_null()))
}

pub(super) fn evaluate<'a>(
    expression: &'a Expression,
    scope: &Scope<'a>,
    pool: &ExpressionPool,
) -> Result<Draft<'a>, RenderError> {
    match expression {
        Expression::Variable(path) => Ok(scope.get(path).into_draft()),
        Expression::Chain { path, filters, .. } => Ok(filtered(path, filters, scope)),
        Expression::Jinja { choice, .. } => match choice.as_deref().and_then(|choice| chosen(choice, scope)) {
            Some(value) => Ok(value),
            None => run(expression, scope, pool).map(|value| Draft::Owned(from_jinja(&value))),
        },
    }
}

/// A key that is not in a table gives null; the loader has checked that tables cover closed sets.
pub(super) fn filtered<'a>(path: &VariablePath, filters: &'a [Filter], scope: &Scope<'a>) -> Draft<'a> {
    filters.iter().fold(scope.get(path).into_draft(), |value, filter| match filter {
        Filter::Table(table) => scalar(&value).and_then(|key| table.get(&key)).map(Draft::from).unwrap_or_default(),
        Filter::Default(other) if value.is_null() => Draft::Tree(other),
        Filter::DefaultVariable(other) if value.is_null() => scope.get(other).into_draft(),
        Filter::Default(_) | Filter::DefaultVariable(_) => value,
        Filter::Prefix(prefix) => match value.as_str() {
            Some(text) => Draft::Text(Cow::Owned(prefixed(text, prefix))),
            None => value,
        },
    })
}

/// The value that a directive gives a name. Null for an expression: the loader rejects those.
pub(super) fn named_value<'a>(list: &Expression, scope: &Scope<'a>) -> Value<'a> {
    match list {
        Expression::Variable(path) => scope.get(path),
        Expression::Chain { .. } | Expression::Jinja { .. } => Value::Null,
    }
}

/// The variables that an expression reads, and no others, as a tree.
#[derive(Default)]
struct JinjaContext {
    value: Option<minijinja::Value>,
    fields: BTreeMap<String, JinjaContext>,
}

impl JinjaContext {
    fn into_value(self) -> minijinja::Value {
        match self.value {
            // The whole value contains the fields that are read separately.
            Some(value) => value,
            None => {
                let fields: BTreeMap<String, minijinja::Value> =
                    self.fields.into_iter().map(|(name, inner)| (name, inner.into_value())).collect();
                minijinja::Value::from(fields)
            }
        }
    }
}

pub(super) fn run(
    expression: &Expression,
    scope: &Scope,
    pool: &ExpressionPool,
) -> Result<minijinja::Value, RenderError> {
    let Expression::Jinja { id, variables, text, .. } = expression else { return Ok(minijinja::Value::from(())) };
    let mut context = JinjaContext::default();
    for path in variables {
        let mut node = &mut context;
        for step in &path.0 {
            node = node.fields.entry(step.to_string()).or_default();
        }
        node.value = Some(to_jinja(&scope.get(path).to_tree()));
    }
    pool.eval(*id, context.into_value()).map_err(|error| RenderError::Failed(format!("`{text}`: {error}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../../tests/unit/engine_interpreter.rs"]
mod tests;
