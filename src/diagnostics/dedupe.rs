//! One wrong name at its definition is an unknown name wherever it is used: said once, with all its places.

use super::{Code, Diagnostic, Sources, indentation};

/// How many further places are named.
const SHOWN: usize = 3;

/// `sorted` as it comes from [`Findings::into_sorted`](super::Findings::into_sorted).
pub fn gather(sorted: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let mut gathered: Vec<(Diagnostic, Vec<String>)> = Vec::new();
    for diagnostic in indentation::join(sorted, sources) {
        let names_all = match diagnostic.code {
            // The sentence names the unknown thing and nothing of the place.
            Code::UnknownReference
            | Code::UnknownPart
            | Code::UnknownTable
            | Code::UnknownPolicy
            | Code::BadPolicyValue => true,
            _ => false,
        };
        let same = |d: &Diagnostic| d.code == diagnostic.code && d.message == diagnostic.message;
        match gathered.iter_mut().find(|(d, _)| names_all && same(d)) {
            Some((_, also)) => also.push(sources.show(diagnostic.span)),
            None => gathered.push((diagnostic, Vec::new())),
        }
    }
    gathered.into_iter().map(|(diagnostic, also)| with_places(diagnostic, &also)).collect()
}

fn with_places(mut diagnostic: Diagnostic, also: &[String]) -> Diagnostic {
    if also.is_empty() {
        return diagnostic;
    }
    let mut places = also[..also.len().min(SHOWN)].join(", ");
    if also.len() > SHOWN {
        places.push_str(&format!(" and {} more", also.len() - SHOWN));
    }
    let help = diagnostic.help.take().map(|help| format!("{help}; ")).unwrap_or_default();
    diagnostic.help(format!("{help}the same at {places}"))
}
