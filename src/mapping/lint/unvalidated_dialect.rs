//! A dialect without schemas.
//!
//! ## Why
//!
//! Frames, bodies and errors are validated against the schemas of their dialect. Without them, `validation: strict`
//! checks only the order, and a member with a wrong name reaches the client.
//!
//! ## Example
//!
//! ```yaml
//! dialect: pirate
//! ```
//!
//! ```text
//! warning[RF209]: the dialect `pirate` has no schemas, so that its output is not validated
//! ```
//!
//! ## Fix
//!
//! Write the schemas of what is sent into `schemas/NAME/`, and name the folder: `schemas: NAME`. If the output is not
//! to be validated, declare it: `validation: off` of its routes.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::config::gateway::Validation;
use crate::mapping::source::layout::SetFile;

pub(super) fn check(context: &LintContext) {
    for file in context.files.of(SetFile::Dialect).filter(|file| file.get("schemas").is_none()) {
        let Some(name) = file.get(SetFile::Dialect.name()) else { continue };
        let Some(text) = name.as_text() else { continue };
        let mut routes = context.plan.gateway.routes.iter().filter(|route| route.dialect == text).peekable();
        // A profile may name the folder, and a dialect without a route has another finding.
        let named = |dialect: &str| {
            let mut patched = context.patched_dialects.iter().filter(|p| p.dialect == dialect);
            patched.any(|p| p.node.get("schemas").is_some())
        };
        let validated = |validation| validation != Validation::Off;
        if routes.peek().is_none() || !routes.any(|route| validated(route.validation)) || named(text) {
            continue;
        }
        let message = format!("the dialect `{text}` has no schemas, so that its output is not validated");
        let help = format!("write them into schemas/{text}/, and add `schemas: {text}`");
        context.cx.add(Diagnostic::new(Code::UnvalidatedDialect, name.span, message).help(help));
    }
}
