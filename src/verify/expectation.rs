//! `expect:` of a test: parsed, and compared with the outcome.

use super::difference::{Difference, ValueSource};
use super::difference_source;
use super::matcher::{MatchMode, Matcher, compare_path};
use super::runner::TestOutcome;
use super::trace::{FrameTrace, data_frames};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{Fault, FaultKind, Tree};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

/// The expected outcome of a test.
#[derive(Debug, Default)]
pub struct Expectation {
    frames: Option<Vec<(String, Option<Matcher>)>>,
    frame_checks: Vec<FrameCheck>,
    stream: Option<Matcher>,
    events: Option<Vec<String>>,
    body: Option<Matcher>,
    request: Option<Matcher>,
    fault: Option<Matcher>,
    plays: Option<Matcher>,
    /// The keys that are present, with their spans, to report those that cannot match.
    pub keys: Vec<(&'static str, Span)>,
}

/// `{ frame: 8, "$.output_index": 1 }`
#[derive(Debug)]
struct FrameCheck {
    index: FrameIndex,
    paths: Vec<(Selector, Matcher)>,
}

#[derive(Clone, Copy, Debug)]
enum FrameIndex {
    Nth(usize),
    Last,
}

const KEYS: &[&str] = &["frames", "where", "stream", "events", "body", "request", "fault", "plays"];
const LAST: &str = "last";

impl Expectation {
    pub fn parse(entry: &Entry, cx: LoadContext) -> Option<Expectation> {
        let fields = FieldReader::of(&entry.value, "`expect:`", cx)?;
        let keys = KEYS.iter().filter_map(|key| fields.entry(key).map(|e| (*key, e.key_span))).collect();
        let value = |key| fields.get(key).and_then(|n| Matcher::parse(n, cx));
        let expect = Expectation {
            frames: fields.entry("frames").and_then(|e| list(e, cx)).map(|l| frames(l, cx)),
            frame_checks: frame_checks(&fields, cx),
            stream: value("stream"),
            events: fields.entry("events").and_then(|e| list(e, cx)).map(|l| words(l, cx)),
            body: value("body"),
            request: value("request"),
            fault: fields.get("fault").and_then(|n| fault(n, cx)),
            plays: value("plays"),
            keys,
        };
        if expect.keys.is_empty() {
            let message = "`expect:` is empty, so the test would always pass";
            fields.not_exactly_one(KEYS, Diagnostic::new(Code::MissingKey, entry.key_span, message));
        }
        fields.finish();
        Some(expect)
    }

    /// Whether the turn is expected to fail.
    pub fn expects_fault(&self) -> bool {
        self.fault.is_some()
    }

    fn expects_frames(&self) -> bool {
        self.frames.is_some() || self.stream.is_some() || !self.frame_checks.is_empty()
    }

