//! Before a set goes live, every frame of its routes is filled with witness values: turns that say everything that a
//! backend can say, in our words. A frame that satisfies its schema in none of them never will.

use crate::canon::{
    CallKind, Ended, Event, Fault, FaultKind, Finish, Merge, Piece, ReasoningKind, Tree, TurnRequest, Usage, sentence,
};
use crate::diag::{Code, Diagnostic, Sources, Span};
use crate::egress;
use crate::mapping::Plan;
use crate::mapping::backend::BackendPlan;
use crate::mapping::dialect::DialectPlan;
use crate::mapping::gateway::Validation;
use crate::pipeline::{Answer, Broken, Observer, Order, Pipeline, Sight};
use crate::turn::Ids;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
pub struct Proof {
    /// One finding for each frame that cannot be right.
    pub found: Vec<Diagnostic>,
    /// How many frames, bodies and errors were filled.
    pub shapes: usize,
}

pub fn prove(plan: &Plan) -> Proof {
    let mut proof = Proof::default();
    let Some(backend) = plan.backends.first() else { return proof };
    let mut hopeless: Vec<(Span, Found, String, Vec<String>)> = Vec::new();
    let mut seen: Vec<*const DialectPlan> = Vec::new();
    let routes = plan.gateway.routes.iter().filter(|r| r.validation != Validation::Off);
    for (dialect, client) in routes.flat_map(|r| r.variants.reachable()) {
        if seen.contains(&Arc::as_ptr(dialect)) {
            continue;
        }
        seen.push(Arc::as_ptr(dialect));
        let tried = Arc::new(Mutex::new(Tried::default()));
        for story in stories() {
            tell(backend, dialect, &story, &tried);
        }
        for kind in FaultKind::ALL {
            envelope(dialect, &Fault::new(*kind, "what went wrong"), &tried);
            let told = Fault { code: Some("code".into()), ..Fault::new(*kind, "what went wrong").param("param") };
            envelope(dialect, &told, &tried);
        }
        let tried = std::mem::take(&mut *tried.lock().unwrap_or_else(PoisonError::into_inner));
        proof.shapes += tried.frames.len();
        for (span, broken) in tried.hopeless() {
            // What stands in `base:` or in a part breaks every frame that it stands in, and is one mistake.
            match hopeless.iter_mut().find(|(_, first, ..)| first.is_like(&broken)) {
                Some((.., others)) if !others.contains(&broken.what) => others.push(broken.what),
                Some(_) => {}
                None => hopeless.push((span, broken, client.clone(), Vec::new())),
            }
        }
    }
    let told =
        hopeless.iter().map(|(span, broken, client, also)| diagnostic(*span, broken, client, also, &plan.sources));
    proof.found = told.collect();
    proof
}

/// `client`: who would see it, if not everybody; `also`: what else breaks in the same way.
fn diagnostic(span: Span, broken: &Found, client: &str, also: &[String], sources: &Sources) -> Diagnostic {
    let Found { what, schema, why, member, unknown } = broken;
    let message = format!("{what} never satisfies its schema{client}: {why}");
    let help = match unknown {
        Some((_, line)) => format!("allow it in schemas/{schema}: {line}"),
        None => format!("a shape is two files: this mapping, and schemas/{schema} which allows it"),
    };
    let help = match also {
        [] => help,
        [one] => format!("{help}; the same in {one}"),
        [one, more @ ..] => format!("{help}; the same in {one} and {} more", more.len()),
    };
    // The frame is right there; the member may come from `base:` or from a part.
    let on_line = |name: &String| sources.key_on_line(span, name);
    let anywhere = |(name, _): &(String, String)| on_line(name).or_else(|| sources.only_key(span.file, name));
    let place = unknown.as_ref().map_or_else(|| member.as_ref().and_then(on_line), anywhere);
    Diagnostic::new(Code::NeverValid, place.unwrap_or(span), message).help(help)
}

/// What came of each frame, by its place in the mapping.
#[derive(Default)]
struct Tried {
    frames: Vec<(Span, bool, Option<Found>)>,
    /// The frame that comes next was told of before it: it broke its schema.
    broken: Option<Span>,
}

#[derive(Clone)]
struct Found {
    what: String,
    schema: String,
    why: String,
    /// What is wrong with it, by its last name.
    member: Option<String>,
    /// The member that the schema does not know, and the line that would allow it.
    unknown: Option<(String, String)>,
}

