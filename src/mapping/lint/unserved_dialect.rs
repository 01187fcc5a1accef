//! A dialect that no route serves.
//!
//! ## Why
//!
//! No client can use it: the route is missing, or names another dialect. Dialects of a lower layer, such as the
//! embedded set below `--add DIR`, may be unserved.
//!
//! ## Example
//!
//! ```yaml
//! dialect: pirate
//! ```
//!
//! ```text
//! note[RF208]: no route serves the dialect `pirate`
//! ```
//!
//! ## Fix
//!
//! Add a route to gateway.yaml, `- { endpoint: POST /path, dialect: NAME }`, or remove the file.

use super::LintContext;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::source::layout::SetFile;

pub(super) fn check(context: &LintContext) {
    let sources = context.cx.sources;
    for name in context.files.of(SetFile::Dialect).filter_map(|file| file.get(SetFile::Dialect.name())) {
        let Some(text) = name.as_text() else { continue };
        let is_offer = sources.layer(name.span) < sources.last_layer();
        if is_offer || context.plan.gateway.routes.iter().any(|route| route.dialect == text) {
            continue;
        }
        let message = format!("no route serves the dialect `{text}`");
        let help = format!("add a route to gateway.yaml: `- {{ endpoint: POST /path, dialect: {text} }}`");
        context.cx.add(Diagnostic::new(Code::UnservedDialect, name.span, message).help(help));
    }
}
