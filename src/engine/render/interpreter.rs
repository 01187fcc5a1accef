//! The straightforward interpreter of skeletons. It is the yardstick: whatever is compiled later must agree with it.

use super::{Scope, Value};
use crate::domain::Tree;
use crate::mapping::language::expression::{Expr, Link, Pool, from_jinja, prefixed, to_jinja};
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::skeleton::{Skeleton, TextSegment};
use std::collections::BTreeMap;
use std::fmt;

/// An expression failed while it ran: a fault of the mapping that no check foresaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderError(pub String);

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `None`: the key (or list element) is left out.
pub fn render(skeleton: &Skeleton, scope: &Scope, pool: &Pool) -> Result<Option<Tree>, RenderError> {
    Ok(Some(match skeleton {
        Skeleton::Constant(tree) => tree.clone(),
        Skeleton::Hole { expr, optional } => {
            let tree = evaluate(expr, scope, pool)?;
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
                    TextSegment::Hole(expr) => {
                        let tree = evaluate(expr, scope, pool)?;
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
                    Some(filter) => holds(filter, &inner, pool)?,
                    None => true,
                };
                if wanted {
                    out.extend(render(body, &inner, pool)?);
                }
            }
            Tree::List(out)
        }
        Skeleton::Switch { on, cases, default } => {
            let word = scalar_text(&evaluate(on, scope, pool)?).unwrap_or_default();
            match (cases.iter().find(|(name, _)| *name == word), default) {
                (Some((_, case)), _) => return render(case, scope, pool),
                (None, Some(default)) => return render(default, scope, pool),
                (None, None) => return Ok(None),
            }
        }
        Skeleton::With { name, value, body } => {
            let bound = match value {
                Expr::Variable(path) => scope.get(path),
                Expr::Chain { .. } | Expr::Engine { .. } => Value::Null,
            };
            return render(body, &scope.with(name, bound), pool);
        }
        Skeleton::If { condition, then, otherwise } => {
            return match (holds(condition, scope, pool)?, otherwise) {
                (true, _) => render(then, scope, pool),
                (false, Some(otherwise)) => render(otherwise, scope, pool),
                (false, None) => Ok(None),
            };
        }
    }))
}

/// The same, but nothing at all where a hole has no value: half a header is worse than none.
pub fn render_whole(skeleton: &Skeleton, scope: &Scope, pool: &Pool) -> Result<Option<Tree>, RenderError> {
    let holes = match skeleton {
        Skeleton::Text(segments) => segments.iter().collect(),
        _ => Vec::new(),
    };
    for segment in holes {
        if let TextSegment::Hole(expr) = segment
            && evaluate(expr, scope, pool)?.is_null()
        {
            return Ok(None);
        }
    }
    Ok(render(skeleton, scope, pool)?.filter(|tree| !tree.is_null()))
}

/// Does a condition hold?
pub fn holds(expr: &Expr, scope: &Scope, pool: &Pool) -> Result<bool, RenderError> {
    match expr {
        Expr::Variable(path) => Ok(scope.get(path).holds()),
        Expr::Chain { path, links } => Ok(Value::Tree(&follow(scope.get(path).to_tree(), links)).holds()),
        Expr::Engine { .. } => run(expr, scope, pool).map(|value| value.is_true()),
    }
}

fn evaluate(expr: &Expr, scope: &Scope, pool: &Pool) -> Result<Tree, RenderError> {
    match expr {
        Expr::Variable(path) => Ok(scope.get(path).to_tree()),
        Expr::Chain { path, links } => Ok(follow(scope.get(path).to_tree(), links)),
        Expr::Engine { .. } => run(expr, scope, pool).map(|value| from_jinja(&value)),
    }
}

/// What a table does not know is null; the loader has seen to it that closed sets are covered.
fn follow(start: Tree, links: &[Link]) -> Tree {
    links.iter().fold(start, |value, link| match link {
        Link::Table(table) => scalar_text(&value).and_then(|word| table.get(&word).cloned()).unwrap_or_default(),
        Link::Default(other) if value.is_null() => other.clone(),
        Link::Default(_) => value,
        Link::Prefix(prefix) => match value.as_str() {
            Some(text) => Tree::from(prefixed(text, prefix)),
            None => value,
        },
    })
}

/// The loader refuses `$each` over an expression.
fn elements<'a>(list: &Expr, scope: &Scope<'a>) -> Vec<Value<'a>> {
    match list {
        Expr::Variable(path) => scope.get(path).elements(),
        Expr::Chain { .. } | Expr::Engine { .. } => Vec::new(),
    }
}

/// A tree of the variables that an expression reads, and of no others.
#[derive(Default)]
struct Context {
    value: Option<minijinja::Value>,
    fields: BTreeMap<String, Context>,
}

impl Context {
    fn into_value(self) -> minijinja::Value {
        match self.value {
            // Read as a whole: it has the fields that are read by themselves, too.
            Some(value) => value,
            None => {
                let fields: BTreeMap<String, minijinja::Value> =
                    self.fields.into_iter().map(|(name, inner)| (name, inner.into_value())).collect();
                minijinja::Value::from(fields)
            }
        }
    }
}

fn run(expr: &Expr, scope: &Scope, pool: &Pool) -> Result<minijinja::Value, RenderError> {
    let Expr::Engine { id, reads, text } = expr else { return Ok(minijinja::Value::from(())) };
    let mut context = Context::default();
    for path in reads {
        let mut node = &mut context;
        for step in &path.0 {
            node = node.fields.entry(step.to_string()).or_default();
        }
        node.value = Some(to_jinja(&scope.get(path).to_tree()));
    }
    pool.eval(*id, context.into_value()).map_err(|error| RenderError(format!("`{text}`: {error}")))
}
