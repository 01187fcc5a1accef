//! A script: which transcript the replay backend plays for which request. The first matching step is played.

use super::transcript::Transcript;
use crate::diagnostics::{Code, Diagnostic, or_list};
use crate::domain::variables;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Node, YamlKind};
use std::sync::Arc;

#[derive(Debug)]
pub struct ScriptPlan {
    pub name: String,
    pub steps: Vec<ScriptStep>,
    pub pool: ExpressionPool,
}

#[derive(Debug)]
pub struct ScriptStep {
    pub when: Option<Expression>,
    pub action: ScriptAction,
}

#[derive(Debug)]
pub enum ScriptAction {
    Play {
        transcript: Arc<Transcript>,
        pace: ReplayPace,
    },
    /// No transcript fits the request.
    Reject {
        param: Option<String>,
        message: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayPace {
    None,
    /// Milliseconds between two events.
    Fixed(u64),
    Recorded,
}

/// The transcripts that a script can refer to.
pub struct KnownTranscripts<'k> {
    pub transcripts: &'k [Arc<Transcript>],
    /// Names of transcripts with errors, which are reported elsewhere.
    pub unreadable: &'k [String],
}

pub fn parse(node: &Node, known: &KnownTranscripts, cx: LoadContext) -> Option<ScriptPlan> {
    let fields = FieldReader::of(node, "a script", cx)?;
    let name = fields.required_text("script")?;
    let default_pace = fields.get("pace").and_then(|n| pace(n, cx)).unwrap_or(ReplayPace::None);
    let pool = ExpressionPoolBuilder::new(Tables::default());
    let scope = VariableScope::new("a script", [variables::REQUEST]);
    let mut steps = Vec::new();
    let nodes = fields.required_list("steps");
    for node in nodes {
        steps.extend(step(node, known, default_pace, &pool, &scope, cx));
    }
    if let Some(last) = nodes.last()
        && let Some(when) = last.as_map().and_then(|entries| entries.iter().find(|e| e.key == "when"))
    {
        cx.add(
            Diagnostic::new(Code::UnknownKey, when.key_span, "the last step of a script cannot have `when:`")
                .help("it applies to every request that no earlier step matched"),
        );
    }
    fields.finish();
    Some(ScriptPlan { name: name.to_owned(), steps, pool: pool.build()? })
}

fn step(
    node: &Node,
    known: &KnownTranscripts,
    default_pace: ReplayPace,
    pool: &ExpressionPoolBuilder,
    scope: &VariableScope,
    cx: LoadContext,
) -> Option<ScriptStep> {
    let fields = FieldReader::of(node, "a step", cx)?;
    let when = match fields.get("when") {
        Some(node) => Some(pool.add(text_of(node, cx)?, node.span, scope, cx)?.0),
        None => None,
    };
    let pace = fields.get("pace").and_then(|n| pace(n, cx)).unwrap_or(default_pace);
    let action = match (fields.get("play"), fields.get("reject")) {
        (Some(play), None) => {
            let name = text_of(play, cx)?;
            let Some(transcript) = known.transcripts.iter().find(|t| t.name == name) else {
                if !known.unreadable.iter().any(|b| b == name) {
                    let message = format!("unknown transcript `{name}`");
                    let names = known.transcripts.iter().map(|t| t.name.as_str());
                    cx.unknown(Code::UnknownReference, play.span, message, name, names);
                }
                return None;
            };
            ScriptAction::Play { transcript: transcript.clone(), pace }
        }
        (None, Some(reject)) => {
            let inner = FieldReader::of(reject, "`reject:`", cx)?;
            let action = ScriptAction::Reject {
                param: inner.text("param").map(str::to_owned),
                message: inner.required_text("message")?.to_owned(),
            };
            inner.finish();
            action
        }
        (play, _) => {
            // One mistake is one error: an unknown key probably means one of the two.
            if play.is_some() || fields.unread().is_empty() {
                let message = "a step must have exactly one of `play:` and `reject:`";
                cx.error(Code::MissingKey, node.span, message);
            }
            fields.finish();
            return None;
        }
    };
    fields.finish();
    Some(ScriptStep { when, action })
}

pub(crate) const PACES: &[&str] = &["none", "recorded"];

/// `none`, `recorded`, or `{ fixed: 20 }` (milliseconds).
fn pace(node: &Node, cx: LoadContext) -> Option<ReplayPace> {
    let allowed = PACES.iter().copied().chain(["{ fixed: MILLISECONDS }"]);
    match &node.kind {
        YamlKind::Map(_) => {
            let fields = FieldReader::of(node, "`pace:`", cx)?;
            fields.required("fixed");
            let fixed = fields.int("fixed").map(|ms| ReplayPace::Fixed(ms as u64));
            fields.finish();
            fixed
        }
        YamlKind::Text(text) => match text.as_str() {
            "none" => Some(ReplayPace::None),
            "recorded" => Some(ReplayPace::Recorded),
            _ => {
                cx.unknown(Code::UnknownValue, node.span, format!("unknown value `{text}`"), text, allowed);
                None
            }
        },
        YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::List(_) => {
            cx.wrong_type(node, &or_list(allowed));
            None
        }
    }
}
