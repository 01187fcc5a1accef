//! A captured body or stream, held against a dialect: the shape of each frame by its schema, then what must hold between
//! frames. Nothing of a dialect stands here; its `capture:` says how its frames are read.

mod items;
mod reader;
mod schema_match;
mod stream_rules;

use crate::diagnostics::schema_message;
use crate::diagnostics::{FileId, Findings};
use crate::domain::{Tree, WireKind};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::source::yaml;
use crate::mapping::source::yaml::Kind;
use schema_match::{Fit, Misfit, Shapes};
use std::collections::HashMap;
use stream_rules::Laws;

use reader::StreamKind;
pub use reader::{Capture, Unreadable, read};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub line: usize,
    pub text: String,
    /// On how many further lines the same is wrong.
    pub more: usize,
}

/// Findings as they are made. The same sentence is said once.
#[derive(Debug, Default)]
pub struct Notes {
    findings: Vec<Finding>,
    /// Where each sentence stands in the list: a long capture may have many.
    told: HashMap<String, usize>,
    /// How often anything was said.
    count: usize,
}

impl Notes {
    pub fn add(&mut self, line: usize, text: impl Into<String>) {
        let text = text.into();
        self.count += 1;
        match self.told.get(&text).and_then(|at| self.findings.get_mut(*at)) {
            Some(known) => known.more += 1,
            None => {
                self.told.insert(text.clone(), self.findings.len());
                self.findings.push(Finding { line, text, more: 0 });
            }
        }
    }
}

/// What a capture came down to.
#[derive(Debug)]
pub struct Verdict {
    /// `12 frames`, `a body`, `an error body`.
    pub what: String,
    pub findings: Vec<Finding>,
}

/// How well a dialect fits: frames that its schemas accept, then members that it knows.
pub fn fit(dialect: &DialectPlan, capture: &Capture) -> Fit {
    let shapes = Shapes::of(dialect);
    match capture {
        Capture::Body { tree, .. } => shapes.fit_body(tree),
        Capture::Stream { kind, chunks, .. } => {
            let same = match kind {
                StreamKind::Sse => dialect.wire.kind == WireKind::Sse,
                StreamKind::Lines => dialect.wire.kind == WireKind::Ndjson,
            };
            let fits = chunks.iter().filter_map(|c| c.data.as_ref().ok()).map(|data| shapes.fit_frame(data));
            if same { fits.fold((0, 0), |sum, fit| (sum.0 + fit.0, sum.1 + fit.1)) } else { (0, 0) }
        }
    }
}

pub fn judge(dialect: &DialectPlan, capture: &Capture) -> Verdict {
    let shapes = Shapes::of(dialect);
    let mut laws = Laws::new(&dialect.capture);
    let mut notes = Notes::default();
    let what = match capture {
        Capture::Body { tree, text, line } => {
            if let Some(breach) = shapes.body(tree) {
                notes.add(line + place(text, &breach.pointer), schema_message::of(&breach, tree));
            }
            laws.body(tree, *line, &mut notes);
            if shapes.is_error(tree) { "an error body".to_owned() } else { "a body".to_owned() }
        }
        Capture::Stream { chunks, last, .. } => {
            for chunk in chunks {
                let line = chunk.line;
                if let Some(text) = shapes.text(chunk) {
                    laws.terminator(line, &mut notes);
                    text.unwrap_or_else(|wrong| notes.add(line, wrong));
                    continue;
                }
                match &chunk.data {
                    Ok(data) => frame(&shapes, &mut laws, data, chunk, &mut notes),
                    Err(why) => notes.add(line, format!("this is not JSON: {why}")),
                }
            }
            laws.done(*last, |moment| shapes.terminator(moment), &mut notes);
            if chunks.len() == 1 { "1 frame".to_owned() } else { format!("{} frames", chunks.len()) }
        }
    };
    let mut findings = notes.findings;
    findings.sort_by_key(|f| f.line);
    Verdict { what, findings }
}

fn frame(shapes: &Shapes, laws: &mut Laws, data: &Tree, chunk: &reader::Chunk, notes: &mut Notes) {
    let before = notes.count;
    laws.frame(data, chunk.line, notes);
    let lawful = notes.count == before;
    for misfit in shapes.frame(data, chunk.event.as_deref()) {
        match misfit {
            // A schema can forbid a combination, and cannot say why. If a law has said it, that is enough.
            Misfit::Breach(breach) if breach.keyword == "not" && !lawful => {}
            Misfit::Breach(breach) => notes.add(chunk.line, schema_message::of(&breach, data)),
            Misfit::Other(text) => notes.add(chunk.line, text),
        }
    }
}

/// How many lines into a body a value stands. JSON is YAML, and our YAML knows where its values are.
fn place(text: &str, pointer: &str) -> usize {
    let Some(root) = yaml::parse(FileId(0), text, &Findings::default()) else { return 0 };
    let (mut node, mut start) = (&root, 0);
    for step in schema_message::steps(pointer) {
        let next = match &node.kind {
            Kind::Map(entries) => entries.iter().find(|e| e.key == step).map(|e| (&e.value, e.key_span.start)),
            Kind::List(items) => step.parse().ok().and_then(|i: usize| items.get(i)).map(|n| (n, n.span.start)),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => None,
        };
        let Some((inner, at)) = next else { break };
        (node, start) = (inner, at as usize);
    }
    text.get(..start).map_or(0, |before| before.bytes().filter(|b| *b == b'\n').count())
}
