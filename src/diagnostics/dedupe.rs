//! Deduplication: a name that is misspelled at its definition is unknown at every use. Such diagnostics are reported
//! once, with the locations of the others.

use super::{Code, Diagnostic, Sources, indentation};

/// How many further locations the help line lists.
const MAX_LOCATIONS: usize = 3;

/// Expects the order of [`Findings::into_sorted`](super::Findings::into_sorted).
pub fn dedupe(sorted: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let mut unique: Vec<(Diagnostic, Vec<String>)> = Vec::new();
    for diagnostic in indentation::merge_consequences(sorted, sources) {
        let can_merge = match diagnostic.code {
            // The message contains the unknown name and nothing specific to its location.
            Code::UnknownReference
            | Code::UnknownFragment
            | Code::UnknownTable
            | Code::UnknownPolicy
            | Code::BadPolicyValue => true,
            _ => false,
        };
        let same = |d: &Diagnostic| d.code == diagnostic.code && d.message == diagnostic.message;
        match unique.iter_mut().find(|(d, _)| can_merge && same(d)) {
            Some((_, others)) => others.push(sources.show(diagnostic.span)),
            None => unique.push((diagnostic, Vec::new())),
        }
    }
    unique.into_iter().map(|(diagnostic, others)| with_locations(diagnostic, &others)).collect()
}

fn with_locations(mut diagnostic: Diagnostic, others: &[String]) -> Diagnostic {
    if others.is_empty() {
        return diagnostic;
    }
    let mut locations = others[..others.len().min(MAX_LOCATIONS)].join(", ");
    if others.len() > MAX_LOCATIONS {
        locations.push_str(&format!(" and {} more", others.len() - MAX_LOCATIONS));
    }
    let help = diagnostic.help.take().map(|help| format!("{help}; ")).unwrap_or_default();
    diagnostic.help(format!("{help}the same at {locations}"))
}
