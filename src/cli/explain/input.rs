//! The input of `reframe explain`: the events, the target dialect and the request.

use super::ExplainArgs;
use super::policies::Client;
use crate::cli::{dialect_names, use_colour};
use crate::diagnostics::{Findings, Sources, did_you_mean, or_list, render_all};
use crate::domain::{Fault, Tree, TurnRequest, WorkBudget};
use crate::engine::request;
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::config::transcript;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::policy::resolve::ResolvedPolicies;
use crate::mapping::policy::variants::RouteVariant;
use crate::mapping::source::field_reader::LoadContext;
use crate::verify;
use crate::verify::{TestCase, TestTurn};
use std::path::Path;
use std::sync::Arc;

pub struct ExplainInput<'p> {
    pub target: Target<'p>,
    /// None when only policies or losses are requested.
    pub test_turn: Option<TestTurn>,
}

/// The dialect to explain, with the policies of a route's client or of the dialect's files.
pub struct Target<'p> {
    pub dialect: &'p Arc<DialectPlan>,
    /// The effective policies and where each was set.
    pub resolved: &'p ResolvedPolicies,
    pub scope: TargetScope<'p>,
}

pub enum TargetScope<'p> {
    Route(&'p RoutePlan),
    /// No route serves the dialect.
    NoRoute,
    /// The dialect as its files define it, for tests: routes and environment variables are ignored.
    Files,
}

impl<'p> ExplainInput<'p> {
    pub fn find(args: &ExplainArgs, plan: &'p Plan) -> Result<ExplainInput<'p>, String> {
        let Some(given) = &args.given else {
            return Ok(ExplainInput { target: find_target(args, plan)?, test_turn: None });
        };
        if !plan.transcripts.iter().any(|t| t.name == *given) {
            let suites = verify::suites(plan);
            if let Some(case) = verify::find(&suites, given, &plan.sources) {
                return test_input(case, args, plan);
            }
            if given.contains(".test.yaml") {
                let known: Vec<&str> = suites.iter().map(|s| s.file.as_str()).collect();
                return Err(format!("error: no test at {given}; the test files are {}", name_list(&known)));
            }
        }
        let target = find_target(args, plan)?;
        let transcript = transcript(given, plan)?;
        let backend = plan.backend(&transcript.backend).ok_or_else(|| {
            format!("error: the transcript is for the backend `{}`, which is not in this set", transcript.backend)
        })?;
        let test_turn = TestTurn {
            backend: backend.clone(),
            dialect: target.dialect.clone(),
            request: Arc::new(request(Path::new(given), target.dialect)?),
            given: transcript.lines.iter().map(|l| l.event.clone()).collect(),
            response: None,
        };
        Ok(ExplainInput { target, test_turn: Some(test_turn) })
    }
}

impl<'p> Target<'p> {
    fn of_route(route: &'p RoutePlan, variant: &'p RouteVariant) -> Target<'p> {
        Target { dialect: &variant.plan, resolved: &variant.resolved, scope: TargetScope::Route(route) }
    }

    fn of_dialect(dialect: &'p Arc<DialectPlan>, scope: TargetScope<'p>) -> Target<'p> {
        Target { dialect, resolved: &dialect.resolved, scope }
    }
}

fn test_input<'p>(case: &TestCase, args: &ExplainArgs, plan: &'p Plan) -> Result<ExplainInput<'p>, String> {
    let target_requested = args.to.is_some() || args.client.route.is_some() || args.profile.is_some();
    // A backend test names no dialect; the first route's dialect is good enough to show its events.
    let first = plan.gateway.routes.first().and_then(|r| Some((r, r.variants.default_variant()?)));
    let tested = case.dialect.as_ref().and_then(|d| plan.dialect(&d.name, d.profile.as_deref()));
    let target = match (tested, first) {
        (Some(dialect), _) if !target_requested => Target::of_dialect(dialect, TargetScope::Files),
        (None, Some((route, variant))) if !target_requested => Target::of_route(route, variant),
        _ => find_target(args, plan)?,
    };
    if case.given.is_empty() {
        return Err(format!("error: the test \"{}\" has no events: it only parses a request", case.name));
    }
    let test_turn = case
        .test_turn_to(target.dialect)
        .map_err(|fault| format!("error: the test \"{}\" rejects its request: {}", case.name, fault.message))?;
    Ok(ExplainInput { target, test_turn: Some(test_turn) })
}

/// Selected by `--route`, or by `--to`: the default variant of the first route that serves the dialect.
pub fn find_target<'p>(args: &ExplainArgs, plan: &'p Plan) -> Result<Target<'p>, String> {
    let known = dialect_names(plan);
    if let Some(endpoint) = &args.client.route {
        let client = Client::new(&args.client, endpoint, plan)?;
        return Ok(Target::of_route(client.route, client.variant()?));
    }
    let Some(name) = &args.to else {
        return Err(format!("error: name a dialect with --to ({}), or a route with --route", or_list(known)));
    };
    // A route with another profile than the requested one does not match.
    let serves = |r: &&RoutePlan| r.dialect == *name && (args.profile.is_none() || r.profile == args.profile);
    if let Some(route) = plan.gateway.routes.iter().find(serves)
        && let Some(variant) = route.variants.default_variant()
    {
        return Ok(Target::of_route(route, variant));
    }
    let without_route = plan.dialect(name, args.profile.as_deref());
    without_route.map(|dialect| Target::of_dialect(dialect, TargetScope::NoRoute)).ok_or_else(|| {
        let profile = args.profile.as_deref().map(|p| format!(" with profile `{p}`")).unwrap_or_default();
        format!("error: no dialect `{name}`{profile}; known dialects: {}", or_list(known))
    })
}

fn transcript(given: &str, plan: &Plan) -> Result<Arc<Transcript>, String> {
    if let Some(found) = plan.transcripts.iter().find(|t| t.name == given) {
        return Ok(found.clone());
    }
    let path = Path::new(given);
    let file = if path.is_dir() { path.join("events.jsonl") } else { path.to_path_buf() };
    let text = std::fs::read_to_string(&file).map_err(|e| {
        let known: Vec<&str> = plan.transcripts.iter().map(|t| t.name.as_str()).collect();
        let near = did_you_mean(given, known.iter().copied()).map(|n| format!("did you mean `{n}`? "));
        let (file, near) = (file.display(), near.unwrap_or_default());
        format!("error: {file}: {e}\nhelp: {near}the set has the transcripts {}", name_list(&known))
    })?;
    let mut sources = Sources::default();
    let id = sources.add(given, file.display().to_string(), Arc::from(text.as_str()));
    let findings = Findings::default();
    let cx = LoadContext {
        sources: &sources,
        findings: &findings,
        budget: &WorkBudget::default(),
        selectors: Default::default(),
    };
    let parsed = transcript::parse(given, id, &text, cx);
    parsed.map(Arc::new).ok_or_else(|| render_all(&findings.into_sorted(), &sources, use_colour()))
}

/// The request in `request.json` next to the events, if that file exists.
fn request(transcript: &Path, dialect: &DialectPlan) -> Result<TurnRequest, String> {
    let file = transcript.join("request.json");
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(TurnRequest::minimal("explained", true)) };
    let show = |why: String| format!("error: {}: {why}", file.display());
    let body = Tree::parse(text.as_bytes()).map_err(|e| show(e.to_string()))?;
    // The file may have one body per dialect.
    let body = body.get(&dialect.name).unwrap_or(&body);
    request::read_tree(&dialect.request, body.clone()).map_err(|f: Fault| show(f.message))
}

pub fn name_list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
