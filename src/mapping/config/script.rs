//! A script: which transcript the replay backend plays for which request. The first matching step is played.

use super::transcript::Transcript;
use crate::diagnostics::{Code, Diagnostic, or_list};
use crate::domain::variables;
use crate::mapping::grammar::collections::NonEmptyList;
use crate::mapping::grammar::notation::{Count, Spanned, notation_schema, one_of};
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::grammar::{At, FromNode, Required, section};
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Node, YamlKind};
use schemars::json_schema;
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug)]
pub struct ScriptPlan {
    pub name: String,
    pub steps: Vec<ScriptStep>,
    pub pool: ExpressionPool,
}

impl ScriptPlan {
    /// The transcripts that it can play.
    pub fn transcripts(&self) -> impl Iterator<Item = &Transcript> {
        self.steps.iter().filter_map(|step| match &step.action {
            ScriptAction::Play { transcript, .. } => Some(&**transcript),
            ScriptAction::Reject { .. } => None,
        })
    }
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

section! {
    /// A script decides which transcript a replay backend plays for a request.
    #[subject = "a script"]
    #[title = "a script"]
    pub struct Script<'n> {
        /// Its name.
        script: String,
        /// The time between two events.
        pace: ReplayPace = ReplayPace::None,
        /// The first step with a true `when:` is used. The last step has no `when:`, so that every request has
        /// something to play.
        steps: Required<NonEmptyList<StepEntry<'n>>>,
    }
}

section! {
    /// A step has exactly one of `play` and `reject`.
    #[subject = "a step"]
    #[title = "script step"]
    #[exactly_one("play", "reject")]
    pub struct StepEntry<'n> {
        /// A condition. It sees `request`.
        when: Option<Spanned<ExpressionNode<'n>>>,
        /// The name of a transcript.
        play: Option<Spanned<String>>,
        /// Rejects the request with a 400.
        reject: Option<Reject>,
        /// The time between two events. Default: the script's.
        pace: Option<ReplayPace>,
    }
}

section! {
    /// The error for a request that is rejected.
    #[subject = "`reject:`"]
    pub struct Reject {
        /// The error message.
        message: String,
        /// The member of the request that is at fault.
        param: Option<String>,
    }
}

section! {
    /// A fixed pace.
    #[subject = "`pace:`"]
    pub struct FixedPace {
        /// Milliseconds between two events.
        fixed: Count,
    }
}

pub fn parse(node: &Node, known: &KnownTranscripts, cx: LoadContext) -> Option<ScriptPlan> {
    let script = Script::from_file(node, cx)?;
    let pool = ExpressionPoolBuilder::new(Tables::default());
    let scope = VariableScope::new("a script", [variables::REQUEST]);
    let mut steps = Vec::new();
    if let Some(when) = script.steps.last().and_then(|last| last.when) {
        cx.add(
            Diagnostic::new(Code::UnknownKey, when.key_span, "the last step of a script cannot have `when:`")
                .help("it applies to every request that no earlier step matched"),
        );
    }
    for entry in script.steps.0 {
        let when = entry.when.map(|when| pool.add(text_of(when.0, cx)?, when.span, &scope, cx));
        let action = ScriptAction::new(entry.play, entry.reject, entry.pace.unwrap_or(script.pace), known, cx);
        let when = match when {
            Some(None) => continue,
            other => other.flatten().map(|(expression, _)| expression),
        };
        steps.extend(action.map(|action| ScriptStep { when, action }));
    }
    Some(ScriptPlan { name: script.script, steps, pool: pool.build() })
}

impl ScriptAction {
    fn new(
        play: Option<Spanned<String>>,
        reject: Option<Reject>,
        pace: ReplayPace,
        known: &KnownTranscripts,
        cx: LoadContext,
    ) -> Option<ScriptAction> {
        if let Some(Reject { message, param }) = reject {
            return Some(ScriptAction::Reject { param, message });
        }
        let name = play?;
        let found = known.transcripts.iter().find(|t| t.name == name.value);
        if found.is_none() && !known.unreadable.contains(&name.value) {
            let message = format!("unknown transcript `{}`", name.value);
            let names = known.transcripts.iter().map(|t| t.name.as_str());
            cx.unknown(Code::UnknownReference, name.span, message, &name, names);
        }
        found.map(|transcript| ScriptAction::Play { transcript: transcript.clone(), pace })
    }
}

const PACES: &[&str] = &["none", "recorded"];

/// `none`, `recorded`, or `{ fixed: 20 }` (milliseconds).
impl<'n> FromNode<'n> for ReplayPace {
    fn from_node(node: &'n Node, at: At) -> Option<ReplayPace> {
        let allowed = PACES.iter().copied().chain(["{ fixed: MILLISECONDS }"]);
        match &node.kind {
            YamlKind::Map(_) => FixedPace::from_node(node, at).map(|pace| ReplayPace::Fixed(pace.fixed.0 as u64)),
            YamlKind::Text(text) => match text.as_str() {
                "none" => Some(ReplayPace::None),
                "recorded" => Some(ReplayPace::Recorded),
                _ => {
                    at.cx.unknown(Code::UnknownValue, node.span, format!("unknown value `{text}`"), text, allowed);
                    None
                }
            },
            YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::List(_) => {
                at.cx.wrong_type(node, &or_list(allowed));
                None
            }
        }
    }

    fn shown(&self) -> Option<Value> {
        Some(PACES[0].into())
    }
}

notation_schema!(ReplayPace, |generator| {
    json_schema!({
        "title": "`none`, `recorded`, or `{ fixed: MILLISECONDS }`",
        "if": { "type": "object" }, "then": generator.subschema_for::<FixedPace>(), "else": one_of(PACES),
    })
});
