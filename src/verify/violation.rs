//! What broke its schema, kept until it is known that it must be told: then its line is looked for in the mapping.

use crate::diagnostics::schema_message;
use crate::diagnostics::{Sources, Span};
use crate::domain::{Scope, Tree};
use crate::engine::pipeline::{Broken, Observer, Sight};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use reframe_json::Breach;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Debug)]
pub struct Culprit {
    /// "the frame `x`", "the body of `x`".
    pub what: String,
    pub schema: String,
    pub why: String,
    /// The frame, body or error that it is a part of.
    pub made: Span,
    breach: Breach,
    data: Tree,
}

/// What breaks a contract: what a frame says, or when it comes.
#[derive(Clone, Debug)]
pub enum Wrong {
    Shape(Box<Culprit>),
    /// In a sentence, and whose order it is.
    Order(String, Scope),
}

impl Wrong {
    pub fn seen(sight: &Sight) -> Option<Wrong> {
        match sight {
            Sight::Breach(_, made, broken) => Some(Wrong::Shape(Box::new(Culprit::new(broken, *made)))),
            Sight::OutOfOrder(fault, scope) => Some(Wrong::Order(fault.message.clone(), *scope)),
            Sight::Raw(_) | Sight::Event(..) | Sight::Dropped(..) | Sight::Puzzling(_) | Sight::Late => None,
            Sight::Moment(..) | Sight::Frame(..) | Sight::Body(..) => None,
        }
    }

    pub fn says(&self) -> String {
        match self {
            Wrong::Shape(culprit) => format!("{} breaks its schema: {}", culprit.what, culprit.why),
            Wrong::Order(why, _) => why.clone(),
        }
    }

    /// The frame, body or error; nowhere, where a moment was out of order.
    pub fn made(&self) -> Span {
        match self {
            Wrong::Shape(culprit) => culprit.made,
            Wrong::Order(..) => Span::NOWHERE,
        }
    }

    /// The line that is wrong.
    pub fn place(&self, dialect: &DialectPlan, plan: &Plan) -> Span {
        match self {
            Wrong::Shape(culprit) => culprit.place(dialect, plan),
            Wrong::Order(_, scope) => {
                let origin = plan.written.of(dialect, &plan.sources);
                origin.and_then(|o| o.order(*scope)).unwrap_or(Span::NOWHERE)
            }
        }
    }
}

impl Culprit {
    pub fn new(broken: &Broken, made: Span) -> Culprit {
        let Broken { what, schema, breach, data } = *broken;
        let why = schema_message::with_value(breach, data);
        let (what, schema) = (what.to_owned(), schema.to_owned());
        Culprit { what, schema, why, made, breach: breach.clone(), data: data.clone() }
    }

    pub fn is_like(&self, other: &Culprit) -> bool {
        (&self.schema, &self.why) == (&other.schema, &other.why)
    }

    /// The line that says what is wrong, in whichever file it stands.
    pub fn place(&self, dialect: &DialectPlan, plan: &Plan) -> Span {
        let path: Vec<String> = schema_message::steps(&self.breach.pointer).collect();
        let found = plan.written.of(dialect, &plan.sources).and_then(|origin| match self.breach.keyword.as_str() {
            "required" => {
                let name = self.breach.message.split('"').nth(1).unwrap_or_default();
                origin.lack(self.made, &self.data, &path, name)
            }
            _ => match self.unknown() {
                Some((name, _)) => origin.member(self.made, &self.data, &path, &name),
                None => origin.value(self.made, &self.data, &path),
            },
        });
        found.unwrap_or(self.made)
    }

    /// The member that the schema does not know, and the line that would allow it.
    pub fn unknown(&self) -> Option<(String, String)> {
        if !matches!(self.breach.keyword.as_str(), "additionalProperties" | "unevaluatedProperties") {
            return None;
        }
        let owner = schema_message::at(&self.data, &self.breach.pointer)?;
        let message = &self.breach.message;
        let (name, value) = owner.as_map()?.iter().find(|(name, _)| message.contains(&format!("'{name}'")))?;
        let kind = match value {
            Tree::Num(n) if n.as_i64().is_some() => "integer",
            other => other.type_name(),
        };
        Some((name.to_string(), format!("\"{name}\": {{ \"type\": \"{kind}\" }}")))
    }
}

/// Remembers what broke first.
#[derive(Clone, Default)]
pub struct First(Arc<Mutex<Option<Wrong>>>);

impl First {
    pub fn taken(&self) -> Option<Wrong> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Observer for First {
    fn see(&mut self, sight: Sight) {
        if let Some(wrong) = Wrong::seen(&sight) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(wrong);
        }
    }
}

/// Does this stand in a profile?
pub fn in_profile(span: Span, sources: &Sources) -> bool {
    sources.get(span.file).is_some_and(|s| s.name.starts_with("profiles/"))
}
