//! `reframe validate`: checks whether a captured body or stream conforms to a dialect.

use super::{EXIT_FINDINGS, EXIT_OK, dialect_names, load_plan, print_report};
use crate::capture;
use crate::capture::{Capture, Finding, ReadError, ValidationReport};
use crate::diagnostics::{count_noun, or_list};
use crate::domain::Tree;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::{Overrides, Plan};
use crate::reload::Layers;
use clap::{Args, ValueEnum};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct ValidateArgs {
    /// A captured body or stream; `-` or nothing reads standard input
    file: Option<PathBuf>,
    /// The dialect of the capture [default: the best match]
    #[arg(long)]
    dialect: Option<String>,
    /// The profile to apply to the dialect
    #[arg(long)]
    profile: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
}

pub fn run(args: &ValidateArgs, layers: &Layers) -> Result<u8, String> {
    let (shown, bytes) = input(args.file.as_deref())?;
    let plan = load_plan(layers, &Overrides::default())?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        format!("error: {shown}:{line}: this is not UTF-8")
    })?;
    let dialects = dialects(args, &plan)?;
    let (verdict, dialect) = match capture::read(&text) {
        Ok(capture) => {
            let dialect = best(&dialects, &capture).ok_or_else(|| {
                let known = or_list(dialects.iter().map(|d| d.name.as_str()));
                format!("error: {shown}: no dialect of this set matches; select one with --dialect: {known}")
            })?;
            (capture::validate(dialect, &capture), Some(dialect))
        }
        Err(ReadError::InvalidJson { line, why }) => {
            let findings = vec![Finding { line, text: why, more: 0 }];
            (ValidationReport { what: "a body".to_owned(), findings }, None)
        }
        Err(ReadError::Empty) => return Err(format!("error: {shown} is empty")),
        Err(ReadError::UnknownFormat) => {
            return Err(format!("error: {shown} is neither JSON nor an event stream: no line begins with `data:`"));
        }
    };
    let code = if verdict.findings.is_empty() { EXIT_OK } else { EXIT_FINDINGS };
    let text = match args.format {
        Format::Human => human(&shown, &verdict, dialect),
        Format::Json => verdict.findings.iter().map(|f| json(&shown, f)).collect(),
    };
    print_report(&text, code)
}

fn input(file: Option<&Path>) -> Result<(String, Vec<u8>), String> {
    match file.filter(|f| *f != Path::new("-")) {
        Some(file) => {
            let bytes = std::fs::read(file).map_err(|e| format!("error: {}: {e}", file.display()))?;
            Ok((file.display().to_string(), bytes))
        }
        None => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map_err(|e| format!("error: standard input: {e}"))?;
            Ok(("stdin".to_owned(), bytes))
        }
    }
}

/// The candidate dialects: each with the requested profile, else with the profile of its route.
fn dialects<'p>(args: &ValidateArgs, plan: &'p Plan) -> Result<Vec<&'p DialectPlan>, String> {
    let names = dialect_names(plan);
    let known = or_list(names.iter().copied());
    let requested = |name: &&str| args.dialect.as_deref().is_none_or(|d| d == *name);
    let routed = |name: &str| plan.gateway.routes.iter().find(|r| r.dialect == name).and_then(|r| r.profile.as_deref());
    let with = |name: &str| plan.dialect(name, args.profile.as_deref().or_else(|| routed(name))).map(|d| &**d);
    let found: Vec<&DialectPlan> = names.into_iter().filter(requested).filter_map(with).collect();
    match (&args.dialect, &args.profile) {
        _ if !found.is_empty() => Ok(found),
        (Some(dialect), None) => Err(format!("error: no dialect `{dialect}`; known dialects: {known}")),
        (Some(dialect), Some(profile)) => {
            Err(format!("error: no dialect `{dialect}` with profile `{profile}`; known dialects: {known}"))
        }
        (None, Some(profile)) => Err(format!("error: no profile `{profile}`")),
        (None, None) => Err("error: this set has no dialect".to_owned()),
    }
}

/// The dialect with the best match of schemas; among equals the first of the set.
fn best<'p>(dialects: &[&'p DialectPlan], capture: &Capture) -> Option<&'p DialectPlan> {
    if let [only] = dialects {
        return Some(only);
    }
    let fits = dialects.iter().map(|d| (capture::fit(d, capture), *d));
    fits.rev().max_by_key(|(fit, _)| *fit).filter(|(fit, _)| *fit > (0, 0)).map(|(_, dialect)| dialect)
}

fn human(shown: &str, verdict: &ValidationReport, dialect: Option<&DialectPlan>) -> String {
    let mut text = String::new();
    for Finding { line, text: sentence, more } in &verdict.findings {
        let more = match more {
            0 => String::new(),
            n => format!(" (and {n} more)"),
        };
        text.push_str(&format!("{shown}:{line}: {sentence}{more}\n"));
    }
    let summary = match verdict.findings.len() {
        0 => "valid".to_owned(),
        n => count_noun(n, "finding"),
    };
    let dialect = dialect.map(|d| {
        let profile = d.profile.as_deref().map(|p| format!(", profile {p}")).unwrap_or_default();
        format!(", dialect {}{profile}", d.name)
    });
    text + &format!("{shown}: {}{}: {summary}\n", verdict.what, dialect.unwrap_or_default())
}

fn json(shown: &str, finding: &Finding) -> String {
    let line = Tree::map([
        ("file", Tree::from(shown)),
        ("line", Tree::from(finding.line as i64)),
        ("message", Tree::from(finding.text.as_str())),
        ("more", Tree::from(finding.more as i64)),
    ]);
    line.to_json() + "\n"
}
