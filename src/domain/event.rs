//! Events: what a backend did, in the gateway's own closed vocabulary.

use super::emit::{EmitField, EmitSpec, EmittedFields, emissions, emit_group, into_text, specs, take};
use super::request_item::Derived;
use super::{Fault, Finish, Logprobs, Merge, Tree, Usage, named_enum};
use reframe_json::SurrogateString;

emissions! {
    /// An event of a backend in normalized form: the closed list that the rules of every backend emit.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event, EventKind, EVENTS {
        noun: "event",
        skip_empty: true,

        /// Metadata of the response. Before the turn opens, `model` replaces the requested model.
        Start = "start" { id: Option<String>, model: Option<String>, created: Option<i64> } if id | model | created;

        /// A text delta. `whole` is a snapshot of the text so far; only its new suffix is emitted.
        Text = "text" { choice: usize = 0, item: Option<String>, part: Option<usize>, delta: Delta } if delta | whole;

        /// A refusal delta. `whole` is a snapshot of the refusal so far.
        Refusal = "refusal" {
            choice: usize = 0, item: Option<String>, part: Option<usize>, delta: Delta,
        } if delta | whole;

        /// A reasoning delta. `part` is the index of the summary.
        Reasoning = "reasoning" {
            choice: usize = 0,
            item: Option<String>,
            kind: ReasoningKind = ReasoningKind::Raw,
            part: Option<usize>,
            delta: Option<Delta>,
            encrypted: Option<String>,
        } if delta | whole | encrypted;

        /// A citation. `value` is any JSON, for data without a field of its own.
        Annotation = "annotation" {
            choice: usize = 0, item: Option<String>, annotation: Annotation,
        } if url | file | value;

        /// The log-probabilities of the next text delta: a list of objects with `token`, `logprob`, `bytes` and
        /// `top_logprobs`.
        Logprobs = "logprobs" { choice: usize = 0, item: Option<String>, logprobs as "value": Logprobs } if value;

        /// A delta of a tool call. `key` is the backend's identifier of the call, such as an index. A
        /// `legacy` call waits until the finish, and is ignored if the choice has other calls.
        Tool = "tool" {
            choice: usize = 0,
            key: Option<String>,
            id: Option<String>,
            name: Option<String>,
            kind: Option<CallKind>,
            by: Derived<CallIdentity>,
            legacy: bool = false,
            literal: Derived<Option<String>>,
            delta: Option<Delta>,
        } if id | name | delta | whole;

        /// The calls with these ids are complete.
        Batch = "batch" { choice: usize = 0, ids: Vec<String> } if ids;

        /// The backend waits for the results of the calls so far: a choice with calls is finished with `tool_calls`.
        /// Without a call it has no effect.
        AwaitResults = "await_results" { choice: usize = 0 };

        /// The item, or the call (by key or id), is complete; without either, all calls of the choice.
        Close = "close" { choice: usize = 0, item: Option<String>, key: Option<String> };

        /// Token counts, as far as the backend reports them. `trigger` is a word for what reported them
        /// (`turn.usage_trigger`).
        Usage = "usage" {
            usage: Usage, merge: Merge = Merge::Replace, trigger: Option<String>,
        } if input | output | total | cached | cache_write | reasoning;

        /// Keys of metadata. Lines of the text that begin with one of them are removed, if the client's dialect removes
        /// metadata lines. `source` is a word for where they were found (`summary.metadata_sources` of a log).
        MetadataKeys = "metadata_keys" { keys: Vec<String>, source: Option<String> } if keys;

        /// A vendor field of the response, or of a choice: `turn.extra.NAME`, `choice.extra.NAME`. A later value replaces
        /// an earlier one.
        Extra = "extra" { choice: Option<usize>, name: String, value: Tree } if value;

        /// The finish reason of a choice. Without `choice` it finishes all open choices. `other` is the backend's word,
        /// for a reason that is not known: the policy `unknown_finish` applies if `reason` has no value.
        Finish = "finish" { choice: Option<usize>, reason: Option<Finish>, other: Option<String> } if reason | other;

        /// A sign of the finish reason, before the finish. A `strong` one replaces the reason of the finish; a `weak` one
        /// counts if the finish has no known reason. Of several, the first counts.
        FinishHint = "finish_hint" {
            choice: Option<usize>, reason: Option<Finish>, strength: HintStrength = HintStrength::Weak,
        } if reason;

        /// An error. `final: false` means that the backend continues after it.
        Fault = "fault" { fault: Fault, is_final as "final": bool = true };

        /// The end of the stream. Not needed if the framing has an end marker or the bytes end.
        End = "end";
    }
}

/// New text or arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// New text.
    Append(String),
    /// New text that begins or ends with half a character; the other half is in the previous or the next delta.
    AppendSurrogates(SurrogateString),
    /// The full text so far, of which only the new suffix is emitted.
    Snapshot(String),
}

impl Delta {
    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Delta::Append(text) | Delta::Snapshot(text) => text.len(),
            Delta::AppendSurrogates(text) => text.to_string_lossy().len(),
        }
    }
}

impl EmitField for Delta {
    const SPEC: EmitSpec = EmitSpec::Group(specs!(delta: String, whole: String));

    fn take(_: &str, fields: &mut EmittedFields) -> Option<Delta> {
        match take("delta", fields) {
            Some(Tree::SurrogateString(text)) => Some(Delta::AppendSurrogates(*text)),
            Some(text) => into_text(text).map(Delta::Append),
            None => take("whole", fields).and_then(into_text).map(Delta::Snapshot),
        }
    }
}

