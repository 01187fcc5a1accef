//! The index law of a dialect (`index:`): proves that no turn breaks it under the policies that a client can get.

use super::dialect::DialectPlan;
use super::profile_patch::PatchedDialect;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::IndexConflict;
use crate::mapping::Plan;
use crate::mapping::policy::variants::reachable_dialects;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Node;

/// Checks every dialect that a route uses, with the policies of each client. Each conflict is reported once.
pub fn check_reachable(plan: &Plan, patched_dialects: &[PatchedDialect], cx: LoadContext) {
    let mut reported: Vec<(Span, IndexConflict)> = Vec::new();
    for (_, dialect, _) in reachable_dialects(&plan.gateway.routes) {
        let source = patched_dialects.iter().find(|p| p.dialect == dialect.name && p.profile == dialect.profile);
        let Some((source, conflict)) = source.zip(conflict(dialect)) else { continue };
        let diagnostic = diagnostic(dialect, &source.node, conflict, cx);
        if !reported.contains(&(diagnostic.span, conflict)) {
            reported.push((diagnostic.span, conflict));
            cx.add(diagnostic);
        }
    }
}

/// A dialect that does not write the index cannot break its law.
fn conflict(dialect: &DialectPlan) -> Option<IndexConflict> {
    let is_written = dialect.stream_reads.or(dialect.body_reads).index;
    dialect.index.conflict(&dialect.resolved.policies, dialect.sent).filter(|_| is_written)
}

/// Names the two settings that break the law together. `source`: the dialect's file, with the patch of its profile.
fn diagnostic(dialect: &DialectPlan, source: &Node, conflict: IndexConflict, cx: LoadContext) -> Diagnostic {
    let IndexConflict { other, turn, fix } = conflict;
    let (law, resolved) = (dialect.index.name(), &dialect.resolved);
    let set_at = |name: &str| resolved.settings.iter().rfind(|setting| setting.name == name).map(|s| s.span);
    let place = |span: Option<Span>| match span {
        Some(span) => format!(" ({})", cx.sources.show(span)),
        None => ", the default".to_owned(),
    };
    let stated = source.get("index").map(|node| node.span);
    let value = resolved.policies.text("output_index");
    let message = format!("`output_index: {value}` breaks `index: {law}` of `{}`: {turn}", dialect.name);
    let disagrees = match other {
        Some(name) => format!("`{name}: {}`{}", resolved.policies.text(name), place(set_at(name))),
        None => format!("`index: {law}`{}", place(stated)),
    };
    let law_line = match stated {
        Some(_) => {
            format!("`index: none` in the dialect, or `patch: {{ {}: {{ index: none }} }}` in a profile", dialect.name)
        }
        None => "`index: none` in the dialect".to_owned(),
    };
    let span = set_at("output_index").or(stated).unwrap_or(source.span);
    let help = format!("set `{fix}`, or state another law: {law_line}");
    Diagnostic::new(Code::IndexLawBroken, span, message).label(format!("does not fit to {disagrees}")).help(help)
}
