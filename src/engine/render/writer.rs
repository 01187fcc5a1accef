//! Renders a skeleton as text, for bodies that nothing changes or checks before they are sent. The text is that of the
//! interpreter's draft, without the draft.

use super::Scope;
use super::conditions::is_true;
use super::interpreter::{RenderError, draft, evaluate, named_value, scalar};
use crate::mapping::language::expression::{Expression, ExpressionPool};
use crate::mapping::language::skeleton::Skeleton;
use reframe_json::write_str;

/// Appends compact JSON. False if the value is left out: then nothing is appended.
pub fn write<'a>(
    skeleton: &'a Skeleton,
    scope: &mut Scope<'a>,
    pool: &ExpressionPool,
    out: &mut Vec<u8>,
) -> Result<bool, RenderError> {
    Place { start: usize::MAX, key: None }.write(skeleton, scope, pool, out)
}

/// Where a value is written: in a list, or as a member of a map.
#[derive(Clone, Copy)]
struct Place<'k> {
    /// Where the first element or member of the list or map begins.
    start: usize,
    key: Option<&'k str>,
}

impl Place<'_> {
    /// What comes before the value, once it is known not to be left out.
    fn begin(self, out: &mut Vec<u8>) {
        if out.len() > self.start {
            out.push(b',');
        }
        if let Some(key) = self.key {
            write_str(key, out);
            out.push(b':');
        }
    }

    fn write<'a>(
        self,
        skeleton: &'a Skeleton,
        scope: &mut Scope<'a>,
        pool: &ExpressionPool,
        out: &mut Vec<u8>,
    ) -> Result<bool, RenderError> {
        match skeleton {
            Skeleton::Constant(tree) => {
                self.begin(out);
                tree.write(out);
            }
            Skeleton::Placeholder { expression: Expression::Variable(path), optional } => {
                let value = scope.get(path);
                if *optional && value.is_null() {
                    return Ok(false);
                }
                self.begin(out);
                value.into_draft().write(out);
            }
            Skeleton::Map(entries) => {
                self.begin(out);
                out.push(b'{');
                let start = out.len();
                for (key, value) in entries.iter() {
                    Place { start, key: Some(key) }.write(value, scope, pool, out)?;
                }
                out.push(b'}');
            }
            Skeleton::List(items) => {
                self.begin(out);
                out.push(b'[');
                let start = out.len();
                for item in items.iter() {
                    Place { start, key: None }.write(item, scope, pool, out)?;
                }
                out.push(b']');
            }
            Skeleton::Each { list, name, filter, body } => {
                self.begin(out);
                out.push(b'[');
                let start = out.len();
                for element in named_value(list, scope).elements() {
                    scope.within(name, element, |inner| match filter {
                        Some(filter) if !is_true(filter, inner, pool)? => Ok(false),
                        Some(_) | None => Place { start, key: None }.write(body, inner, pool, out),
                    })?;
                }
                out.push(b']');
            }
            Skeleton::Switch { on, cases, default } => {
                let value = evaluate(on, scope, pool)?;
                let word = scalar(&value).unwrap_or_default();
                let case = cases.iter().find(|(name, _)| *name == word).map(|(_, case)| case);
                return match case.or(default.as_deref()) {
                    Some(case) => self.write(case, scope, pool, out),
                    None => Ok(false),
                };
            }
            Skeleton::With { name, value, body } => {
                let value = named_value(value, scope);
                return scope.within(name, value, |inner| self.write(body, inner, pool, out));
            }
            Skeleton::If { condition, then, otherwise } => {
                return match (is_true(condition, scope, pool)?, otherwise) {
                    (true, _) => self.write(then, scope, pool, out),
                    (false, Some(otherwise)) => self.write(otherwise, scope, pool, out),
                    (false, None) => Ok(false),
                };
            }
            Skeleton::Placeholder { .. } | Skeleton::Text(_) | Skeleton::Merge(_) | Skeleton::Reject { .. } => {
                let Some(draft) = draft(skeleton, scope, pool)? else { return Ok(false) };
                self.begin(out);
                draft.write(out);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../../tests/unit/engine_writer.rs"]
mod tests;
