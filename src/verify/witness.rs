//! Before a set goes live, every frame of its routes is filled with witness values: turns that say everything that a
//! backend can say, in our words. A frame that satisfies its schema in none of them never will.

use super::runner;
use super::violation::{Culprit, in_profile};
use crate::diagnostics::{Code, Diagnostic, Sources, Span};
use crate::domain::{
    CallKind, Ended, Event, Fault, FaultKind, Finish, Merge, Piece, ReasoningKind, Tree, TurnRequest, Usage,
};
use crate::engine::encode;
use crate::engine::pipeline::{Answer, Broken, Observer, Order, Pipeline, Sight};
use crate::mapping::Plan;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Validation;
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
    let mut hopeless: Vec<Hopeless> = Vec::new();
    let mut seen: Vec<&Arc<DialectPlan>> = Vec::new();
    let routes = plan.gateway.routes.iter().filter(|r| r.validation != Validation::Off);
    for (dialect, client) in routes.flat_map(|r| r.variants.reachable()) {
        if seen.iter().any(|known| Arc::ptr_eq(known, dialect)) {
            continue;
        }
        seen.push(dialect);
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
        for culprit in tried.hopeless() {
            let place = culprit.place(dialect, plan);
            // What stands in `base:` or in a part breaks every frame that it stands in, and is one mistake.
            let same = |h: &&mut Hopeless| h.place == place || h.culprit.is_like(&culprit) && h.made_as(&culprit);
            match hopeless.iter_mut().find(same) {
                Some(first) => first.add(culprit.what, dialect),
                None => {
                    let (also, dialects) = (Vec::new(), vec![dialect]);
                    hopeless.push(Hopeless { place, culprit, client: client.clone(), also, dialects });
                }
            }
        }
    }
    proof.found = hopeless.iter().map(|h| h.diagnostic(&seen, &plan.sources)).collect();
    proof
}

/// What no values can make right.
struct Hopeless<'p> {
    place: Span,
    culprit: Culprit,
    /// Who would see it, if not everybody.
    client: String,
    /// What else breaks in the same way.
    also: Vec<String>,
    /// Those that it is wrong in.
    dialects: Vec<&'p Arc<DialectPlan>>,
}

impl<'p> Hopeless<'p> {
    /// Where no line is found, the same mistake in the same file is one.
    fn made_as(&self, other: &Culprit) -> bool {
        self.place == self.culprit.made && self.place.file == other.made.file
    }

    fn add(&mut self, what: String, dialect: &'p Arc<DialectPlan>) {
        if what != self.culprit.what && !self.also.contains(&what) {
            self.also.push(what);
        }
        self.dialects.push(dialect);
    }

    /// `tried`: all dialects there are.
    fn diagnostic(&self, tried: &[&Arc<DialectPlan>], sources: &Sources) -> Diagnostic {
        let Culprit { what, schema, why, .. } = &self.culprit;
        let profile = self.profile(tried, sources);
        let message = format!("{what} never satisfies its schema{profile}{}: {why}", self.client);
        let help = match self.culprit.unknown() {
            Some((_, line)) => format!("allow it in schemas/{schema}: {line}"),
            None => format!("a shape is two files: this mapping, and schemas/{schema} which allows it"),
        };
        let help = match &self.also[..] {
            [] => help,
            [one] => format!("{help}; the same in {one}"),
            [one, more @ ..] => format!("{help}; the same in {one} and {} more", more.len()),
        };
        Diagnostic::new(Code::NeverValid, self.place, message).help(help)
    }

    /// The profile without which it would be right.
    fn profile(&self, tried: &[&Arc<DialectPlan>], sources: &Sources) -> String {
        let Some(DialectPlan { name, profile: Some(profile), .. }) = self.dialects.first().map(|d| &***d) else {
            return String::new();
        };
        let mut alike = tried.iter().filter(|d| d.name == *name);
        let right = |d: &&Arc<DialectPlan>| !self.dialects.iter().any(|wrong| wrong.profile == d.profile);
        let makes_the_difference = alike.any(right) || in_profile(self.place, sources);
        if makes_the_difference { format!(" with the profile `{profile}`") } else { String::new() }
    }
}

/// What came of each frame, by its place in the mapping.
#[derive(Default)]
struct Tried {
    frames: Vec<(Span, bool, Option<Culprit>)>,
    /// The frame that comes next was told of before it: it broke its schema.
    broken: Option<Span>,
}

impl Tried {
    fn note(&mut self, span: Span, found: Option<Culprit>) {
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

    fn hopeless(self) -> impl Iterator<Item = Culprit> {
        self.frames.into_iter().filter(|(_, good, _)| !good).filter_map(|(.., bad)| bad)
    }
}

struct Notes(Arc<Mutex<Tried>>);

impl Observer for Notes {
    fn see(&mut self, sight: Sight) {
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match sight {
            Sight::Breach(_, span, broken) => {
                tried.broken = Some(span);
                tried.note(span, Some(Culprit::new(&broken, span)));
            }
            Sight::Frame(_, span) | Sight::Body(_, span) if tried.broken.take() != Some(span) => tried.note(span, None),
            _ => {}
        }
    }
}

fn tell(backend: &Arc<BackendPlan>, dialect: &Arc<DialectPlan>, story: &Story, tried: &Arc<Mutex<Tried>>) {
    for answer in [Answer::Stream, Answer::Body] {
        let mut view = TurnRequest::plain("witness", answer == Answer::Stream).view;
        view.insert("usage", Tree::from(story.usage));
        view.insert("n", Tree::from(story.choices as i64));
        let request = Arc::new(TurnRequest::new(view));
        let order = Order {
            validation: Validation::Report,
            now_ms: 1_767_225_600_000,
            ..runner::tried(backend, dialect, request, answer)
        };
        let mut pipeline = Pipeline::new(order).observe(Box::new(Notes(tried.clone())));
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
    let Ok(data) = encode::error(dialect, fault) else { return };
    let what = format!("the error of `{}`", dialect.name);
    let mut tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
    let broken = named.schema.check(&data).err();
    let broken = broken.map(|breach| {
        let broken = Broken { what: &what, schema: &named.name, breach: &breach, data: &data };
        Culprit::new(&broken, dialect.errors.span)
    });
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