    /// All differences.
    pub fn compare(&self, outcome: &TestOutcome) -> Vec<Difference> {
        let mut out = Vec::new();
        let frames = data_frames(&outcome.trace);
        if let Some(expected) = &self.frames {
            compare_frames(expected, &frames, &mut out);
        }
        if let Some(expected) = &self.events
            && !expected.iter().eq(outcome.events.iter().map(|event| &event.brief))
        {
            let got = outcome.events.iter().map(|event| event.brief.clone()).collect();
            let difference = Difference::names("events", expected.clone(), got);
            out.push(difference_source::locate_events(difference, expected, outcome));
        }
        for check in &self.frame_checks {
            check.compare(&frames, &mut out);
        }
        if let Some(matcher) = &self.stream {
            let all: Vec<Tree> = frames.iter().map(|f| f.data.clone()).collect();
            let from = out.len();
            matcher.compare(Some(&Tree::from(all)), "stream", MatchMode::Subset, &mut out);
            difference_source::locate_stream(&mut out[from..], matcher, &frames);
        }
        if let Some(matcher) = &self.body {
            match outcome.body.as_ref().map(|body| (&body.result, body)) {
                Some((Ok(tree), body)) => {
                    let from = out.len();
                    matcher.compare(Some(tree), "body", MatchMode::Subset, &mut out);
                    out[from..].iter_mut().for_each(|d| d.source = Some(ValueSource::body(body.span)));
                }
                Some((Err(fault), body)) => out.push(difference_source::missing_body(fault, &body.trace)),
                None => out.push(missing("body", outcome)),
            }
        }
        if let Some(matcher) = &self.request {
            match &outcome.request {
                Some(request) => matcher.compare(Some(request), "request", MatchMode::Subset, &mut out),
                None => out.push(missing("request", outcome)),
            }
        }
        if let Some(matcher) = &self.plays {
            match &outcome.plays {
                Some(name) => matcher.compare(Some(&Tree::from(name.as_str())), "plays", MatchMode::Subset, &mut out),
                None => out.push(missing("plays", outcome)),
            }
        }
        match (&self.fault, &outcome.fault) {
            (Some(matcher), Some(fault)) => {
                let from = out.len();
                matcher.compare(Some(&fault_tree(fault)), "fault", MatchMode::Subset, &mut out);
                difference_source::locate_fault(&mut out[from..], &outcome.trace);
            }
            (Some(_), None) => out.push(Difference::message("fault", "missing: the turn did not fail")),
            (None, Some(fault)) if self.expects_frames() && self.body.is_none() => {
                // The fault is the cause of the other differences.
                out.insert(0, difference_source::unexpected_fault(fault, &outcome.trace));
            }
            (None, _) => {}
        }
        out
    }
}

/// An empty `where:` is reported: it would always match.
fn frame_checks(fields: &FieldReader, cx: LoadContext) -> Vec<FrameCheck> {
    let nodes = fields.list("where");
    if let Some(entry) = fields.entry("where").filter(|_| nodes.is_empty()) {
        cx.error(Code::MissingKey, entry.key_span, "`where:` is empty");
    }
    nodes.iter().filter_map(|n| FrameCheck::parse(n, cx)).collect()
}

impl FrameCheck {
    fn parse(node: &Node, cx: LoadContext) -> Option<FrameCheck> {
        let fields = FieldReader::of(node, "`where:`", cx)?;
        let index = match fields.required("frame").map(|n| (n, &n.kind)) {
            Some((_, YamlKind::Int(n))) if *n >= 0 => Some(FrameIndex::Nth(*n as usize)),
            Some((node, YamlKind::Text(_))) => cx.one_of(node, &[LAST]).map(|_| FrameIndex::Last),
            Some((node, _)) => {
                cx.wrong_type(node, "a frame number, from 0, or `last`");
                None
            }
            None => None,
        };
        let mut paths = Vec::new();
        for entry in fields.unread() {
            let selector = Selector::parse(&entry.key, entry.key_span, cx);
            let matcher = Matcher::parse(&entry.value, cx);
            paths.extend(selector.zip(matcher));
        }
        if fields.unread().is_empty() && index.is_some() {
            let message = "`where:` has no condition for this frame";
            let help = "add what a JSONPath must find in it: `{ frame: 0, \"$.a\": 1 }`";
            cx.add(Diagnostic::new(Code::MissingKey, node.span, message).help(help));
        }
        Some(FrameCheck { index: index?, paths })
    }

