//! Finds the frame of a dialect that a captured frame corresponds to, and validates it against the schema of that
//! frame.

use super::reader::CapturedEvent;
use crate::diagnostics::did_you_mean;
use crate::domain::{MomentKind, Tree};
use crate::engine::render::{Scope, render};
use crate::mapping::config::dialect::{DialectPlan, FrameContent, NamedSchema, ValidatedSkeleton};
use crate::mapping::language::expression::Expression;
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::skeleton::Skeleton;
use reframe_json::SchemaViolation;
use std::sync::Arc;

/// All frames that a dialect can send.
pub struct DialectShapes<'p> {
    dialect: &'p DialectPlan,
    frames: Vec<FrameShape<'p>>,
    texts: Vec<Text<'p>>,
    /// The member that contains the name of the frame.
    name_member: Option<&'p str>,
}

struct FrameShape<'p> {
    name: &'p str,
    event: Option<&'p str>,
    skeleton: Option<&'p Skeleton>,
    schema: Option<&'p NamedSchema>,
}

impl FrameShape<'_> {
    /// A frame without the members of `base:` need not contain its name, although the others of its dialect do.
    fn is_unnamed(&self) -> bool {
        self.skeleton.is_some_and(|skeleton| name_member(skeleton).is_none())
    }
}

/// A frame that is not JSON, such as the terminator of a stream.
struct Text<'p> {
    text: String,
    event: Option<&'p str>,
    moment: MomentKind,
}

/// How well a capture fits a dialect: the number of frames that a schema accepts, then of known members.
pub type Fit = (usize, usize);

/// A problem of one frame.
#[derive(Debug)]
pub enum FrameProblem {
    Schema(SchemaViolation),
    Other(String),
}

