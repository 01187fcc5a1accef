//! `expect:`, read and compared with what came.

use super::difference::{Difference, Made};
use super::difference_source;
use super::matcher::{Extent, Want, compare_path};
use super::runner::Played;
use super::trace::{Told, told};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{Fault, FaultKind, Tree};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Entry, Kind, Node};

/// What must come of a test.
#[derive(Debug, Default)]
pub struct Expect {
    frames: Option<Vec<(String, Option<Want>)>>,
    places: Vec<Place>,
    stream: Option<Want>,
    events: Option<Vec<String>>,
    body: Option<Want>,
    request: Option<Want>,
    fault: Option<Want>,
    plays: Option<Want>,
    /// Which of its keys stand where, for what cannot hold.
    pub said: Vec<(&'static str, Span)>,
}

/// `{ frame: 8, "$.output_index": 1 }`
#[derive(Debug)]
struct Place {
    which: Which,
    paths: Vec<(Selector, Want)>,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Nth(usize),
    Last,
}

const KEYS: &[&str] = &["frames", "where", "stream", "events", "body", "request", "fault", "plays"];
const LAST: &str = "last";

impl Expect {
    pub fn parse(entry: &Entry, cx: Cx) -> Option<Expect> {
        let fields = Fields::of(&entry.value, "`expect:`", cx)?;
        let said = KEYS.iter().filter_map(|key| fields.entry(key).map(|e| (*key, e.key_span))).collect();
        let value = |key| fields.get(key).and_then(|n| Want::parse(n, cx));
        let expect = Expect {
            frames: fields.entry("frames").and_then(|e| list(e, cx)).map(|l| frames(l, cx)),
            places: places(&fields, cx),
            stream: value("stream"),
            events: fields.entry("events").and_then(|e| list(e, cx)).map(|l| words(l, cx)),
            body: value("body"),
            request: value("request"),
            fault: fields.get("fault").and_then(|n| fault(n, cx)),
            plays: value("plays"),
            said,
        };
        if expect.said.is_empty() {
            let message = "`expect:` says nothing, so the test would always hold";
            fields.not_one_of(KEYS, Diagnostic::new(Code::MissingKey, entry.key_span, message));
        }
        fields.done();
        Some(expect)
    }

    /// Is the turn meant to fail?
    pub fn wants_fault(&self) -> bool {
        self.fault.is_some()
    }

    fn asks_of_frames(&self) -> bool {
        self.frames.is_some() || self.stream.is_some() || !self.places.is_empty()
    }

    /// Everything that differs.
    pub fn compare(&self, played: &Played) -> Vec<Difference> {
        let mut out = Vec::new();
        let told = told(&played.seen);
        if let Some(expected) = &self.frames {
            compare_frames(expected, &told, &mut out);
        }
        if let Some(expected) = &self.events
            && !expected.iter().eq(played.events.iter().map(|said| &said.brief))
        {
            let got = played.events.iter().map(|said| said.brief.clone()).collect();
            let difference = Difference::names("events", expected.clone(), got);
            out.push(difference_source::of_events(difference, expected, played));
        }
        for place in &self.places {
            place.compare(&told, &mut out);
        }
        if let Some(want) = &self.stream {
            let all: Vec<Tree> = told.iter().map(|t| t.data.clone()).collect();
            let from = out.len();
            want.compare(Some(&Tree::from(all)), "stream", Extent::Part, &mut out);
            difference_source::of_stream(&mut out[from..], want, &told);
        }
        if let Some(want) = &self.body {
            match played.body.as_ref().map(|body| (&body.answer, body)) {
                Some((Ok(answer), body)) => {
                    let from = out.len();
                    want.compare(Some(answer), "body", Extent::Part, &mut out);
                    out[from..].iter_mut().for_each(|d| d.made = Some(Made::body(body.span)));
                }
                Some((Err(fault), body)) => out.push(difference_source::no_body(fault, &body.seen)),
                None => out.push(nothing("body", played)),
            }
        }
        if let Some(want) = &self.request {
            match &played.request {
                Some(request) => want.compare(Some(request), "request", Extent::Part, &mut out),
                None => out.push(nothing("request", played)),
            }
        }
        if let Some(want) = &self.plays {
            match &played.plays {
                Some(name) => want.compare(Some(&Tree::from(name.as_str())), "plays", Extent::Part, &mut out),
                None => out.push(nothing("plays", played)),
            }
        }
        match (&self.fault, &played.fault) {
            (Some(want), Some(fault)) => {
                let from = out.len();
                want.compare(Some(&shown(fault)), "fault", Extent::Part, &mut out);
                difference_source::of_fault(&mut out[from..], &played.seen);
            }
            (Some(_), None) => out.push(Difference::said("fault", "there is none")),
            (None, Some(fault)) if self.asks_of_frames() && self.body.is_none() => {
                // It is why the rest differs.
                out.insert(0, difference_source::failed(fault, &played.seen));
            }
            (None, _) => {}
        }
        out
    }
}

/// None at all would always hold.
fn places(fields: &Fields, cx: Cx) -> Vec<Place> {
    let nodes = fields.list("where");
    if let Some(entry) = fields.entry("where").filter(|_| nodes.is_empty()) {
        cx.error(Code::MissingKey, entry.key_span, "`where:` asks nothing");
    }
    nodes.iter().filter_map(|n| Place::parse(n, cx)).collect()
}

impl Place {
    fn parse(node: &Node, cx: Cx) -> Option<Place> {
        let fields = Fields::of(node, "`where:`", cx)?;
        let which = match fields.required("frame").map(|n| (n, &n.kind)) {
            Some((_, Kind::Int(n))) if *n >= 0 => Some(Which::Nth(*n as usize)),
            Some((node, Kind::Text(_))) => cx.word(node, &[LAST]).map(|_| Which::Last),
            Some((node, _)) => {
                cx.wrong_type(node, "the number of a frame, from 0, or `last`");
                None
            }
            None => None,
        };
        let mut paths = Vec::new();
        for entry in fields.rest() {
            let selector = Selector::parse(&entry.key, entry.key_span, cx);
            let want = Want::parse(&entry.value, cx);
            paths.extend(selector.zip(want));
        }
        if fields.rest().is_empty() && which.is_some() {
            let message = "`where:` asks nothing of this frame";
            let help = "say what a JSONPath must find in it: `{ frame: 0, \"$.a\": 1 }`";
            cx.add(Diagnostic::new(Code::MissingKey, node.span, message).help(help));
        }
        Some(Place { which: which?, paths })
    }