    fn compare(&self, frames: &[FrameTrace], out: &mut Vec<Difference>) {
        let at = match self.index {
            FrameIndex::Nth(n) => n,
            FrameIndex::Last => frames.len().saturating_sub(1),
        };
        let Some(frame) = frames.get(at) else {
            let index = match self.index {
                FrameIndex::Nth(n) => n.to_string(),
                FrameIndex::Last => LAST.to_owned(),
            };
            let count = frames.len();
            out.push(Difference::message(
                &format!("frame {index}"),
                format!("missing; the number of frames is {count}"),
            ));
            return;
        };
        let from = out.len();
        for (selector, matcher) in &self.paths {
            compare_path(selector, matcher, frame.data, &frame_path(at, frame), MatchMode::Exact, out);
        }
        set_source(&mut out[from..], at, frame);
    }
}

fn compare_frames(expected: &[(String, Option<Matcher>)], frames: &[FrameTrace], out: &mut Vec<Difference>) {
    let names: Vec<String> = expected.iter().map(|(name, _)| name.clone()).collect();
    let got: Vec<String> = frames.iter().map(|f| f.frame.name.to_string()).collect();
    if names != got {
        let same = names.iter().zip(&got).take_while(|(e, g)| e == g).count();
        let difference = Difference::names("frames", names, got);
        out.push(match frames.get(same) {
            Some(frame) => difference.with_source(ValueSource::frame(same, frame)),
            None => difference,
        });
        return;
    }
    for (at, ((_, matcher), frame)) in expected.iter().zip(frames).enumerate() {
        let Some(matcher) = matcher else { continue };
        let from = out.len();
        matcher.compare(Some(frame.data), &frame_path(at, frame), MatchMode::Subset, out);
        set_source(&mut out[from..], at, frame);
    }
}

fn frame_path(at: usize, frame: &FrameTrace) -> String {
    format!("frame {at} `{}`", frame.frame.name)
}

fn set_source(differences: &mut [Difference], at: usize, frame: &FrameTrace) {
    for difference in differences {
        difference.source = Some(ValueSource::frame(at, frame));
    }
}

/// For an expected output that does not exist.
fn missing(what: &str, outcome: &TestOutcome) -> Difference {
    match &outcome.fault {
        Some(fault) => Difference::message(what, format!("missing, because the turn failed: {}", fault.message)),
        None => Difference::message(what, "missing"),
    }
}

fn fault_tree(fault: &Fault) -> Tree {
    Tree::map([
        ("kind", Tree::from(fault.kind.name())),
        ("message", Tree::from(fault.message.as_str())),
        ("param", fault.param.as_deref().map_or(Tree::Null, Tree::from)),
        ("code", fault.code.as_deref().map_or(Tree::Null, Tree::from)),
        ("status", Tree::from(i64::from(fault.status()))),
    ])
}

/// The items of a value that must be a list. A single value is not accepted: it is probably a mistake.
fn list<'n>(entry: &'n Entry, cx: LoadContext) -> Option<&'n [Node]> {
    match &entry.value.kind {
        YamlKind::List(items) => Some(items),
        YamlKind::Null => {
            cx.error(Code::MissingKey, entry.key_span, format!("`{}:` is empty", entry.key));
            None
        }
        YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) | YamlKind::Map(_) => {
            let message = format!("`{}:` must be a list, not {}", entry.key, entry.value.type_name());
            cx.error(Code::WrongType, entry.value.span, message);
            None
        }
    }
}

fn words(items: &[Node], cx: LoadContext) -> Vec<String> {
    items.iter().filter_map(|n| text_of(n, cx)).map(str::to_owned).collect()
}

/// Each frame is a name, or `{ NAME: expected data }`.
fn frames(items: &[Node], cx: LoadContext) -> Vec<(String, Option<Matcher>)> {
    let mut frames = Vec::new();
    for item in items {
        match &item.kind {
            YamlKind::Text(name) => frames.push((name.clone(), None)),
            YamlKind::Map(entries) if entries.len() == 1 => {
                frames.extend(entries.iter().map(|e| (e.key.clone(), Matcher::parse(&e.value, cx))));
            }
            YamlKind::Null
            | YamlKind::Bool(_)
            | YamlKind::Int(_)
            | YamlKind::Float(_)
            | YamlKind::List(_)
            | YamlKind::Map(_) => {
                cx.wrong_type(item, "a frame name, or `{ NAME: data }`");
            }
        }
    }
    frames
}

fn fault(node: &Node, cx: LoadContext) -> Option<Matcher> {
    let fields = FieldReader::of(node, "`fault:`", cx)?;
    let mut members = Vec::new();
    for key in ["kind", "message", "param", "code", "status"] {
        let Some(node) = fields.get(key) else { continue };
        if key == "kind" {
            cx.one_of(node, FaultKind::NAMES);
        }
        members.extend(Matcher::parse(node, cx).map(|matcher| (key.to_owned(), matcher)));
    }
    if members.is_empty() && fields.unread().is_empty() {
        cx.error(Code::MissingKey, node.span, "`fault:` is empty");
    }
    fields.finish();
    Some(Matcher::Map(members, Vec::new()))
}