impl Found {
    fn is_like(&self, other: &Found) -> bool {
        (&self.schema, &self.why) == (&other.schema, &other.why)
    }
}

impl Tried {
    fn note(&mut self, span: Span, found: Option<Found>) {
        let at = match self.frames.iter().position(|(s, ..)| *s == span) {
            Some(at) => at,
            None => {
                self.frames.push((span, false, None));
                self.frames.len() - 1
            }
        };
        let (_, good, bad) = &mut self.frames[at];
        match found {
            None => *good = true,
            Some(found) => *bad = bad.take().or(Some(found)),
        }
    }

    fn hopeless(self) -> impl Iterator<Item = (Span, Found)> {
        self.frames.into_iter().filter(|(_, good, _)| !good).filter_map(|(span, _, bad)| Some((span, bad?)))
    }
}

struct Notes(Arc<Mutex<Tried>>);

impl Observer for Notes {
    fn see(&mut self, sight: Sight) {
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match sight {
            Sight::Breach(_, span, Some(broken)) => {
                tried.broken = Some(span);
                tried.note(span, Some(found(&broken)));
            }
            Sight::Frame(_, span) | Sight::Body(_, span) if tried.broken.take() != Some(span) => tried.note(span, None),
            _ => {}
        }
    }
}

fn found(broken: &Broken) -> Found {
    let Broken { what, schema, breach, data } = broken;
    Found {
        what: (*what).to_owned(),
        schema: (*schema).to_owned(),
        why: sentence::of(breach, data),
        member: sentence::steps(&breach.pointer).filter(|step| step.parse::<usize>().is_err()).last(),
        unknown: (breach.keyword == "additionalProperties" || breach.keyword == "unevaluatedProperties")
            .then(|| line(data, &breach.pointer, &breach.message))
            .flatten(),
    }
}

/// The member that the schema does not know, and the line that it lacks.
fn line(data: &Tree, pointer: &str, message: &str) -> Option<(String, String)> {
    let owner = pointer.split('/').skip(1).try_fold(data, |node, step| match node {
        Tree::List(items) => items.get(step.parse::<usize>().ok()?),
        _ => node.get(step),
    })?;
    let (name, value) = owner.as_map()?.iter().find(|(name, _)| message.contains(&format!("'{name}'")))?;
    let kind = match value {
        Tree::Num(n) if n.as_i64().is_some() => "integer",
        other => other.type_name(),
    };
    Some((name.to_string(), format!("\"{name}\": {{ \"type\": \"{kind}\" }}")))
}

fn tell(backend: &Arc<BackendPlan>, dialect: &Arc<DialectPlan>, story: &Story, tried: &Arc<Mutex<Tried>>) {
    for answer in [Answer::Stream, Answer::Body] {
        let mut view = TurnRequest::plain("witness", answer == Answer::Stream).view;
        view.insert("usage", Tree::from(story.usage));
        view.insert("n", Tree::from(story.choices as i64));
        let mut pipeline = Pipeline::new(Order {
            backend: backend.clone(),
            dialect: dialect.clone(),
            request: Arc::new(TurnRequest::new(view)),
            validation: Validation::Report,
            answer,
            masks: Default::default(),
            hidden: None,
            ids: Ids::Counting(0),
            now_ms: 1_767_225_600_000,
        })
        .observe(Box::new(Notes(tried.clone())));
        pipeline.begin();
        for event in &story.events {
            pipeline.hear(event.clone(), 1_767_225_600_007);
        }
        pipeline.finish(Ended::Marker, 1_767_225_600_009);
        if answer == Answer::Body {
            // What it says of the body is seen by the observer.
            let _ = pipeline.body();
        }
    }
}

/// An error that is told in place of an answer.
fn envelope(dialect: &DialectPlan, fault: &Fault, tried: &Arc<Mutex<Tried>>) {
    let Some(named) = &dialect.errors.schema else { return };
    let Ok(data) = egress::error(dialect, fault) else { return };
    let what = format!("the error of `{}`", dialect.name);
    let mut tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
    let broken = named.schema.check(&data).err();
    let broken = broken.map(|breach| found(&Broken { what: &what, schema: &named.name, breach: &breach, data: &data }));
    tried.note(dialect.errors.span, broken);
}

struct Story {
    choices: usize,
    usage: bool,
    events: Vec<Event>,
}

