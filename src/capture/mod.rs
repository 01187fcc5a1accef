//! Validates a captured body or stream against a dialect: each frame against its schema, then the rules between frames.
//! Independent of any dialect: the `capture:` section of a dialect defines how its frames are read.

mod facts;
mod items;
mod reader;
mod schema_match;
mod stream_rules;

use crate::diagnostics::schema_message;
use crate::diagnostics::{FileId, Findings, count_noun};
use crate::domain::{StreamFormat, Tree};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::source::yaml;
use schema_match::{DialectShapes, Fit, FrameProblem};
use std::collections::HashMap;
use stream_rules::StreamRules;

use reader::StreamKind;
pub use reader::{Capture, ReadError, read};

/// One problem and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub line: usize,
    pub text: String,
    /// How many further lines have the same problem.
    pub more: usize,
}

/// Collects findings. Equal texts are listed once.
#[derive(Debug, Default)]
pub struct FindingList {
    /// The line that is checked.
    line: usize,
    list: Vec<Finding>,
    /// The position of each text in the list; a long capture may have many.
    index: HashMap<String, usize>,
    /// The number of calls of `add`.
    count: usize,
}

impl FindingList {
    pub fn add(&mut self, text: impl Into<String>) {
        self.add_at(self.line, text);
    }

    fn add_at(&mut self, line: usize, text: impl Into<String>) {
        let text = text.into();
        self.count += 1;
        match self.index.get(&text).and_then(|at| self.list.get_mut(*at)) {
            Some(known) => known.more += 1,
            None => {
                self.index.insert(text.clone(), self.list.len());
                self.list.push(Finding { line, text, more: 0 });
            }
        }
    }

    /// Something that may happen once; `first` is the line where it did.
    fn add_once(&mut self, first: &mut Option<usize>, what: impl FnOnce() -> String) {
        match first {
            Some(first) => self.add(format!("{} a second time (first on line {first})", what())),
            None => *first = Some(self.line),
        }
    }
}

/// The result of a validation.
#[derive(Debug)]
pub struct ValidationReport {
    /// `12 frames`, `a body`, `an error body`.
    pub what: String,
    pub findings: Vec<Finding>,
}

/// How well a dialect fits: frames that its schemas accept, then members that it knows.
pub fn fit(dialect: &DialectPlan, capture: &Capture) -> Fit {
    let shapes = DialectShapes::of(dialect);
    match capture {
        Capture::Body { tree, .. } => shapes.fit_body(tree),
        Capture::Stream { kind, events, .. } => {
            let same = match kind {
                StreamKind::Sse => dialect.encoding.format == StreamFormat::Sse,
                StreamKind::Ndjson => dialect.encoding.format == StreamFormat::Ndjson,
            };
            let fits = events.iter().filter_map(|c| c.data.as_ref().ok()).map(|data| shapes.fit_frame(data));
            if same { fits.fold((0, 0), |sum, fit| (sum.0 + fit.0, sum.1 + fit.1)) } else { (0, 0) }
        }
    }
}

pub fn validate(dialect: &DialectPlan, capture: &Capture) -> ValidationReport {
    let shapes = DialectShapes::of(dialect);
    let mut stream_rules = StreamRules::new(dialect);
    let mut findings = FindingList::default();
    let what = match capture {
        Capture::Body { tree, text, line } => {
            if let Some(violation) = shapes.body(tree) {
                let line = line + line_offset(text, &violation.pointer);
                findings.add_at(line, schema_message::describe(&violation, tree));
            }
            findings.line = *line;
            stream_rules.body(tree, &mut findings);
            if shapes.is_error(tree) { "an error body".to_owned() } else { "a body".to_owned() }
        }
        Capture::Stream { events, last, .. } => {
            for captured in events {
                findings.line = captured.line;
                if let Some(text) = shapes.text(captured) {
                    stream_rules.terminator(&mut findings);
                    text.unwrap_or_else(|wrong| findings.add(wrong));
                    continue;
                }
                match &captured.data {
                    Ok(data) => frame(&shapes, &mut stream_rules, data, captured.event.as_deref(), &mut findings),
                    Err(why) => findings.add(format!("invalid JSON: {why}")),
                }
            }
            findings.line = *last;
            stream_rules.finish(|moment| shapes.terminator(moment), &mut findings);
            count_noun(events.len(), "frame")
        }
    };
    let mut findings = findings.list;
    findings.sort_by_key(|f| f.line);
    ValidationReport { what, findings }
}

fn frame(
    shapes: &DialectShapes,
    stream_rules: &mut StreamRules,
    data: &Tree,
    event: Option<&str>,
    findings: &mut FindingList,
) {
    let before = findings.count;
    stream_rules.frame(&stream_rules.with_event(data, event), findings);
    let follows_rules = findings.count == before;
    for problem in shapes.frame(data, event) {
        match problem {
            // A schema can forbid a combination but not explain it. A violated stream rule has already reported it.
            FrameProblem::Schema(violation) if violation.keyword == "not" && !follows_rules => {}
            FrameProblem::Schema(violation) => findings.add(schema_message::describe(&violation, data)),
            FrameProblem::Other(text) => findings.add(text),
        }
    }
}

/// The line of a value, relative to the start of the body. JSON is YAML, and the YAML parser records spans.
fn line_offset(text: &str, pointer: &str) -> usize {
    let Some(root) = yaml::parse(FileId(0), text, &Findings::default()) else { return 0 };
    let (_, span, _) = root.follow(pointer);
    text.get(..span.start as usize).map_or(0, |before| before.bytes().filter(|b| *b == b'\n').count())
}
