//! A test that plays nothing: how its request is read, and what the script would play for it.

use crate::diagnostics::did_you_mean;
use crate::domain::Fault;
use crate::engine::render;
use crate::mapping::Plan;
use crate::verify;
use crate::verify::Case;
use std::path::Path;

/// What is to be said of a test without events; nothing, when there is something to play.
pub fn explain(given: &str, plan: &Plan) -> Result<Option<String>, String> {
    if plan.transcripts.iter().any(|t| t.name == given) {
        return Ok(None);
    }
    let suites = verify::suites(plan);
    match verify::find(&suites, given, &plan.sources) {
        Some(case) if case.given.is_empty() => Ok(read(case)),
        Some(_) => Ok(None),
        None if Path::new(given).exists() || given.contains(".test.yaml") => Ok(None),
        None => {
            let tests = suites.iter().flat_map(|s| &s.cases).map(|c| c.name.as_str());
            let transcripts: Vec<&str> = plan.transcripts.iter().map(|t| t.name.as_str()).collect();
            let near = did_you_mean(given, transcripts.iter().copied().chain(tests));
            let near = near.map_or(String::new(), |n| format!("did you mean `{n}`? "));
            let known = if transcripts.is_empty() { "none".to_owned() } else { transcripts.join(", ") };
            let message = format!("error: no transcript or test is called `{given}`, and no file");
            Err(format!("{message}\nhelp: {near}the set has the transcripts {known}"))
        }
    }
}

fn read(case: &Case) -> Option<String> {
    let dialect = case.dialect.as_ref()?;
    let scene = match case.scene() {
        Ok(scene) => scene?,
        Err(fault) => return Some(format!("`{}` refuses this request: {}\n", dialect.name, told(&fault))),
    };
    let mut text = format!("`{}` reads this request as\n{}\n", dialect.name, scene.request.view.to_json_pretty());
    if let Some(script) = &case.script {
        text.push_str(&match render::choose(script, &scene.request) {
            Ok((transcript, _)) => format!("\nthe script `{}` plays `{}`\n", script.name, transcript.name),
            Err(fault) => format!("\nthe script `{}` plays nothing: {}\n", script.name, told(&fault)),
        });
    }
    Some(text)
}

fn told(fault: &Fault) -> String {
    format!("{} ({}, {})", fault.message, fault.kind.word(), fault.status())
}
