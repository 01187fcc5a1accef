//! `expect:` of a test: parsed, and compared with the outcome.

use super::difference::{Difference, ValueSource};
use super::difference_source;
use super::matcher::{MatchMode, Matcher, compare_path};
use super::runner::TestOutcome;
use super::trace::{FrameTrace, data_frames};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::{Fault, Tree};
use crate::mapping::config::test_file::{
    Expect, ExpectedFault, ExpectedFrame, ExpectedRequest, ExpectedResponse, FrameIndex, FrameValues, LAST,
};
use crate::mapping::grammar::Section;
use crate::mapping::grammar::collections::Elements;
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::grammar::unparsed::{AnyNode, Unparsed};
use crate::mapping::language::selector::Selector;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Node;

/// The expected outcome of a test.
#[derive(Debug, Default)]
pub struct Expectation {
    frames: Option<Vec<(String, Option<Matcher>)>>,
    frame_checks: Vec<FrameCheck>,
    stream: Option<Matcher>,
    events: Option<Vec<String>>,
    body: Option<Matcher>,
    request: Option<Matcher>,
    sent: Option<Matcher>,
    response: Option<Matcher>,
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

const KEYS: &[&str] = &["frames", "where", "stream", "events", "body", "request", "sent", "response", "fault", "plays"];

impl Expectation {
    pub fn parse(section: &Spanned<Unparsed<Expect>>, cx: LoadContext) -> Option<Expectation> {
        let fields = Expect::open(section.node, "expect", cx)?;
        let expect = Expect::read_fields(&fields)?;
        let value = |value: Option<AnyNode>| value.and_then(|AnyNode(node)| Matcher::parse(node, cx));
        let keys: Vec<_> = KEYS.iter().filter_map(|key| fields.entry(key).map(|e| (*key, e.key_span))).collect();
        if keys.is_empty() {
            let message = "`expect:` is empty, so the test would always pass";
            fields.not_exactly_one(KEYS, Diagnostic::new(Code::MissingKey, section.key_span, message));
        }
        fields.finish();
        let frame = |f: ExpectedFrame| (f.name, f.data.and_then(|data| Matcher::parse(data, cx)));
        Some(Expectation {
            frames: expect.frames.map(|frames| frames.0.into_iter().map(frame).collect()),
            frame_checks: expect.values.map_or(Vec::new(), |checks| frame_checks(&checks, cx)),
            stream: value(expect.stream),
            events: expect.events.map(|events| events.0),
            body: value(expect.body),
            request: value(expect.request),
            sent: expect.sent.map(|sent| sent_matcher(&sent, cx)),
            response: expect.response.map(|response| {
                let ExpectedResponse { status, headers, body } = &response.value;
                members_matcher([("status", status), ("headers", headers), ("body", body)], cx)
            }),
            fault: expect.fault.map(|fault| fault_matcher(&fault, cx)),
            plays: value(expect.plays),
            keys,
        })
    }