impl<'p> DialectShapes<'p> {
    pub fn of(dialect: &'p DialectPlan) -> DialectShapes<'p> {
        let mut shapes = DialectShapes { dialect, frames: Vec::new(), texts: Vec::new(), name_member: None };
        for moment in MomentKind::ALL {
            for plan in dialect.frames(*moment) {
                let event = plan.event.as_deref();
                match &plan.content {
                    FrameContent::Data(data) => {
                        let schema = plan.schema.as_ref();
                        shapes.frames.push(FrameShape { name: &plan.name, event, skeleton: Some(data), schema });
                    }
                    FrameContent::Text(Skeleton::Constant(text)) => {
                        let text = scalar_text(text).unwrap_or_default();
                        shapes.texts.push(Text { text, event, moment: *moment });
                    }
                    FrameContent::Text(_) | FrameContent::Comment(_) => {}
                }
            }
        }
        for (name, schema) in &dialect.capture.extra_frames {
            shapes.frames.push(FrameShape { name, event: None, skeleton: None, schema: schema.as_ref() });
        }
        shapes.name_member = shapes.frames.iter().filter_map(|f| f.skeleton).find_map(name_member);
        shapes
    }

    /// The text that terminates a stream after `turn.end` or `turn.fail`.
    pub fn terminator(&self, moment: MomentKind) -> Option<&str> {
        self.texts.iter().find(|t| t.moment == moment).map(|t| t.text.as_str())
    }

    /// `None` if this is not a text frame of the dialect.
    pub fn text(&self, captured: &CapturedEvent) -> Option<Result<(), String>> {
        let mut same = self.texts.iter().filter(|t| t.text == captured.text.trim()).peekable();
        let expected = same.peek()?.event;
        if same.any(|t| t.event == captured.event.as_deref()) {
            return Some(Ok(()));
        }
        let expected = expected.map_or("has no event name".to_owned(), |e| format!("has the event name `{e}`"));
        Some(Err(format!("`{}` {expected} in this dialect", captured.text.trim())))
    }

    pub fn frame(&self, data: &Tree, event: Option<&str>) -> Vec<FrameProblem> {
        let other = |text: String| vec![FrameProblem::Other(text)];
        if data.as_map().is_none() {
            return other(format!("a frame must be an object, not of type {}", data.type_name()));
        }
        let mut candidates: Vec<&FrameShape> = self.frames.iter().collect();
        if let Some(member) = self.name_member {
            let name = data.get(member).and_then(Tree::as_str);
            match name {
                Some(name) => candidates.retain(|shape| shape.name == name),
                None => candidates.retain(|shape| shape.is_unnamed()),
            }
            if candidates.is_empty() {
                let Some(name) = name else {
                    return other(format!("`{member}`, the name of the frame, is missing"));
                };
                let known = self.frames.iter().map(|s| s.name);
                let near = did_you_mean(name, known).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
                return other(format!("this dialect has no frame `{name}`{near}"));
            }
        }
        let mut problems = Vec::new();
        let named: Vec<&FrameShape> =
            candidates.iter().copied().filter(|s| self.event(s, data).as_deref() == event).collect();
        match candidates.first().map(|s| self.event(s, data)) {
            _ if !named.is_empty() => candidates = named,
            // A dialect without event names ignores them.
            Some(None) | None => {}
            Some(Some(expected)) => problems.push(FrameProblem::Other(match event {
                Some(event) => format!("the event name is `{event}`, but the data requires `{expected}`"),
                None => "there is no `event:` line before the data".to_owned(),
            })),
        }
        let accepts = |s: &&&FrameShape| s.schema.is_none_or(|n| n.schema.is_valid(data));
        if candidates.iter().any(|s| accepts(&s)) {
            return problems;
        }
        let nearest = candidates.iter().rev().max_by_key(|s| s.skeleton.map_or(0, |k| similarity(k, data)));
        let violation = nearest.and_then(|s| s.schema).and_then(|n| n.schema.check(data).err());
        problems.extend(violation.map(FrameProblem::Schema));
        problems
    }

    pub fn body(&self, data: &Tree) -> Option<SchemaViolation> {
        let [body, error] = [&self.dialect.body, &self.dialect.errors];
        let accepted = |c: &ValidatedSkeleton| c.schema.as_ref().is_none_or(|n| n.schema.is_valid(data));
        if accepted(body) || accepted(error) {
            return None;
        }
        let nearest = if similarity(&error.skeleton, data) > similarity(&body.skeleton, data) { error } else { body };
        nearest.schema.as_ref().and_then(|n| n.schema.check(data).err())
    }

    /// Whether this is an error body.
    pub fn is_error(&self, data: &Tree) -> bool {
        let accepts = |c: &ValidatedSkeleton| c.schema.as_ref().is_some_and(|n| n.schema.is_valid(data));
        !accepts(&self.dialect.body) && accepts(&self.dialect.errors)
    }

    pub fn fit_frame(&self, data: &Tree) -> Fit {
        // A frame without the name, which its dialect allows, is no sign of the dialect.
        let named =
            |s: &FrameShape| self.name_member.is_none_or(|m| data.get(m).and_then(Tree::as_str) == Some(s.name));
        let mut fit = (0, 0);
        for shape in self.frames.iter().filter(|s| named(s)) {
            let accepted = shape.schema.is_some_and(|n| n.schema.is_valid(data));
            fit = fit.max((usize::from(accepted), shape.skeleton.map_or(0, |k| similarity(k, data))));
        }
        fit
    }

    pub fn fit_body(&self, data: &Tree) -> Fit {
        let of = |c: &ValidatedSkeleton| {
            let accepted = c.schema.as_ref().is_some_and(|n| n.schema.is_valid(data));
            (usize::from(accepted), similarity(&c.skeleton, data))
        };
        of(&self.dialect.body).max(of(&self.dialect.errors))
    }

    /// The SSE event name of a frame.
    fn event(&self, shape: &FrameShape, data: &Tree) -> Option<String> {
        if let Some(event) = shape.event {
            return Some(event.to_owned());
        }
        let skeleton = self.dialect.encoding.event.as_ref()?;
        let filled = render(skeleton, &Scope::framing(data, shape.name), &self.dialect.pool).ok()??;
        scalar_text(&filled)
    }
}

/// The member that contains the name of the frame (`{{ frame }}`).
fn name_member(skeleton: &Skeleton) -> Option<&str> {
    let Skeleton::Map(entries) = skeleton else { return None };
    let is_frame = |path: &[Arc<str>]| path.len() == 1 && &*path[0] == "frame";
    let is_name = |s: &Skeleton| match s {
        Skeleton::Placeholder { expression: Expression::Variable(path), .. } => is_frame(&path.0),
        _ => false,
    };
    entries.iter().find(|(_, s)| is_name(s)).map(|(key, _)| &**key)
}

/// How many members of a tree the skeleton also has. An equal constant weighs more than a name.
fn similarity(skeleton: &Skeleton, data: &Tree) -> usize {
    let mut score = 0;
    for (key, value) in data.as_map().unwrap_or(&[]) {
        score += match skeleton {
            Skeleton::Map(entries) => match entries.iter().find(|(k, _)| k == key) {
                Some((_, Skeleton::Constant(constant))) if constant == value && !value.is_null() => 3,
                Some(_) => 1,
                None => 0,
            },
            Skeleton::Constant(Tree::Map(entries)) => usize::from(entries.iter().any(|(k, _)| k == key)),
            _ => 0,
        };
    }
    score
}
