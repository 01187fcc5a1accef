//! Advice for output that its schema does not allow: the line of the schema, and the edit of it that allows the value.
//! Whoever follows it literally gets a schema that accepts what the mapping sends.

use crate::diagnostics::{Sources, Span};
use crate::domain::Tree;
use crate::engine::pipeline::SchemaMismatch;
use crate::mapping::config::schemas::find_in_schema;
use reframe_json::{SchemaViolation, ViolationKind};

/// One sentence, for a help line.
pub fn advice(mismatch: &SchemaMismatch, sources: &Sources) -> String {
    edit(mismatch, sources).unwrap_or_else(|| {
        let schema = &mismatch.schema;
        let place = mismatch.violation.keyword_at.as_deref().and_then(|(document, pointer)| {
            let (span, _) = find_in_schema(document, pointer, sources)?;
            Some(format!("`{pointer}` in {}", sources.show(span)))
        });
        format!("change the mapping, or what the schema requires: {}", place.unwrap_or(format!("schemas/{schema}")))
    })
}

fn edit(mismatch: &SchemaMismatch, sources: &Sources) -> Option<String> {
    let SchemaViolation { pointer: value_at, kind, keyword_at, .. } = &mismatch.violation;
    let (document, keyword) = keyword_at.as_deref()?;
    let (object, _) = keyword.rsplit_once('/')?;
    let value = mismatch.data.as_ref()?.pointer(value_at)?;
    let find = |pointer: &str| find_in_schema(document, pointer, sources);
    let place = |pointer: &str, span: Span| {
        let pointer = if pointer.is_empty() { "the root".to_owned() } else { format!("`{pointer}`") };
        format!("{pointer} in {}", sources.show(span))
    };
    Some(match kind {
        ViolationKind::NotAllowed(names) => {
            let name = Tree::from(names.first()?.as_str()).to_json();
            let line = format!("{name}: {{ \"type\": \"{}\" }}", type_name(value.get(names.first()?)?));
            let properties = format!("{object}/properties");
            match find(&properties) {
                Some((span, _)) => format!("to allow it, add `{line}` to {}", place(&properties, span)),
                None => {
                    let line = format!("\"properties\": {{ {line} }}");
                    format!("to allow it, add `{line}` to {}", place(object, find(object)?.0))
                }
            }
        }
        ViolationKind::Missing(name) => {
            let name = Tree::from(name.as_str()).to_json();
            format!("add it to the mapping, or remove `{name}` from {}", place(keyword, find(keyword)?.0))
        }
        ViolationKind::WrongType(types) => {
            let allowed = types.iter().map(String::as_str).chain([type_name(value)]).map(Tree::from);
            let allowed = Tree::List(allowed.collect()).to_json();
            format!("to allow it, set {} to `{allowed}`", place(keyword, find(keyword)?.0))
        }
        ViolationKind::NotOneOf(_) if mismatch.violation.keyword == "enum" => {
            format!("to allow it, add `{}` to {}", value.to_json(), place(keyword, find(keyword)?.0))
        }
        ViolationKind::NotEqual(expected) => {
            let line = format!("\"enum\": [{expected},{}]", value.to_json());
            format!("to allow it, replace {} by `{line}`", place(keyword, find(keyword)?.0))
        }
        ViolationKind::Unmet(_) => {
            let name = Tree::from(mismatch.violation.keyword.as_str()).to_json();
            format!("to allow it, remove `{name}` from {}", place(object, find(object)?.0))
        }
        ViolationKind::NotOneOf(_) | ViolationKind::NoAlternative(_) => return None,
        ViolationKind::Rejected | ViolationKind::Other(_) => return None,
    })
}

fn type_name(value: &Tree) -> &'static str {
    match value {
        Tree::Num(number) if number.as_i64().is_some() => "integer",
        other => other.type_name(),
    }
}
