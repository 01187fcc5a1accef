//! `reframe explain --policies`: which policies hold, and who said so.

use crate::diag::Sources;
use crate::mapping::dialect::DialectPlan;

/// Each policy, its value, and who said so; the last word counts.
pub fn print(dialect: &DialectPlan, sources: &Sources) {
    let resolved = &dialect.resolved;
    for name in resolved.names() {
        let set = resolved.settings.iter().rev().find(|s| s.name == name);
        let own = resolved.own.iter().any(|p| p.name == name);
        let value = match set {
            Some(setting) => setting.value.clone(),
            None => match resolved.policies.word(&name) {
                Some(word) => word.as_str().unwrap_or_default().to_owned(),
                None => resolved.policies.finish_precedence.iter().map(|f| f.word()).collect::<Vec<_>>().join(", "),
            },
        };
        let by = match set {
            Some(setting) => sources.show(setting.span),
            None if own => "the dialect's own default".to_owned(),
            None => "built in".to_owned(),
        };
        println!("{name:<20} {:<28} {by}", if value.is_empty() { "\"\"" } else { &value });
    }
}