    fn compare(&self, told: &[Told], out: &mut Vec<Difference>) {
        let at = match self.which {
            Which::Nth(n) => n,
            Which::Last => told.len().saturating_sub(1),
        };
        let Some(one) = told.get(at) else {
            let which = match self.which {
                Which::Nth(n) => n.to_string(),
                Which::Last => LAST.to_owned(),
            };
            let count = told.len();
            out.push(Difference::said(&format!("frame {which}"), format!("there is none; there are {count}")));
            return;
        };
        let from = out.len();
        for (selector, want) in &self.paths {
            compare_path(selector, want, one.data, &name(at, one), Extent::Whole, out);
        }
        mark(&mut out[from..], at, one);
    }
}

fn compare_frames(expected: &[(String, Option<Want>)], told: &[Told], out: &mut Vec<Difference>) {
    let names: Vec<String> = expected.iter().map(|(name, _)| name.clone()).collect();
    let got: Vec<String> = told.iter().map(|t| t.frame.name.to_string()).collect();
    if names != got {
        let same = names.iter().zip(&got).take_while(|(e, g)| e == g).count();
        let difference = Difference::names("frames", names, got);
        out.push(match told.get(same) {
            Some(one) => difference.made(Made::frame(same, one)),
            None => difference,
        });
        return;
    }
    for (at, ((_, want), one)) in expected.iter().zip(told).enumerate() {
        let Some(want) = want else { continue };
        let from = out.len();
        want.compare(Some(one.data), &name(at, one), Extent::Part, out);
        mark(&mut out[from..], at, one);
    }
}

fn name(at: usize, told: &Told) -> String {
    format!("frame {at} `{}`", told.frame.name)
}

fn mark(differences: &mut [Difference], at: usize, told: &Told) {
    for difference in differences {
        difference.made = Some(Made::frame(at, told));
    }
}

/// Why something is not there at all.
fn nothing(what: &str, played: &Played) -> Difference {
    match &played.fault {
        Some(fault) => Difference::said(what, format!("there is none, but a fault: {}", fault.message)),
        None => Difference::said(what, "there is none"),
    }
}

fn shown(fault: &Fault) -> Tree {
    Tree::map([
        ("kind", Tree::from(fault.kind.word())),
        ("message", Tree::from(fault.message.as_str())),
        ("param", fault.param.as_deref().map_or(Tree::Null, Tree::from)),
        ("code", fault.code.as_deref().map_or(Tree::Null, Tree::from)),
        ("status", Tree::from(i64::from(fault.status()))),
    ])
}

/// The items of what must be a list; a single word is most likely a slip.
fn list<'n>(entry: &'n Entry, cx: Cx) -> Option<&'n [Node]> {
    match &entry.value.kind {
        Kind::List(items) => Some(items),
        Kind::Null => {
            cx.error(Code::MissingKey, entry.key_span, format!("`{}:` is empty", entry.key));
            None
        }
        Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) | Kind::Map(_) => {
            let message = format!("`{}:` must be a list, not {}", entry.key, entry.value.noun());
            cx.error(Code::WrongType, entry.value.span, message);
            None
        }
    }
}

fn words(items: &[Node], cx: Cx) -> Vec<String> {
    items.iter().filter_map(|n| text_of(n, cx)).map(str::to_owned).collect()
}

/// A name, or `{ NAME: what it holds }`.
fn frames(items: &[Node], cx: Cx) -> Vec<(String, Option<Want>)> {
    let mut frames = Vec::new();
    for item in items {
        match &item.kind {
            Kind::Text(name) => frames.push((name.clone(), None)),
            Kind::Map(entries) if entries.len() == 1 => {
                frames.extend(entries.iter().map(|e| (e.key.clone(), Want::parse(&e.value, cx))));
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::List(_) | Kind::Map(_) => {
                cx.wrong_type(item, "the name of a frame, or `{ NAME: what it holds }`");
            }
        }
    }
    frames
}

fn fault(node: &Node, cx: Cx) -> Option<Want> {
    let fields = Fields::of(node, "`fault:`", cx)?;
    let mut members = Vec::new();
    for key in ["kind", "message", "param", "code", "status"] {
        let Some(node) = fields.get(key) else { continue };
        if key == "kind" {
            cx.word(node, FaultKind::WORDS);
        }
        members.extend(Want::parse(node, cx).map(|want| (key.to_owned(), want)));
    }
    if members.is_empty() && fields.rest().is_empty() {
        cx.error(Code::MissingKey, node.span, "`fault:` says nothing of the fault");
    }
    fields.done();
    Some(Want::Map(members, Vec::new()))
}
