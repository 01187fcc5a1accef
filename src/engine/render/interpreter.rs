//! The interpreter of skeletons. It is the reference: cached frames must give the same bytes.

use super::{Scope, Value};
use crate::domain::Tree;
use crate::mapping::language::expression::{Expression, ExpressionPool, Filter, from_jinja, prefixed, to_jinja};
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::skeleton::{Skeleton, TextSegment};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

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
    Ok(Some(match skeleton {
        Skeleton::Constant(tree) => tree.clone(),
        Skeleton::Placeholder { expression, optional } => {
            let tree = evaluate(expression, scope, pool)?;
            if *optional && tree.is_null() {
                return Ok(None);
            }
            tree
        }
        Skeleton::Text(segments) => {
            let mut text = String::new();
            for segment in segments {
                match segment {
                    TextSegment::Text(plain) => text.push_str(plain),
                    TextSegment::Placeholder(expression) => {
                        let tree = evaluate(expression, scope, pool)?;
                        match scalar_text(&tree) {
                            Some(scalar) => text.push_str(&scalar),
                            None if tree.is_null() => {}
                            None => text.push_str(&tree.to_json()),
                        }
                    }
                }
            }
            Tree::from(text)
        }
        Skeleton::List(items) => {
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                list.extend(render(item, scope, pool)?);
            }
            Tree::List(list)
        }
        Skeleton::Map(entries) => {
            let mut map = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                map.extend(render(value, scope, pool)?.map(|tree| (key.clone(), tree)));
            }
            Tree::Map(map)
        }
        Skeleton::Each { list, name, filter, body } => {
            let mut out = Vec::new();
            for element in elements(list, scope) {
                let inner = scope.with(name, element);
                let wanted = match filter {
                    Some(filter) => is_true(filter, &inner, pool)?,
                    None => true,
                };
                if wanted {
                    out.extend(render(body, &inner, pool)?);
                }
            }
            Tree::List(out)
        }
        Skeleton::Merge(parts) => {
            let mut map: Vec<(Arc<str>, Tree)> = Vec::new();
            let mut places: HashMap<Arc<str>, usize> = HashMap::new();
            for part in parts {
                // Like null, what is no map has no members.
                let Some(Tree::Map(members)) = render(part, scope, pool)? else { continue };
                for (name, value) in members {
                    match places.get(&name) {
                        Some(at) => map[*at].1 = value,
                        None => {
                            places.insert(name.clone(), map.len());
                            map.push((name, value));
                        }
                    }
                }
            }
            Tree::Map(map)
        }
        Skeleton::Switch { on, cases, default } => {
            let value = scalar_text(&evaluate(on, scope, pool)?).unwrap_or_default();
            match (cases.iter().find(|(name, _)| *name == value), default) {
                (Some((_, case)), _) => return render(case, scope, pool),
                (None, Some(default)) => return render(default, scope, pool),
                (None, None) => return Ok(None),
            }
        }
        Skeleton::With { name, value, body } => {
            let bound = match value {
                Expression::Variable(path) => scope.get(path),
                Expression::Chain { .. } | Expression::Jinja { .. } => Value::Null,
            };
            return render(body, &scope.with(name, bound), pool);
        }
        Skeleton::Reject { message, param } => {
            let text = |skeleton: &Skeleton| {
                let rendered = render(skeleton, scope, pool)?;
                Ok(rendered.and_then(|tree| scalar_text(&tree)))
            };
            let param = param.as_ref().map_or(Ok(None), |param| text(param))?;
            return Err(RenderError::Rejected { message: text(message)?.unwrap_or_default(), param });
        }
        Skeleton::If { condition, then, otherwise } => {
            return match (is_true(condition, scope, pool)?, otherwise) {
                (true, _) => render(then, scope, pool),
                (false, Some(otherwise)) => render(otherwise, scope, pool),
                (false, None) => Ok(None),
            };
        }
    }))
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
    for segment in segments {
        if let TextSegment::Placeholder(expression) = segment
            && evaluate(expression, scope, pool)?.is_null()
        {
            return Ok(None);
        }
    }
    Ok(render(skeleton, scope, pool)?.filter(|tree| !tree.is_null()))
}

/// Evaluates a condition.
pub fn is_true(expression: &Expression, scope: &Scope, pool: &ExpressionPool) -> Result<bool, RenderError> {
    match expression {
        Expression::Variable(path) => Ok(scope.get(path).is_truthy()),
        Expression::Chain { path, filters } => {
            Ok(Value::Tree(&apply_filters(scope.get(path).to_tree(), filters)).is_truthy())
        }
        Expression::Jinja { .. } => run(expression, scope, pool).map(|value| value.is_true()),
    }
}

fn evaluate(expression: &Expression, scope: &Scope, pool: &ExpressionPool) -> Result<Tree, RenderError> {
    match expression {
        Expression::Variable(path) => Ok(scope.get(path).to_tree()),
        Expression::Chain { path, filters } => Ok(apply_filters(scope.get(path).to_tree(), filters)),
        Expression::Jinja { .. } => run(expression, scope, pool).map(|value| from_jinja(&value)),
    }
}

/// A key that is not in a table gives null; the loader has checked that tables cover closed sets.
fn apply_filters(start: Tree, links: &[Filter]) -> Tree {
    links.iter().fold(start, |value, link| match link {
        Filter::Table(table) => {
            scalar_text(&value).and_then(|key| table.get(&key).map(Cow::into_owned)).unwrap_or_default()
        }
        Filter::Default(other) if value.is_null() => other.clone(),
        Filter::Default(_) => value,
        Filter::Prefix(prefix) => match value.as_str() {
            Some(text) => Tree::from(prefixed(text, prefix)),
            None => value,
        },
    })
}

/// Empty for an expression: the loader rejects `$each` over one.
fn elements<'a>(list: &Expression, scope: &Scope<'a>) -> Vec<Value<'a>> {
    match list {
        Expression::Variable(path) => scope.get(path).elements(),
        Expression::Chain { .. } | Expression::Jinja { .. } => Vec::new(),
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

fn run(expression: &Expression, scope: &Scope, pool: &ExpressionPool) -> Result<minijinja::Value, RenderError> {
    let Expression::Jinja { id, variables, text } = expression else { return Ok(minijinja::Value::from(())) };
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
