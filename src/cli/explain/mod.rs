//! `reframe explain`: shows, event by event, how a dialect translates a transcript or a test, with the YAML line that
//! produced each frame.

mod frame;
mod input;
mod layers;
mod loss;
mod policies;
mod request;
mod sent;
mod table;

use super::{EXIT_FINDINGS, EXIT_OK, load_plan, print_report};
use crate::domain::FaultKind;
use crate::mapping::Overrides;
use crate::reload::Layers;
use crate::verify::{TraceDetail, TraceEntry, fault_message};
use clap::Args;
use input::ExplainInput;
use policies::{Client, ClientArgs};

#[derive(Args)]
pub struct ExplainArgs {
    /// A transcript (a folder with events.jsonl and request.json, a .jsonl file, or a name in the set) or a test (its
    /// name, or FILE.test.yaml:LINE)
    #[arg(value_name = "TRANSCRIPT|TEST", required_unless_present_any = ["policies", "loss", "layers"])]
    given: Option<String>,
    /// The dialect to translate into [default: the one that the test names]
    #[arg(long, value_name = "DIALECT", conflicts_with = "route")]
    to: Option<String>,
    /// The profile to apply to the dialect
    #[arg(long)]
    profile: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    /// Show the effective policies, and which file and line, variable or header set each
    #[arg(long)]
    policies: bool,
    /// Show the layer and the line that each route, model, backend and policy comes from
    #[arg(long, conflicts_with_all = ["given", "policies", "loss", "frame", "body"])]
    layers: bool,
    /// Show everything about one frame, by its number in the table
    #[arg(long, value_name = "N")]
    frame: Option<usize>,
    /// Show what the backend can send and the dialect cannot, and what of this transcript was not sent
    #[arg(long)]
    loss: bool,
    /// Show the request that a backend would get: a backend of gateway.yaml, a backend file, or by default the one of
    /// the test or of the model. The argument can also be a JSON file with the client's body
    #[arg(long, value_name = "BACKEND", num_args = 0..=1, require_equals = true)]
    sent: Option<Option<String>>,
    /// Show the JSON response to the same events
    #[arg(long)]
    body: bool,
}

pub fn run(args: &ExplainArgs, layers: &Layers, overrides: &Overrides) -> Result<u8, String> {
    let (text, code) = explain(args, layers, overrides)?;
    print_report(&text, code)
}

/// The report and the exit code.
fn explain(args: &ExplainArgs, layers: &Layers, overrides: &Overrides) -> Result<(String, u8), String> {
    args.client.require_route()?;
    let plan = load_plan(layers, overrides)?;
    if let Some(backend) = &args.sent {
        return sent::explain(args, backend.as_deref(), &plan).map(|text| (text, EXIT_OK));
    }
    if args.layers {
        return Ok((layers::describe(&plan), EXIT_OK));
    }
    if let Some(given) = &args.given
        && let Some(text) = request::explain(given, &plan)?
    {
        return Ok((text, EXIT_OK));
    }
    let input = ExplainInput::find(args, &plan)?;
    if args.policies {
        let mut text = match &args.client.route {
            Some(endpoint) => Client::new(&args.client, endpoint, &plan)?.describe(&plan)?,
            None => policies::describe_target(&input.target, &plan.sources),
        };
        if input.test_turn.is_some() {
            text.push('\n');
        }
        // Printed before any other requested report.
        print_report(&text, EXIT_OK)?;
    }
    let Some(test_turn) = &input.test_turn else {
        let text = if args.loss { loss::of_all(&plan, input.target.dialect) } else { String::new() };
        return Ok((text, EXIT_OK));
    };
    let resolved = input.target.resolved;
    let (pipeline, trace) = test_turn.stream(match (args.frame, args.loss) {
        (Some(_), _) => TraceDetail::States,
        (None, true) => TraceDetail::Reads,
        (None, false) => TraceDetail::Locations,
    });
    if let Some(wanted) = args.frame {
        return frame::explain(test_turn, &trace, wanted, resolved, &plan.sources).map(|text| (text, EXIT_OK));
    }
    if args.loss {
        return Ok((loss::of_turn(test_turn, &trace, pipeline.late_events()), EXIT_OK));
    }
    if args.body {
        let (answer, trace) = test_turn.body();
        return Ok(match answer {
            Ok(body) => (body.to_json_pretty() + "\n", EXIT_OK),
            // A backend error is no finding; a violation caused by the mappings is.
            Err(fault) => {
                let code = if fault.kind == FaultKind::Violation { EXIT_FINDINGS } else { EXIT_OK };
                let why = fault_message(&fault, &trace);
                (format!("no body: the turn failed: {why} ({}, {})\n", fault.kind.name(), fault.status()), code)
            }
        });
    }
    let text = table::table(test_turn, &trace, resolved, &plan.sources) + &table::summary(&pipeline, &trace) + "\n";
    let violated = pipeline.fault().is_some_and(|f| f.kind == FaultKind::Violation);
    let has_violation = trace.iter().any(|s| matches!(s, TraceEntry::Violation(_)));
    Ok((text, if violated || has_violation { EXIT_FINDINGS } else { EXIT_OK }))
}
