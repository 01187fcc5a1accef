//! Which frame of a dialect a captured one is, and whether it has the shape that its schema wants. All of it is read off
//! the dialect's plan.

use super::reader::Chunk;
use crate::diagnostics::did_you_mean;
use crate::domain::{MomentKind, Tree};
use crate::engine::render::{Scope, render};
use crate::mapping::config::dialect::{Checked, Content, DialectPlan, NamedSchema};
use crate::mapping::language::expression::Expr;
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::skeleton::Skeleton;
use reframe_json::Breach;

/// All that a dialect may send.
pub struct Shapes<'p> {
    dialect: &'p DialectPlan,
    frames: Vec<Shape<'p>>,
    texts: Vec<Text<'p>>,
    /// The member that every frame says its name in.
    member: Option<&'p str>,
}

struct Shape<'p> {
    name: &'p str,
    event: Option<&'p str>,
    skeleton: Option<&'p Skeleton>,
    schema: Option<&'p NamedSchema>,
}

/// A frame that is no JSON, such as the one that ends a stream.
struct Text<'p> {
    text: String,
    event: Option<&'p str>,
    moment: MomentKind,
}

/// How well a capture fits: frames that a schema accepts, then members that are known.
pub type Fit = (usize, usize);

/// What is wrong with the shape of one frame.
#[derive(Debug)]
pub enum Misfit {
    Breach(Breach),
    Other(String),
}

