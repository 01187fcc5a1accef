//! Extras: the parts of a backend's response that a client can do without. Text, calls and the finish are no extras: the
//! client was promised them.

use super::{Annotation, AnnotationKind, Event, EventKind, named_enum};

named_enum! {
    /// A kind of extra, as in metrics and logs.
    pub enum ExtraKind {
        Metadata = "metadata",
        Reasoning = "reasoning",
        Annotation = "annotation",
        Logprobs = "logprobs",
        Usage = "usage",
    }
}

/// An extra that is malformed: dropped, or a fault, by the policy `malformed_extras`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedExtra {
    pub kind: ExtraKind,
    /// What is wrong with which value, without its content.
    pub detail: String,
}

impl ExtraKind {
    /// The kind of extra that an event is; `None` for what a client was promised.
    pub fn of(event: EventKind) -> Option<ExtraKind> {
        match event {
            EventKind::Start | EventKind::Extra | EventKind::MetadataKeys => Some(ExtraKind::Metadata),
            EventKind::Reasoning => Some(ExtraKind::Reasoning),
            EventKind::Annotation => Some(ExtraKind::Annotation),
            EventKind::Logprobs => Some(ExtraKind::Logprobs),
            EventKind::Usage => Some(ExtraKind::Usage),
            EventKind::Text | EventKind::Refusal | EventKind::Tool | EventKind::Batch | EventKind::Close => None,
            EventKind::AwaitResults | EventKind::FinishHint | EventKind::Finish | EventKind::Fault | EventKind::End => {
                None
            }
        }
    }
}

impl Event {
    /// What is wrong with the event, if it is an extra that was read and is malformed nevertheless.
    pub fn malformed_extra(&self) -> Option<MalformedExtra> {
        let detail = match self {
            Event::Logprobs { logprobs, .. } if logprobs.malformed > 0 => {
                let values = if logprobs.malformed == 1 { "value" } else { "values" };
                format!("{} malformed {values}", logprobs.malformed)
            }
            Event::Annotation { annotation, .. } => annotation.mistake()?.to_owned(),
            _ => return None,
        };
        Some(MalformedExtra { kind: ExtraKind::of(self.kind())?, detail })
    }
}

impl Annotation {
    /// Why clients cannot use the citation: it needs what is cited, and where in the text.
    fn mistake(&self) -> Option<&'static str> {
        let is_position = |position: &Option<i64>| position.is_none_or(|at| u32::try_from(at).is_ok());
        if ![self.start, self.end, self.index].iter().all(is_position) || self.start > self.end {
            return Some("a citation with an impossible position");
        }
        match self.kind {
            Some(AnnotationKind::Url) if self.url.is_none() => Some("a citation without a URL"),
            Some(AnnotationKind::Url) if self.start.is_none() || self.end.is_none() => {
                Some("a citation without a position")
            }
            Some(AnnotationKind::File) if self.file.is_none() => Some("a citation without a file"),
            Some(AnnotationKind::Url | AnnotationKind::File | AnnotationKind::Other) | None => None,
        }
    }
}
