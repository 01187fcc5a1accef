//! `reframe explain`: what a dialect makes of a transcript or a test, event by event, with the line that made each frame.

mod frame;
mod input;
mod loss;
mod policies;
mod request;
mod table;

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour, say};
use crate::diagnostics::render_all;
use crate::domain::FaultKind;
use crate::mapping::{Overrides, load_after};
use crate::reload::{Layers, read};
use crate::verify::{Keep, Seen, in_words};
use clap::Args;
use input::Subject;
use policies::{Client, ClientArgs};

#[derive(Args)]
pub struct ExplainArgs {
    /// A transcript (a folder with events.jsonl and request.json, a .jsonl file, or a name in the set) or a test (its
    /// name, or FILE.test.yaml:LINE)
    #[arg(value_name = "TRANSCRIPT|TEST", required_unless_present_any = ["policies", "loss"])]
    given: Option<String>,
    /// The dialect to explain it in [default: the one that the test names]
    #[arg(long, value_name = "DIALECT", conflicts_with = "route")]
    to: Option<String>,
    /// A profile to lay over the dialect
    #[arg(long)]
    profile: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    /// Say which policies hold, and which file and line, variable or header set each
    #[arg(long)]
    policies: bool,
    /// Everything about one frame, by its number in the table
    #[arg(long, value_name = "N")]
    frame: Option<usize>,
    /// What the backend can say and the dialect cannot, and what of this transcript was not told
    #[arg(long)]
    loss: bool,
    /// The JSON answer to the same events
    #[arg(long)]
    body: bool,
}

pub fn run(args: &ExplainArgs, layers: &Layers, overrides: &Overrides) -> u8 {
    match explain(args, layers, overrides) {
        Ok((text, code)) => say(&text, code),
        Err(message) => {
            eprintln!("{message}");
            COULD_NOT_RUN
        }
    }
}

/// What is printed, and the exit code.
fn explain(args: &ExplainArgs, layers: &Layers, overrides: &Overrides) -> Result<(String, u8), String> {
    args.client.routed()?;
    let files = read(layers).map_err(|refusal| refusal.render(colour()))?;
    let loaded = load_after(&files, None, overrides);
    let Some(plan) = loaded.plan else {
        return Err(render_all(&loaded.diagnostics, &loaded.sources, colour()));
    };
    if let Some(given) = &args.given
        && let Some(text) = request::explain(given, &plan)?
    {
        return Ok((text, FINE));
    }
    let subject = Subject::find(args, &plan)?;
    if args.policies {
        let mut text = match &args.client.route {
            Some(endpoint) => Client::new(&args.client, endpoint, &plan)?.told(&plan)?,
            None => policies::of_spoken(&subject.spoken, &plan.sources),
        };
        if subject.scene.is_some() {
            text.push('\n');
        }
        // Before whatever else is asked for.
        say(&text, FINE);
    }
    let Some(scene) = &subject.scene else {
        let text = if args.loss { loss::of_all(&plan, subject.spoken.dialect) } else { String::new() };
        return Ok((text, FINE));
    };
    let resolved = subject.spoken.resolved;
    let (pipeline, seen) = scene.stream(if args.frame.is_some() { Keep::States } else { Keep::Places });
    if let Some(wanted) = args.frame {
        return frame::explain(scene, &seen, wanted, resolved, &plan.sources).map(|text| (text, FINE));
    }
    if args.loss {
        return Ok((loss::of_turn(scene, &seen, pipeline.late()), FINE));
    }
    if args.body {
        let (answer, seen) = scene.body();
        return Ok(match answer {
            Ok(body) => (body.to_json_pretty() + "\n", FINE),
            // What the backend did is no mistake of the mappings; what they did is.
            Err(fault) => {
                let code = if fault.kind == FaultKind::Breach { FINDINGS } else { FINE };
                let why = in_words(&fault, &seen);
                (format!("no body, but a fault: {why} ({}, {})\n", fault.kind.word(), fault.status()), code)
            }
        });
    }
    let text = table::table(scene, &seen, resolved, &plan.sources) + &table::summary(&pipeline, &seen) + "\n";
    let ours = pipeline.fault().is_some_and(|f| f.kind == FaultKind::Breach);
    let breached = seen.iter().any(|s| matches!(s, Seen::Breach(_)));
    Ok((text, if ours || breached { FINDINGS } else { FINE }))
}