named_enum! {
    /// What an annotation refers to.
    pub enum AnnotationKind {
        Url = "url",
        File = "file",
        Other = "other",
    }
}

emit_group! {
    /// A citation.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Annotation {
        kind: Option<AnnotationKind>,
        url: Option<String>,
        title: Option<String>,
        file: Option<String>,
        name: Option<String>,
        start: Option<i64>,
        end: Option<i64>,
        index: Option<i64>,
        value: Option<Tree>,
    }
}

impl Annotation {
    /// The memory of its texts and its JSON, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let texts = [&self.url, &self.title, &self.file, &self.name];
        texts.map(text_bytes).iter().sum::<usize>() + self.value.as_ref().map_or(0, Tree::heap_bytes)
    }
}

named_enum! {
    pub enum CallKind {
        Function = "function",
        Custom = "custom",
    }
}

named_enum! {
    /// What identifies a tool call of a backend.
    pub enum CallIdentity {
        /// The id: another id is another call. So is the same id with another key or another name.
        Id = "id",
        /// The key alone, for backends that send another id with every delta.
        Key = "key",
    }
}

#[allow(clippy::derivable_impls, reason = "`named_enum!` declares the enum, and no default")]
impl Default for CallIdentity {
    fn default() -> Self {
        CallIdentity::Id
    }
}

named_enum! {
    /// Which of two sources of a finish reason counts.
    pub enum HintStrength {
        Weak = "weak",
        Strong = "strong",
    }
}

named_enum! {
    pub enum ReasoningKind {
        Summary = "summary",
        Raw = "raw",
    }
}

impl Event {
    /// The memory of its content, in bytes, besides the event itself: of the events that a turn may hold back.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Event::Text { item, delta, .. } | Event::Refusal { item, delta, .. } => text_bytes(item) + delta.len(),
            Event::Reasoning { item, delta, encrypted, .. } => {
                text_bytes(item) + text_bytes(encrypted) + delta.as_ref().map_or(0, Delta::len)
            }
            Event::Annotation { item, annotation, .. } => text_bytes(item) + annotation.heap_bytes(),
            Event::Logprobs { item, logprobs, .. } => text_bytes(item) + logprobs.heap_bytes(),
            Event::Tool { .. } | Event::Batch { .. } | Event::AwaitResults { .. } | Event::Close { .. } => 0,
            Event::Start { .. } | Event::Usage { .. } | Event::Extra { .. } | Event::Finish { .. } => 0,
            Event::MetadataKeys { .. } | Event::FinishHint { .. } | Event::Fault { .. } | Event::End => 0,
        }
    }

    /// One line for `explain` and test reports.
    pub fn summary(&self) -> String {
        let delta = |p: &Delta| match p {
            Delta::Append(t) => quote(t),
            Delta::AppendSurrogates(t) => quote(&t.to_string_lossy()),
            Delta::Snapshot(t) => format!("whole {}", quote(t)),
        };
        match self {
            Event::Start { model, .. } => format!("start {}", model.as_deref().unwrap_or("")),
            Event::Text { delta: p, .. } => format!("text {}", delta(p)),
            Event::Refusal { delta: p, .. } => format!("refusal {}", delta(p)),
            Event::Reasoning { kind, delta: p, .. } => {
                format!("reasoning {} {}", kind.name(), p.as_ref().map(delta).unwrap_or_default())
            }
            Event::Annotation { .. } => "annotation".into(),
            Event::Logprobs { .. } => "logprobs".into(),
            Event::Tool { name, delta: p, .. } => format!(
                "tool {}{}",
                name.as_deref().map(|n| format!("{n} ")).unwrap_or_default(),
                p.as_ref().map(delta).unwrap_or_default()
            ),
            Event::Batch { ids, .. } => format!("batch of {}", ids.len()),
            Event::AwaitResults { .. } => "await results".into(),
            Event::Close { item, key, .. } => {
                format!("close {}", item.as_deref().or(key.as_deref()).unwrap_or(""))
            }
            Event::Usage { usage, .. } => {
                format!("usage {}+{}", usage.input.unwrap_or(0), usage.output.unwrap_or(0))
            }
            Event::MetadataKeys { keys, .. } => format!("metadata keys {}", keys.join(" ")),
            Event::Extra { name, .. } => format!("extra {name}"),
            Event::Finish { reason: Some(reason), .. } => format!("finish {}", reason.name()),
            Event::FinishHint { reason, strength, .. } => {
                format!("finish hint {} {}", strength.name(), reason.map_or("", Finish::name))
            }
            Event::Finish { other, .. } => format!("finish {:?}", other.as_deref().unwrap_or_default()),
            Event::Fault { fault, is_final } => {
                format!("fault {}{}", quote(&fault.message), if *is_final { "" } else { " (goes on)" })
            }
            Event::End => "end".into(),
        }
        .trim_end()
        .to_owned()
    }
}

fn text_bytes(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, |text| text.len() + Tree::ALLOCATION_BYTES)
}

/// At most 16 characters, for a column in a table.
pub fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(16).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// How the backend's stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// By the framing's end marker.
    Marker,
    /// At the end of the bytes.
    Eof,
    /// The connection was lost; the reason.
    Disconnected(String),
}