fn stories() -> Vec<Story> {
    let mut stories = Vec::new();
    for finish in Finish::ALL {
        stories.push(Story { choices: 1, usage: true, events: vec![text("a"), text("b"), counted(), done(*finish)] });
    }
    for events in [
        vec![start(), text("a"), done(Finish::Stop)],
        vec![refusal("no"), done(Finish::Stop)],
        vec![
            thought(ReasoningKind::Summary, "s"),
            thought(ReasoningKind::Raw, "r"),
            text("a"),
            counted(),
            done(Finish::Stop),
        ],
        vec![sealed(), text("a"), done(Finish::Stop)],
        vec![annotated(), text("a"), note("url"), note("file"), note("other"), done(Finish::Stop)],
        vec![likely(), text("a"), done(Finish::Stop)],
        vec![call("c1", CallKind::Function, "{\"a\":1}"), call("c2", CallKind::Function, ""), done(Finish::ToolCalls)],
        vec![text("a"), call("c1", CallKind::Custom, "raw input"), done(Finish::ToolCalls)],
        vec![done(Finish::Stop)],
        vec![text("a")],
    ] {
        stories.push(Story { choices: 1, usage: false, events });
    }
    for kind in FaultKind::ALL {
        stories.push(Story { choices: 1, usage: true, events: vec![text("a"), fault(*kind, None)] });
    }
    stories.push(Story { choices: 1, usage: true, events: vec![text("a"), fault(FaultKind::Backend, Some("code"))] });
    stories.push(Story { choices: 2, usage: true, events: vec![text("a"), at(1, "b"), counted(), done(Finish::Stop)] });
    stories
}

fn start() -> Event {
    Event::Start { id: Some("id".into()), model: Some("model".into()), created: Some(1_767_225_600) }
}

fn text(piece: &str) -> Event {
    at(0, piece)
}

fn at(choice: usize, piece: &str) -> Event {
    Event::Text { choice, item: None, part: None, piece: Piece::Delta(piece.into()) }
}

fn refusal(piece: &str) -> Event {
    Event::Refusal { choice: 0, item: None, part: None, piece: Piece::Delta(piece.into()) }
}

fn thought(kind: ReasoningKind, piece: &str) -> Event {
    let piece = Some(Piece::Delta(piece.into()));
    Event::Reasoning { choice: 0, item: None, kind, part: None, piece, encrypted: None }
}

fn sealed() -> Event {
    let encrypted = Some("sealed".into());
    Event::Reasoning { choice: 0, item: None, kind: ReasoningKind::Raw, part: None, piece: None, encrypted }
}

fn annotated() -> Event {
    text("before ")
}

fn note(kind: &str) -> Event {
    let value = Tree::map([
        ("kind", Tree::from(kind)),
        ("url", Tree::from("https://example.com/")),
        ("title", Tree::from("title")),
        ("file", Tree::from("file")),
        ("name", Tree::from("name")),
        ("start", Tree::from(0i64)),
        ("end", Tree::from(1i64)),
        ("index", Tree::from(0i64)),
    ]);
    Event::Annotation { choice: 0, item: None, value }
}

fn likely() -> Event {
    let token = |top: Tree| {
        Tree::map([
            ("token", Tree::from("a")),
            ("logprob", Tree::from(-0.5f64)),
            ("bytes", Tree::from(vec![Tree::from(97i64)])),
            ("top_logprobs", top),
        ])
    };
    let value = Tree::from(vec![token(Tree::from(vec![token(Tree::Null)]))]);
    Event::Logprobs { choice: 0, item: None, value }
}

fn call(id: &str, kind: CallKind, arguments: &str) -> Event {
    let piece = Some(Piece::Delta(arguments.into()));
    Event::Tool {
        choice: 0,
        key: Some(id.into()),
        id: Some(id.into()),
        name: Some("f".into()),
        kind: Some(kind),
        piece,
    }
}

fn counted() -> Event {
    let usage = Usage { input: Some(3), output: Some(2), total: Some(5), cached: Some(1), ..Usage::default() };
    Event::Usage { usage, merge: Merge::Replace }
}

fn done(reason: Finish) -> Event {
    Event::Finish { choice: None, reason }
}

fn fault(kind: FaultKind, code: Option<&str>) -> Event {
    let fault = Fault { code: code.map(str::to_owned), ..Fault::new(kind, "what went wrong") };
    Event::Fault { fault, last: true }
}
