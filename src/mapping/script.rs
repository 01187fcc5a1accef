//! A script: which transcript the replay backend plays for which request. The first step that holds is played.

use super::expr::{Expr, Pool, PoolBuilder};
use super::fields::{Cx, Fields, text_of};
use super::table::Tables;
use super::transcript::Transcript;
use super::types::Env;
use super::yaml::{Kind, Node};
use crate::canon::shape::{Shape, Type};
use crate::diag::{Code, Diagnostic};
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

pub fn parse(node: &Node, transcripts: &[Arc<Transcript>], cx: Cx) -> Option<ScriptPlan> {
    let fields = Fields::of(node, "a script", cx)?;
    let name = fields.required_text("script")?;
    let default = fields.get("pace").and_then(|n| pace(n, cx)).unwrap_or(Pace::None);
    let pool = PoolBuilder::new(Tables::default());
    let env = Env::new("a script", [("request", Type::Record(Shape::Request))]);
    let mut steps = Vec::new();
    fields.required("steps");
    for node in fields.list("steps") {
        steps.extend(step(node, transcripts, default, &pool, &env, cx));
    }
    if let Some(last) = fields.list("steps").last()
        && last.get("when").is_some()
    {
        cx.add(
            Diagnostic::new(Code::MissingKey, last.span, "the last step of a script has no `when:`")
                .help("so that every request has something to play"),
        );
    }
    fields.done();
    Some(ScriptPlan { name: name.to_owned(), steps, pool: pool.build()? })
}

fn step(
    node: &Node,
    transcripts: &[Arc<Transcript>],
    default: Pace,
    pool: &PoolBuilder,
    env: &Env,
    cx: Cx,
) -> Option<Step> {
    let fields = Fields::of(node, "a step", cx)?;
    let when = match fields.get("when") {
        Some(node) => Some(pool.add(text_of(node, cx)?, node.span, env, cx)?.0),
        None => None,
    };
    let pace = fields.get("pace").and_then(|n| pace(n, cx)).unwrap_or(default);
    let action = match (fields.get("play"), fields.get("refuse")) {
        (Some(play), None) => {
            let name = text_of(play, cx)?;
            let Some(transcript) = transcripts.iter().find(|t| t.name == name) else {
                let message = format!("no transcript is called `{name}`");
                cx.unknown(
                    Code::UnknownReference,
                    play.span,
                    message,
                    name,
                    transcripts.iter().map(|t| t.name.as_str()),
                );
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
            cx.error(Code::MissingKey, node.span, "a step says exactly one of `play:` and `refuse:`");
            return None;
        }
    };
    fields.done();
    Some(Step { when, action })
}

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
        _ => match cx.word(node, &["none", "recorded"])? {
            "recorded" => Some(Pace::Recorded),
            _ => Some(Pace::None),
        },
    }
}
