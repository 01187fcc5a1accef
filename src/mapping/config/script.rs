//! A script: which transcript the replay backend plays for which request. The first step that holds is played.

use super::transcript::Transcript;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::variables::{Shape, Type};
use crate::mapping::language::expression::{Expr, Pool, PoolBuilder};
use crate::mapping::language::scope::Env;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Kind, Node};
use std::sync::Arc;

#[derive(Debug)]
pub struct ScriptPlan {
    pub name: String,
    pub steps: Vec<Step>,
    pub pool: Pool,
}

#[derive(Debug)]
pub struct Step {
    pub when: Option<Expr>,
    pub action: Action,
}

#[derive(Debug)]
pub enum Action {
    Play {
        transcript: Arc<Transcript>,
        pace: Pace,
    },
    /// The request cannot be played.
    Refuse {
        param: Option<String>,
        message: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    None,
    /// Milliseconds between two arrivals.
    Fixed(u64),
    Recorded,
}

/// What a script may play.
pub struct Known<'k> {
    pub transcripts: &'k [Arc<Transcript>],
    /// The names of those that could not be read; that was said.
    pub broken: &'k [String],
}

pub fn parse(node: &Node, known: &Known, cx: Cx) -> Option<ScriptPlan> {
    let fields = Fields::of(node, "a script", cx)?;
    let name = fields.required_text("script")?;
    let default = fields.get("pace").and_then(|n| pace(n, cx)).unwrap_or(Pace::None);
    let pool = PoolBuilder::new(Tables::default());
    let env = Env::new("a script", [("request", Type::Record(Shape::Request))]);
    let mut steps = Vec::new();
    let nodes = fields.required_list("steps");
    for node in nodes {
        steps.extend(step(node, known, default, &pool, &env, cx));
    }
    if let Some(last) = nodes.last()
        && let Some(when) = last.as_map().and_then(|entries| entries.iter().find(|e| e.key == "when"))
    {
        cx.add(
            Diagnostic::new(Code::UnknownKey, when.key_span, "the last step of a script cannot have `when:`")
                .help("it is for every request that no step before it took"),
        );
    }
    fields.done();
    Some(ScriptPlan { name: name.to_owned(), steps, pool: pool.build()? })
}

fn step(node: &Node, known: &Known, default: Pace, pool: &PoolBuilder, env: &Env, cx: Cx) -> Option<Step> {
    let fields = Fields::of(node, "a step", cx)?;
    let when = match fields.get("when") {
        Some(node) => Some(pool.add(text_of(node, cx)?, node.span, env, cx)?.0),
        None => None,
    };
    let pace = fields.get("pace").and_then(|n| pace(n, cx)).unwrap_or(default);
    let action = match (fields.get("play"), fields.get("refuse")) {
        (Some(play), None) => {
            let name = text_of(play, cx)?;
            let Some(transcript) = known.transcripts.iter().find(|t| t.name == name) else {
                if !known.broken.iter().any(|b| b == name) {
                    let message = format!("no transcript is called `{name}`");
                    let names = known.transcripts.iter().map(|t| t.name.as_str());
                    cx.unknown(Code::UnknownReference, play.span, message, name, names);
                }
                return None;
            };
            Action::Play { transcript: transcript.clone(), pace }
        }
        (None, Some(refuse)) => {
            let inner = Fields::of(refuse, "`refuse:`", cx)?;
            let action = Action::Refuse {
                param: inner.text("param").map(str::to_owned),
                message: inner.required_text("message")?.to_owned(),
            };
            inner.done();
            action
        }
        _ => {
            let message = "a step says exactly one of `play:` and `refuse:`";
            fields.not_one_of(&["play", "refuse"], Diagnostic::new(Code::MissingKey, node.span, message));
            fields.done();
            return None;
        }
    };
    fields.done();
    Some(Step { when, action })
}

pub(crate) const PACES: &[&str] = &["none", "recorded"];

/// `none`, `recorded`, or `{ fixed: 20 }` (milliseconds).
fn pace(node: &Node, cx: Cx) -> Option<Pace> {
    match &node.kind {
        Kind::Map(_) => {
            let fields = Fields::of(node, "`pace:`", cx)?;
            fields.required("fixed");
            let fixed = fields.int("fixed").map(|ms| Pace::Fixed(ms as u64));
            fields.done();
            fixed
        }
        _ => match cx.word(node, PACES)? {
            "recorded" => Some(Pace::Recorded),
            _ => Some(Pace::None),
        },
    }
}
