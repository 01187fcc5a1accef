//! `reframe explain` for a test without events: how its request is parsed, and which transcript a script would select.

use super::input::name_list;
use crate::diagnostics::did_you_mean;
use crate::domain::Fault;
use crate::domain::variables::{Record, Value};
use crate::engine::script_step;
use crate::mapping::Plan;
use crate::verify;
use crate::verify::TestCase;
use std::path::Path;

/// The report for a test without events; `None` for a test or transcript with events.
pub fn explain(given: &str, plan: &Plan) -> Result<Option<String>, String> {
    if plan.transcripts.iter().any(|t| t.name == given) {
        return Ok(None);
    }
    let suites = verify::suites(plan);
    match verify::find(&suites, given, &plan.sources) {
        Some(case) if case.given.is_empty() => Ok(explain_request(case)),
        Some(_) => Ok(None),
        None if Path::new(given).exists() || given.contains(".test.yaml") => Ok(None),
        None => {
            let tests = suites.iter().flat_map(|s| &s.cases).map(|c| c.name.as_str());
            let transcripts: Vec<&str> = plan.transcripts.iter().map(|t| t.name.as_str()).collect();
            let near = did_you_mean(given, transcripts.iter().copied().chain(tests));
            let near = near.map_or(String::new(), |n| format!("did you mean `{n}`? "));
            let message = format!("error: no transcript, test or file is named `{given}`");
            Err(format!("{message}\nhelp: {near}the set has the transcripts {}", name_list(&transcripts)))
        }
    }
}

fn explain_request(case: &TestCase) -> Option<String> {
    let dialect = case.dialect.as_ref()?;
    let test_turn = match case.test_turn() {
        Ok(test_turn) => test_turn?,
        Err(fault) => return Some(format!("`{}` rejects this request: {}\n", dialect.name, fault_summary(&fault))),
    };
    let request = Value::from(Record::request(&test_turn.request)).to_tree();
    let mut text = format!("`{}` parses this request as\n{}\n", dialect.name, request.to_json_pretty());
    if let Some(script) = &case.script {
        text.push_str(&match script_step::select_transcript(script, &test_turn.request) {
            Ok((transcript, _)) => format!("\nthe script `{}` plays `{}`\n", script.name, transcript.name),
            Err(fault) => format!("\nthe script `{}` plays no transcript: {}\n", script.name, fault_summary(&fault)),
        });
    }
    Some(text)
}

pub fn fault_summary(fault: &Fault) -> String {
    format!("{} ({}, {})", fault.message, fault.kind.name(), fault.status())
}
