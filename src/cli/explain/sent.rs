//! `reframe explain --sent`: the request that a backend would get. Nothing is sent, and no API key is read.

use super::ExplainArgs;
use super::input::{find_target, name_list};
use super::policies::Client;
use super::request::fault_summary;
use crate::domain::{RequestHead, Tree};
use crate::engine::backend_request::{self, BackendRequest, RequestPreview, SHOWN_KEY};
use crate::engine::request::{self, RouteInput};
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::backend_request::RequestSettings;
use crate::mapping::config::dialect::DialectPlan;
use crate::verify;
use std::path::Path;
use std::sync::Arc;

/// A backend, with the settings of its entry in gateway.yaml if it has one.
type Receiver<'p> = (&'p Arc<BackendPlan>, Option<&'p RequestSettings>);

pub fn explain(args: &ExplainArgs, backend: Option<&str>, plan: &Plan) -> Result<String, String> {
    let given = args.given.as_deref().ok_or("error: --sent needs a test, a transcript or a file with a request")?;
    let suites = verify::suites(plan);
    let case = verify::find(&suites, given, &plan.sources);
    let target_requested = args.to.is_some() || args.client.route.is_some() || args.profile.is_some();
    let dialect = match case.and_then(|case| case.dialect.as_ref()).filter(|_| !target_requested) {
        Some(dialect) => dialect,
        None => find_target(args, plan)?.dialect,
    };
    let body = match case {
        Some(case) => case.request.clone().ok_or(format!("error: the test \"{}\" has no `request:`", case.name))?,
        None => file_body(Path::new(given), dialect)?,
    };
    let head = match (&args.client.route, case) {
        (Some(endpoint), _) => Client::new(&args.client, endpoint, plan)?.head,
        (None, Some(case)) => case.head.clone(),
        (None, None) => RequestHead::default(),
    };
    let mut request = match request::read_tree_with(&dialect.request, body, RouteInput { head, set: &[] }) {
        Ok(request) => request,
        Err(fault) => return Ok(format!("`{}` rejects this request: {}\n", dialect.name, fault_summary(&fault))),
    };
    let (backend, settings) = match (backend, case) {
        (Some(name), _) => named_backend(name, plan)?,
        (None, Some(case)) => (&case.backend, case.settings.as_ref()),
        (None, None) => backend_of_model(&request.model, plan)?,
    };
    if settings.is_some() {
        plan.gateway.resolve_model(&mut request);
    }
    Ok(match backend_request::preview(backend, settings, &Arc::new(request), &dialect.request) {
        Ok(RequestPreview::Http(sent)) => describe(&sent),
        Ok(RequestPreview::Calls(calls)) => describe_calls(&calls),
        Err(fault) => format!("`{}` rejects this request: {}\n", backend.name, fault_summary(&fault)),
    })
}

/// The body in a JSON file, or in `request.json` of a transcript's folder, which may have one for each dialect.
fn file_body(path: &Path, dialect: &DialectPlan) -> Result<Tree, String> {
    let file = if path.is_dir() { path.join("request.json") } else { path.to_path_buf() };
    let show = |why: String| format!("error: {}: {why}", file.display());
    let text = std::fs::read_to_string(&file).map_err(|error| show(error.to_string()))?;
    let body = Tree::parse(text.as_bytes()).map_err(|error| show(error.to_string()))?;
    Ok(body.get(&dialect.name).unwrap_or(&body).clone())
}

fn named_backend<'p>(name: &str, plan: &'p Plan) -> Result<Receiver<'p>, String> {
    if let Some(entry) = plan.gateway.backends.iter().find(|entry| entry.name == name) {
        return Ok((&entry.plan, entry.settings()));
    }
    let file = plan.backends.iter().find(|backend| backend.name == name).map(|backend| (backend, None));
    file.ok_or_else(|| {
        let entries = plan.gateway.backends.iter().map(|entry| entry.name.as_str());
        let files = plan.backends.iter().filter(|b| b.sends().is_some()).map(|b| b.name.as_str());
        let known: Vec<&str> = entries.chain(files).collect();
        format!("error: no backend `{name}`; known backends: {}", name_list(&known))
    })
}

/// The backend that gateway.yaml has for the model of the request.
fn backend_of_model<'p>(model: &str, plan: &'p Plan) -> Result<Receiver<'p>, String> {
    let entry = plan.gateway.model(model).and_then(|found| plan.gateway.backends.get(found.backend));
    let found = entry.and_then(|entry| Some((&entry.plan, Some(entry.settings()?))));
    found.ok_or_else(|| format!("error: nothing is sent for the model `{model}`; name a backend with --sent=NAME"))
}

fn describe(sent: &BackendRequest) -> String {
    let headers =
        sent.headers.iter().map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    let dropped = if sent.dropped.is_empty() { "nothing".to_owned() } else { sent.dropped.join(", ") };
    let (method, path, headers) = (sent.method, &sent.path, headers.collect::<String>());
    let note = if headers.contains(SHOWN_KEY) || path.contains(SHOWN_KEY) {
        format!(" ({SHOWN_KEY} is the API key of the backend)")
    } else {
        String::new()
    };
    format!("{method} {path}\n{headers}\n{}\n\ndropped: {dropped}{note}\n", sent.body_tree().to_json_pretty())
}

/// One paragraph per call.
fn describe_calls(preview: &Tree) -> String {
    let list = |name: &str| preview.get(name).and_then(Tree::as_list).unwrap_or_default();
    let calls = list("calls").iter().map(|call| {
        let method = call.get("call").or(call.get("notify")).and_then(Tree::as_str).unwrap_or_default();
        let params = call.get("params").map_or(String::new(), |params| format!("{}\n", params.to_json_pretty()));
        format!("{method}\n{params}\n")
    });
    let dropped: Vec<&str> = list("dropped").iter().filter_map(Tree::as_str).collect();
    let dropped = if dropped.is_empty() { "nothing".to_owned() } else { dropped.join(", ") };
    format!("{}dropped: {dropped}\n", calls.collect::<String>())
}