    /// Whether the request to the backend is compared.
    pub fn expects_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether the turn is expected to fail, or may fail.
    pub fn expects_fault(&self) -> bool {
        self.fault.is_some() || self.response.is_some()
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
                Some((Err(fault), body)) => {
                    out.push(difference_source::failed_turn("body", "missing, because ", fault, &body.trace));
                }
                None => out.push(missing("body", outcome)),
            }
        }
        match (&self.response, &outcome.response) {
            (Some(matcher), Some(response)) => {
                let from = out.len();
                matcher.compare(Some(&response.tree), "response", MatchMode::Subset, &mut out);
                out[from..].iter_mut().for_each(|d| d.source = Some(ValueSource::body(response.span)));
            }
            (Some(_), None) => out.push(missing("response", outcome)),
            (None, _) => {}
        }
        let plays = outcome.plays.as_deref().map(Tree::from);
        for (what, matcher, got) in [("request", &self.request, &outcome.request), ("plays", &self.plays, &plays)] {
            match (matcher, got) {
                (Some(matcher), Some(got)) => matcher.compare(Some(got), what, MatchMode::Subset, &mut out),
                (Some(_), None) => out.push(missing(what, outcome)),
                (None, _) => {}
            }
        }
        match (&self.sent, &outcome.sent) {
            (Some(matcher), Some(sent)) => {
                let from = out.len();
                matcher.compare(Some(&sent.request), "sent", MatchMode::Subset, &mut out);
                out[from..].iter_mut().for_each(|d| d.source = Some(ValueSource::body(sent.span)));
            }
            (Some(_), None) => out.push(missing("sent", outcome)),
            (None, _) => {}
        }
        match (&self.fault, &outcome.fault) {
            (Some(matcher), Some(fault)) => {
                let from = out.len();
                matcher.compare(Some(&fault_tree(fault)), "fault", MatchMode::Subset, &mut out);
                difference_source::locate_fault(&mut out[from..], &outcome.trace);
            }
            (Some(_), None) => out.push(Difference::message("fault", "missing: the turn did not fail")),
            (None, Some(fault)) if self.expects_frames() && self.body.is_none() && self.response.is_none() => {
                // The fault is the cause of the other differences.
                out.insert(0, difference_source::failed_turn("", "", fault, &outcome.trace));
            }
            (None, _) => {}
        }
        out
    }
}

/// An empty `where:` is reported: it would always match.
fn frame_checks(checks: &Spanned<Elements<FrameValues>>, cx: LoadContext) -> Vec<FrameCheck> {
    if checks.is_empty() {
        cx.error(Code::MissingKey, checks.key_span, "`where:` is empty");
    }
    checks.iter().filter_map(|node| FrameCheck::parse(node, cx)).collect()
}

impl FrameCheck {
    fn parse(node: &Node, cx: LoadContext) -> Option<FrameCheck> {
        let fields = FrameValues::open(node, "where", cx)?;
        let values = FrameValues::read_fields(&fields);
        let mut paths = Vec::new();
        for entry in fields.unread() {
            let selector = Selector::parse(&entry.key, entry.key_span, cx);
            let matcher = Matcher::parse(&entry.value, cx);
            paths.extend(selector.zip(matcher));
        }
        if fields.unread().is_empty() && values.is_some() {
            let message = "`where:` has no condition for this frame";
            let help = "add what a JSONPath must find in it: `{ frame: 0, \"$.a\": 1 }`";
            cx.add(Diagnostic::new(Code::MissingKey, node.span, message).help(help));
        }
        Some(FrameCheck { index: values?.frame, paths })
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
        None if matches!(what, "body" | "response") => {
            Difference::message(what, "there is none, because the test has no events: add `given:`")
        }
        None => Difference::message(what, "there is none"),
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

fn sent_matcher(sent: &Spanned<ExpectedRequest>, cx: LoadContext) -> Matcher {
    let ExpectedRequest { method, path, query, headers, body, calls, dropped } = &sent.value;
    let members = [("method", method), ("path", path), ("query", query), ("headers", headers)];
    members_matcher(members.into_iter().chain([("body", body), ("calls", calls), ("dropped", dropped)]), cx)
}

/// Compares the members that are expected.
fn members_matcher<'m>(
    members: impl IntoIterator<Item = (&'m str, &'m Option<AnyNode<'m>>)>,
    cx: LoadContext,
) -> Matcher {
    let matcher = |(key, node): (&str, &Option<AnyNode>)| Some((key.to_owned(), Matcher::parse(node.as_ref()?.0, cx)?));
    Matcher::Map(members.into_iter().filter_map(matcher).collect(), Vec::new())
}

fn fault_matcher(fault: &Spanned<ExpectedFault>, cx: LoadContext) -> Matcher {
    let texts = [("message", fault.message), ("param", fault.param), ("code", fault.code), ("status", fault.status)];
    let kind = fault.kind.map(|kind| ("kind".to_owned(), Matcher::Value(Tree::from(kind.0.name()))));
    let matcher = |(key, node): (&str, Option<AnyNode>)| Some((key.to_owned(), Matcher::parse(node?.0, cx)?));
    Matcher::Map(kind.into_iter().chain(texts.into_iter().filter_map(matcher)).collect(), Vec::new())
}
