//! One test: what is given, and what came of it.

use super::Failure;
use crate::canon::{Event, Fault, Frame, FrameBody, Tree, TurnRequest};
use crate::diag::{Code, Findings, Span};
use crate::ingest;
use crate::ingress;
use crate::mapping::Plan;
use crate::mapping::backend::BackendPlan;
use crate::mapping::dialect::DialectPlan;
use crate::mapping::fields::{Cx, Fields, constant};
use crate::mapping::gateway::Validation;
use crate::mapping::transcript::Arrival;
use crate::mapping::yaml::Node;
use crate::pipeline::{Answer, Observer, Order, Pipeline, Sight};
use crate::turn::Ids;
use std::sync::{Arc, Mutex};

pub struct Case {
    pub name: String,
    pub span: Span,
    backend: Arc<BackendPlan>,
    dialect: Option<Arc<DialectPlan>>,
    request: Option<Tree>,
    given: Vec<Arrival>,
    pub expect: Node,
}

/// What came out.
#[derive(Default)]
pub struct Played {
    pub events: Vec<Event>,
    /// Data frames only, each with the place of its mapping.
    pub frames: Vec<(Frame, Span)>,
    pub body: Option<Result<Tree, Fault>>,
    pub request: Option<Tree>,
    pub fault: Option<Fault>,
}

pub fn parse(file: &str, node: &Node, plan: &Plan) -> Vec<Result<Case, Failure>> {
    let findings = Findings::default();
    let cx = Cx { sources: &plan.sources, findings: &findings };
    let mut cases = Vec::new();
    if let Some(fields) = Fields::of(node, "a test file", cx) {
        fields.required("tests");
        for node in fields.list("tests") {
            cases.extend(parse_case(file, node, plan, cx).map(Ok));
        }
        fields.done();
    }
    cases.extend(findings.into_sorted().into_iter().map(|mistake| Err(Failure::of_test(mistake))));
    cases
}

fn parse_case(file: &str, node: &Node, plan: &Plan, cx: Cx) -> Option<Case> {
    let fields = Fields::of(node, "a test", cx)?;
    let name = fields.required_text("name")?.to_owned();
    let span = fields.get("name").map_or(node.span, |n| n.span);
    // The word that names something, where the test says it.
    let said = |key: &'static str| node.get(key).map_or(span, |n| n.span);
    let (folder, stem) = file.split_once('/').unwrap_or(("", file));
    let stem = stem.trim_end_matches(".test.yaml");
    let own = |wanted: &str| (folder == wanted).then_some(stem);
    let profile = fields.text("profile").or(own("profiles"));
    let dialect_name = fields.text("dialect").or(own("dialects"));
    let backend_name = fields.text("backend").or(own("backends"));
    let expect = fields.required("expect").cloned();
    let request = fields.get("request").map(constant);
    let mut given: Vec<Arrival> = fields.list("given").iter().map(|n| Arrival::Raw(constant(n))).collect();
    let mut backend_name = backend_name.map(str::to_owned);
    if let Some(wanted) = fields.text("transcript") {
        match plan.transcripts.iter().find(|t| t.name == wanted) {
            Some(transcript) => {
                given.extend(transcript.lines.iter().map(|l| l.what.clone()));
                backend_name.get_or_insert_with(|| transcript.backend.clone());
            }
            None => {
                let message = format!("no transcript is called `{wanted}`");
                let known = plan.transcripts.iter().map(|t| t.name.as_str());
                cx.unknown(Code::UnknownReference, said("transcript"), message, wanted, known);
                return None;
            }
        }
    }
    if let Some(why) = fields.text("cut") {
        given.push(Arrival::Cut(why.to_owned()));
    }
    fields.done();
    // A test of requests has nothing to play; any backend will do.
    let backend = match &backend_name {
        Some(name) => plan.backend(name),
        None => plan.backends.first(),
    };
    let Some(backend) = backend.cloned() else {
        let name = backend_name.unwrap_or_default();
        let known = plan.backends.iter().map(|b| b.name.as_str());
        let message = format!("no backend file says `backend: {name}`");
        cx.unknown(Code::UnknownReference, said("backend"), message, &name, known);
        return None;
    };
    let dialect = match dialect_name {
        None => None,
        Some(name) => match plan.dialect(name, profile) {
            Some(dialect) => Some(dialect.clone()),
            None => {
                // The pair may be unknown for its profile only.
                let named = plan.dialects().any(|d| d.name == name);
                let (key, word) = match profile.filter(|_| named) {
                    Some(profile) => ("profile", profile),
                    None => ("dialect", name),
                };
                let known: Vec<&str> = plan
                    .dialects()
                    .filter_map(|d| if named { d.profile.as_deref() } else { Some(d.name.as_str()) })
                    .collect();
                let message = format!("no {key} is called `{word}`");
                cx.unknown(Code::UnknownReference, said(key), message, word, known);
                return None;
            }
        },
    };
    Some(Case { name, span, backend, dialect, request, given, expect: expect? })
}

pub fn play(case: &Case) -> Played {
    let mut played = Played::default();
    for arrival in &case.given {
        if let Arrival::Raw(raw) = arrival {
            played.events.extend(ingest::hear(&case.backend, raw).events.into_iter().map(|(e, _)| e));
        }
    }
    let Some(dialect) = &case.dialect else { return played };
    let request = match &case.request {
        None => TurnRequest::plain("test", true),
        Some(body) => match ingress::read_tree(&dialect.request, body) {
            Ok(request) => request,
            Err(fault) => {
                played.fault = Some(fault);
                return played;
            }
        },
    };
    played.request = Some(request.view.clone());
    if case.given.is_empty() {
        return played;
    }
    let request = Arc::new(request);
    let seen = Arc::new(Mutex::new(Vec::new()));
    played.fault = run(case, dialect, &request, Answer::Stream, Some(seen.clone())).fault().cloned();
    played.frames = std::mem::take(&mut *seen.lock().unwrap_or_else(|e| e.into_inner()));
    played.body = Some(run(case, dialect, &request, Answer::Body, None).body());
    played
}

type Seen = Arc<Mutex<Vec<(Frame, Span)>>>;

fn run(
    case: &Case,
    dialect: &Arc<DialectPlan>,
    request: &Arc<TurnRequest>,
    answer: Answer,
    seen: Option<Seen>,
) -> Pipeline {
    let mut pipeline = Pipeline::new(Order {
        backend: case.backend.clone(),
        dialect: dialect.clone(),
        request: request.clone(),
        validation: Validation::Strict,
        answer,
        masks: Default::default(),
        hidden: None,
        ids: Ids::Counting(0),
        now_ms: 0,
    });
    if let Some(seen) = seen {
        pipeline = pipeline.observe(Box::new(Collect(seen)));
    }
    pipeline.play(&case.given, 0);
    pipeline
}

struct Collect(Seen);

impl Observer for Collect {
    fn see(&mut self, sight: Sight) {
        if let Sight::Frame(frame, span) = sight
            && matches!(frame.body, FrameBody::Data(_))
        {
            self.0.lock().unwrap_or_else(|e| e.into_inner()).push((frame.clone(), span));
        }
    }
}