impl<'p> Shapes<'p> {
    pub fn of(dialect: &'p DialectPlan) -> Shapes<'p> {
        let mut shapes = Shapes { dialect, frames: Vec::new(), texts: Vec::new(), member: None };
        for moment in MomentKind::ALL {
            for plan in dialect.frames(*moment) {
                let event = plan.event.as_deref();
                match &plan.content {
                    Content::Data(data) => {
                        let schema = plan.schema.as_ref();
                        shapes.frames.push(Shape { name: &plan.name, event, skeleton: Some(data), schema });
                    }
                    Content::Text(Skeleton::Constant(text)) => {
                        let text = scalar_text(text).unwrap_or_default();
                        shapes.texts.push(Text { text, event, moment: *moment });
                    }
                    Content::Text(_) | Content::Comment(_) => {}
                }
            }
        }
        for (name, schema) in &dialect.capture.also {
            shapes.frames.push(Shape { name, event: None, skeleton: None, schema: schema.as_ref() });
        }
        shapes.member = shapes.frames.iter().filter_map(|f| f.skeleton).find_map(naming_member);
        shapes
    }

    /// The text that ends a stream which ended so: `turn.end` or `turn.fail`.
    pub fn terminator(&self, moment: MomentKind) -> Option<&str> {
        self.texts.iter().find(|t| t.moment == moment).map(|t| t.text.as_str())
    }

    /// `None`: the chunk is no text frame of this dialect.
    pub fn text(&self, chunk: &Chunk) -> Option<Result<(), String>> {
        let mut same = self.texts.iter().filter(|t| t.text == chunk.text.trim()).peekable();
        let wanted = same.peek()?.event;
        if same.any(|t| t.event == chunk.event.as_deref()) {
            return Some(Ok(()));
        }
        let wanted = wanted.map_or("has no event name".to_owned(), |e| format!("is an event called `{e}`"));
        Some(Err(format!("`{}` {wanted} in this dialect", chunk.text.trim())))
    }

    pub fn frame(&self, data: &Tree, event: Option<&str>) -> Vec<Misfit> {
        let other = |text: String| vec![Misfit::Other(text)];
        if data.as_map().is_none() {
            return other(format!("a frame is an object, and this is of type {}", data.type_name()));
        }
        let mut candidates: Vec<&Shape> = self.frames.iter().collect();
        if let Some(member) = self.member {
            let Some(name) = data.get(member).and_then(Tree::as_str) else {
                return other(format!("`{member}` is missing, which says what the frame is"));
            };
            candidates.retain(|shape| shape.name == name);
            if candidates.is_empty() {
                let known = self.frames.iter().map(|s| s.name);
                let near = did_you_mean(name, known).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
                return other(format!("this dialect has no frame called `{name}`{near}"));
            }
        }
        let mut misfits = Vec::new();
        let named: Vec<&Shape> =
            candidates.iter().copied().filter(|s| self.event(s, data).as_deref() == event).collect();
        match candidates.first().map(|s| self.event(s, data)) {
            _ if !named.is_empty() => candidates = named,
            // A dialect without event names has no use for one, and takes no harm.
            Some(None) | None => {}
            Some(Some(wanted)) => misfits.push(Misfit::Other(match event {
                Some(event) => format!("the event is called `{event}`, and its data is a `{wanted}`"),
                None => "there is no `event:` line before the data".to_owned(),
            })),
        }
        let accepts = |s: &&&Shape| s.schema.is_none_or(|n| n.schema.is_valid(data));
        if candidates.iter().any(|s| accepts(&s)) {
            return misfits;
        }
        let nearest = candidates.iter().rev().max_by_key(|s| s.skeleton.map_or(0, |k| likeness(k, data)));
        let breach = nearest.and_then(|s| s.schema).and_then(|n| n.schema.check(data).err());
        misfits.extend(breach.map(Misfit::Breach));
        misfits
    }

    pub fn body(&self, data: &Tree) -> Option<Breach> {
        let [body, error] = [&self.dialect.body, &self.dialect.errors];
        let accepted = |c: &Checked| c.schema.as_ref().is_none_or(|n| n.schema.is_valid(data));
        if accepted(body) || accepted(error) {
            return None;
        }
        let meant = if likeness(&error.skeleton, data) > likeness(&body.skeleton, data) { error } else { body };
        meant.schema.as_ref().and_then(|n| n.schema.check(data).err())
    }

    /// Is this the body of an answer that is an error?
    pub fn is_error(&self, data: &Tree) -> bool {
        let accepts = |c: &Checked| c.schema.as_ref().is_some_and(|n| n.schema.is_valid(data));
        !accepts(&self.dialect.body) && accepts(&self.dialect.errors)
    }

    pub fn fit_frame(&self, data: &Tree) -> Fit {
        let named = |s: &Shape| self.member.is_none_or(|m| data.get(m).and_then(Tree::as_str) == Some(s.name));
        let mut fit = (0, 0);
        for shape in self.frames.iter().filter(|s| named(s)) {
            let accepted = shape.schema.is_some_and(|n| n.schema.is_valid(data));
            fit = fit.max((usize::from(accepted), shape.skeleton.map_or(0, |k| likeness(k, data))));
        }
        fit
    }

    pub fn fit_body(&self, data: &Tree) -> Fit {
        let of = |c: &Checked| {
            let accepted = c.schema.as_ref().is_some_and(|n| n.schema.is_valid(data));
            (usize::from(accepted), likeness(&c.skeleton, data))
        };
        of(&self.dialect.body).max(of(&self.dialect.errors))
    }

    /// What the SSE event of a frame is called.
    fn event(&self, shape: &Shape, data: &Tree) -> Option<String> {
        if let Some(event) = shape.event {
            return Some(event.to_owned());
        }
        let skeleton = self.dialect.wire.event.as_ref()?;
        let filled = render(skeleton, &Scope::framing(data, shape.name), &self.dialect.pool).ok()??;
        scalar_text(&filled)
    }
}

/// The member that is filled with the frame's own name.
fn naming_member(skeleton: &Skeleton) -> Option<&str> {
    let Skeleton::Map(entries) = skeleton else { return None };
    let is_name = |s: &Skeleton| matches!(s, Skeleton::Hole { expr: Expr::Variable(path), .. } if path.0.len() == 1 && &*path.0[0] == "frame");
    entries.iter().find(|(_, s)| is_name(s)).map(|(key, _)| &**key)
}

/// How many members of a tree a skeleton has, too; a constant that is the same tells more than a name.
fn likeness(skeleton: &Skeleton, data: &Tree) -> usize {
    let mut like = 0;
    for (key, value) in data.as_map().unwrap_or(&[]) {
        like += match skeleton {
            Skeleton::Map(entries) => match entries.iter().find(|(k, _)| k == key) {
                Some((_, Skeleton::Constant(constant))) if constant == value && !value.is_null() => 3,
                Some(_) => 1,
                None => 0,
            },
            Skeleton::Constant(Tree::Map(entries)) => usize::from(entries.iter().any(|(k, _)| k == key)),
            _ => 0,
        };
    }
    like
}
