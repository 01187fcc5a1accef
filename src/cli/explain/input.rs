//! What is to be explained: which events, in which dialect, for which request.

use super::ExplainArgs;
use super::policies::Client;
use crate::cli::colour;
use crate::diagnostics::{Findings, Sources, did_you_mean, one_of, render_all};
use crate::domain::{Fault, Tree, TurnRequest};
use crate::engine::request;
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::config::transcript;
use crate::mapping::config::transcript::Transcript;
use crate::mapping::policy::resolve::Resolved;
use crate::mapping::policy::variants::Variant;
use crate::mapping::source::field_reader::Cx;
use crate::verify;
use crate::verify::{Case, Scene};
use std::path::Path;
use std::sync::Arc;

pub struct Subject<'p> {
    pub spoken: Spoken<'p>,
    /// Nothing is played when only policies or losses are asked for.
    pub scene: Option<Scene>,
}

/// What is spoken: to a client of a route, or as the files have it.
pub struct Spoken<'p> {
    pub dialect: &'p Arc<DialectPlan>,
    /// Its policies, and who set them for this client.
    pub resolved: &'p Resolved,
    pub at: At<'p>,
}

pub enum At<'p> {
    Route(&'p RoutePlan),
    /// No route speaks it.
    Nowhere,
    /// What a test beside the files is about, whatever routes and variables say.
    Files,
}

impl<'p> Subject<'p> {
    pub fn find(args: &ExplainArgs, plan: &'p Plan) -> Result<Subject<'p>, String> {
        let Some(given) = &args.given else {
            return Ok(Subject { spoken: spoken(args, plan)?, scene: None });
        };
        if !plan.transcripts.iter().any(|t| t.name == *given) {
            let suites = verify::suites(plan);
            if let Some(case) = verify::find(&suites, given, &plan.sources) {
                return of_test(case, args, plan);
            }
            if given.contains(".test.yaml") {
                let known: Vec<&str> = suites.iter().map(|s| s.file.as_str()).collect();
                return Err(format!("error: no test stands at {given}; the test files are {}", listed(&known)));
            }
        }
        let spoken = spoken(args, plan)?;
        let transcript = transcript(given, plan)?;
        let backend = plan.backend(&transcript.backend).ok_or_else(|| {
            format!("error: the transcript names the backend `{}`, which is not in this set", transcript.backend)
        })?;
        let scene = Scene {
            backend: backend.clone(),
            dialect: spoken.dialect.clone(),
            request: Arc::new(request(Path::new(given), spoken.dialect)?),
            given: transcript.lines.iter().map(|l| l.what.clone()).collect(),
        };
        Ok(Subject { spoken, scene: Some(scene) })
    }
}

impl<'p> Spoken<'p> {
    fn by_route(route: &'p RoutePlan, variant: &'p Variant) -> Spoken<'p> {
        Spoken { dialect: &variant.plan, resolved: &variant.resolved, at: At::Route(route) }
    }

    fn by_files(dialect: &'p Arc<DialectPlan>, at: At<'p>) -> Spoken<'p> {
        Spoken { dialect, resolved: &dialect.resolved, at }
    }
}

fn of_test<'p>(case: &Case, args: &ExplainArgs, plan: &'p Plan) -> Result<Subject<'p>, String> {
    let asked = args.to.is_some() || args.client.route.is_some() || args.profile.is_some();
    // A test of a backend alone names no dialect; any will show what its events become.
    let first = plan.gateway.routes.first().and_then(|r| Some((r, r.variants.plain()?)));
    let tested = case.dialect.as_ref().and_then(|d| plan.dialect(&d.name, d.profile.as_deref()));
    let spoken = match (tested, first) {
        (Some(dialect), _) if !asked => Spoken::by_files(dialect, At::Files),
        (None, Some((route, variant))) if !asked => Spoken::by_route(route, variant),
        _ => spoken(args, plan)?,
    };
    if case.given.is_empty() {
        return Err(format!("error: the test \"{}\" plays nothing: it only reads a request", case.name));
    }
    let request = match &case.request {
        None => TurnRequest::plain("test", true),
        Some(body) => request::read_tree(&spoken.dialect.request, body)
            .map_err(|fault| format!("error: the test \"{}\" refuses its request: {}", case.name, fault.message))?,
    };
    let scene = Scene {
        backend: case.backend.clone(),
        dialect: spoken.dialect.clone(),
        request: Arc::new(request),
        given: case.given.clone(),
    };
    Ok(Subject { spoken, scene: Some(scene) })
}

/// By `--route`, or by `--to`: what the first route of this dialect speaks to a client that sends nothing of interest.
fn spoken<'p>(args: &ExplainArgs, plan: &'p Plan) -> Result<Spoken<'p>, String> {
    let mut known: Vec<&str> = plan.dialects().map(|d| d.name.as_str()).collect();
    known.dedup();
    if let Some(endpoint) = &args.client.route {
        let client = Client::new(&args.client, endpoint, plan)?;
        return Ok(Spoken::by_route(client.route, client.variant()?));
    }
    let Some(name) = &args.to else {
        return Err(format!("error: name a dialect with --to ({}), or a route with --route", one_of(known)));
    };
    // `--profile` is the profile of every route; with another one than asked for, a route is not what is meant.
    let speaks = |r: &&RoutePlan| r.dialect == *name && (args.profile.is_none() || r.profile == args.profile);
    if let Some(route) = plan.gateway.routes.iter().find(speaks)
        && let Some(variant) = route.variants.plain()
    {
        return Ok(Spoken::by_route(route, variant));
    }
    let unspoken = plan.dialect(name, args.profile.as_deref());
    unspoken.map(|dialect| Spoken::by_files(dialect, At::Nowhere)).ok_or_else(|| {
        let profile = args.profile.as_deref().map(|p| format!(" with profile `{p}`")).unwrap_or_default();
        format!("error: no dialect `{name}`{profile}; there is {}", one_of(known))
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
        format!("error: {file}: {e}\nhelp: {near}the set has the transcripts {}", listed(&known))
    })?;
    let mut sources = Sources::default();
    let id = sources.add(given, file.display().to_string(), Arc::from(text.as_str()));
    let findings = Findings::default();
    let parsed = transcript::parse(given, id, &text, Cx { sources: &sources, findings: &findings });
    parsed.map(Arc::new).ok_or_else(|| render_all(&findings.into_sorted(), &sources, colour()))
}

/// `request.json` beside the events, if it is there.
fn request(transcript: &Path, dialect: &DialectPlan) -> Result<TurnRequest, String> {
    let file = transcript.join("request.json");
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(TurnRequest::plain("explained", true)) };
    let show = |why: String| format!("error: {}: {why}", file.display());
    let body = Tree::parse(text.as_bytes()).map_err(|e| show(e.to_string()))?;
    // A transcript's request may have one body for each dialect.
    let body = body.get(&dialect.name).unwrap_or(&body);
    request::read_tree(&dialect.request, body).map_err(|f: Fault| show(f.message))
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
