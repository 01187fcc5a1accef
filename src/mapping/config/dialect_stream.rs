//! A dialect's `stream:`: framing, frames by moment, order.

use super::dialect::{Compiler, DisabledFrame, FrameContent, FramePlan, SchemaOf, StreamEncoding};
use super::dialect_order;
use super::dialect_order::OrderSection;
use super::event_name::EventName;
use super::stream_headers::StreamHeaders;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::variables::{self, variables_at};
use crate::domain::{MomentKind, NamedEnum, Scope, SentItems, StreamFormat, Tree, named_enum};
use crate::mapping::grammar::collections::Entries;
use crate::mapping::grammar::notation::{LINE_BREAKS, NameOf, Spanned, closed, exactly_one, notation_schema, or_null};
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::grammar::{Named, Required, Section, section};
use crate::mapping::language::cacheable::is_cacheable;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::items_sent::items_sent;
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::state_read::StateRead;
use crate::mapping::language::variables_read::VariablesRead;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use crate::order::Orders;
use schemars::Schema;
use serde_json::{Value, json};
use std::sync::Arc;

/// The keys that hold the content of a frame. A frame has exactly one of them.
const CONTENT_KEYS: [&str; 3] = ["data", "text", "comment"];

pub(super) struct StreamPlan {
    pub encoding: StreamEncoding,
    /// By moment.
    pub frames: Vec<Vec<FramePlan>>,
    pub disabled_frames: Vec<DisabledFrame>,
    pub orders: Orders,
}

impl StreamPlan {
    /// The kinds of items that the frames send, or the body lists.
    pub fn items_sent(&self, body: &Skeleton) -> SentItems {
        let has_frames = |moment: MomentKind| self.frames.get(moment as usize).is_some_and(|frames| !frames.is_empty());
        items_sent(has_frames, self.frames.iter().flatten().map(|frame| frame.content.skeleton()).chain([body]))
    }

    /// What the frames read of the state of a turn. The frames of a call send it themselves.
    pub fn reads(&self) -> StateRead {
        let by_moment = MomentKind::ALL.iter().zip(&self.frames);
        let of_frame = |moment: MomentKind, frame: &FramePlan| {
            let skeleton = frame.content.skeleton();
            let sends_call = matches!(moment, MomentKind::ToolOpen | MomentKind::ToolArgs | MomentKind::ToolClose);
            let read = StateRead::of(frame.when.as_ref(), skeleton);
            // Only a frame that opens a call decides what is sent with it.
            StateRead { args: read.args && moment == MomentKind::ToolOpen, ..read }
                .or(StateRead { calls: sends_call, ..StateRead::default() })
        };
        by_moment
            .flat_map(|(moment, frames)| frames.iter().map(|frame| of_frame(*moment, frame)))
            .fold(StateRead::default(), StateRead::or)
    }
}

/// Whether policies enable a frame.
enum FrameState {
    Enabled,
    Disabled,
}

section! {
    /// The frames of a stream.
    #[subject = "`stream:`"]
    #[title = "stream"]
    #[transform = order_is_required]
    pub struct StreamSection<'n> {
        /// How frames are encoded.
        framing: Required<Option<FramingSection<'n>>>,
        /// The schema of frames that name none.
        schema: Option<Spanned<String>>,
        /// The keys that every data frame begins with. A key of the frame itself overrides them.
        #[extend("type" = "object")]
        base: Option<SkeletonNode<'n>>,
        /// Moments to named frames, in the order in which they are sent.
        frames: Required<Entries<'n, FramesByMoment>>,
        /// A regular expression over moments for each scope. Every moment with frames must be mentioned in one of them,
        /// except `turn.fail` and `idle`.
        order: Option<OrderSection>,
    }
}

fn order_is_required(schema: &mut Schema) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.push("order".into());
    }
}

section! {
    /// How frames are encoded.
    #[subject = "`framing:`"]
    #[title = "framing"]
    pub struct FramingSection<'n> {
        /// The format of the stream.
        format as "as": NameOf<StreamFormat> = NameOf(StreamFormat::Sse),
        /// The format of a frame's data.
        data: NameOf<DataFormat> = NameOf(DataFormat::Json),
        /// The SSE event name of data frames. It sees `data`, the rendered frame, and `frame`, its name.
        event: Option<SkeletonNode<'n>>,
        /// The content type of the stream. Default: that of the format.
        content_type: Option<String>,
        /// Further headers of the stream, with constant values. Default: those that keep proxies from buffering and
        /// transforming it. `connection` is sent over HTTP/1.1 only.
        headers: Option<StreamHeaders>,
    }
}

named_enum! {
    /// The format of a frame's data.
    pub enum DataFormat {
        Json = "json",
    }
}

section! {
    /// One frame. It has exactly one of `data`, `text` and `comment`.
    #[subject = Named("the frame")]
    #[title = "frame"]
    #[extend("oneOf" = exactly_one(CONTENT_KEYS))]
    pub struct FrameEntry<'n> {
        /// A condition; the frame is sent only if it is true.
        when: Option<ExpressionNode<'n>>,
        /// The SSE event name: a constant that overrides the framing's.
        event: Option<Spanned<String>>,
        /// The schema, if it is neither the stream's nor called like the frame.
        schema: Option<Spanned<String>>,
        /// Whether the frame begins with the keys of `stream.base`.
        base: bool = true,
        /// Of a frame of `idle`: it is also sent before the first frame of the stream, where it replaces the keepalive
        /// comment.
        before_open: Option<Spanned<bool>>,
        /// A JSON frame, checked against its schema.
        data: Option<Spanned<SkeletonNode<'n>>>,
        /// A bare text: a terminator.
        text: Option<Spanned<SkeletonNode<'n>>>,
        /// An SSE comment; no output in NDJSON.
        comment: Option<Spanned<SkeletonNode<'n>>>,
    }
}

/// Moments to named frames.
#[derive(Clone, Copy, Debug)]
pub struct FramesByMoment;

notation_schema!(FramesByMoment, |generator| {
    let frame = generator.subschema_for::<FrameEntry>();
    let moment = |(moment, about): (&&str, &&str)| {
        let frames = json!({ "type": "object", "additionalProperties": frame, "description": about });
        ((*moment).to_owned(), frames)
    };
    or_null(closed(MomentKind::NAMES.iter().zip(MomentKind::VALUE_DESCRIPTIONS).map(moment).collect()))
});

impl Compiler<'_, '_> {
    pub(super) fn stream(&self, node: &Node) -> Option<StreamPlan> {
        let cx = self.context.cx;
        let fields = StreamSection::open(node, "stream", cx)?;
        let section = StreamSection::read_fields(&fields)?;
        // An `order:` that is indented too deep is reported as an unknown moment.
        if section.frames.iter().all(|entry| entry.key != "order") {
            fields.required("order");
        }
        fields.finish();
        let encoding = section.framing.0.as_ref().and_then(|framing| self.encoding(framing));
        let base = section.base.map(|base| base.0);
        let mut frames: Vec<Vec<FramePlan>> = MomentKind::ALL.iter().map(|_| Vec::new()).collect();
        let (mut framed, mut disabled_frames) = (Vec::new(), Vec::new());
        for entry in section.frames.items {
            let Some(moment) = MomentKind::from_name(&entry.key) else {
                dialect_order::report_unknown_moment(&entry.key, entry.key_span, cx);
                continue;
            };
            framed.push((moment, entry.key_span));
            let article = if entry.key.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            let description = format!("{article} `{}` frame", entry.key);
            let scope = VariableScope::new(description, variables_at(moment)).policies(self.policies.clone());
            let YamlKind::Map(entries) = &entry.value.kind else {
                cx.wrong_type(&entry.value, "frames by name");
                continue;
            };
            for frame in entries {
                match self.frame(frame, base, section.schema.as_ref(), &scope) {
                    Some((plan, FrameState::Enabled)) if plan.before_open && moment != MomentKind::Idle => {
                        let span = frame.value.get("before_open").map_or(frame.key_span, |node| node.span);
                        let message = format!("a `{}` frame cannot be sent before the first frame", entry.key);
                        let help = "`before_open` is for frames of the moment `idle`";
                        cx.add(Diagnostic::new(Code::BadFrame, span, message).help(help));
                    }
                    Some((mut plan, FrameState::Enabled)) => {
                        plan.ordinal = frames.iter().map(Vec::len).sum();
                        plan.cacheable &= moment.is_delta();
                        plan.is_counted = match &plan.content {
                            FrameContent::Text(_) | FrameContent::Comment(_) => false,
                            FrameContent::Data(data) => {
                                let reads = || VariablesRead::of(plan.when.as_ref(), data);
                                moment != MomentKind::Idle || reads().given.iter().any(|path| path == "seq")
                            }
                        };
                        frames[moment as usize].push(plan);
                    }
                    Some((FramePlan { span, policies, .. }, FrameState::Disabled)) => {
                        disabled_frames.push(DisabledFrame { moment, span, policies });
                    }
                    None => {}
                }
            }
        }
        let orders = match section.order {
            // A moment that seems to be missing may be listed under a misspelled scope.
            Some(order) => {
                let scopes = node.get("order").and_then(Node::as_map).unwrap_or(&[]);
                let all_known = scopes.iter().all(|e| Scope::from_name(&e.key).is_some());
                dialect_order::compile(order, if all_known { &framed } else { &[] }, cx)
            }
            None => Orders::default(),
        };
        let encoding = encoding?;
        for plan in frames.iter_mut().flatten() {
            plan.event_name = EventName::of(plan, &encoding);
        }
        Some(StreamPlan { encoding, frames, disabled_frames, orders })
    }

    fn encoding(&self, framing: &FramingSection) -> Option<StreamEncoding> {
        let format = framing.format.0;
        let content_type = framing.content_type.as_deref().unwrap_or(match format {
            StreamFormat::Sse => "text/event-stream; charset=utf-8",
            StreamFormat::Ndjson => "application/x-ndjson",
        });
        let scope = self.scope("`framing:`", [variables::DATA, variables::FRAME]);
        let event = match framing.event {
            Some(SkeletonNode(node)) if self.has_line_break(node.as_text(), node.span, "event name") => return None,
            Some(SkeletonNode(node)) => Some(self.skeletons.compile(node, &scope)?),
            None => None,
        };
        let headers = framing.headers.clone().unwrap_or_default().0;
        Some(StreamEncoding { format, content_type: content_type.to_owned(), headers, event })
    }

    /// `schema`: the schema of all frames of the stream, if they have one.
    fn frame(
        &self,
        entry: &Entry,
        base: Option<&Node>,
        schema: Option<&Spanned<String>>,
        scope: &VariableScope,
    ) -> Option<(FramePlan, FrameState)> {
        let cx = self.context.cx;
        // Discard the policies that other frames read.
        self.skeletons.pool.take_policies_read();
        let fields = FrameEntry::open(&entry.value, &entry.key, cx)?;
        let frame = FrameEntry::read_fields(&fields)?;
        let when = match frame.when {
            Some(ExpressionNode(node)) => Some(self.skeletons.condition(node, scope)?),
            None => None,
        };
        // A frame that policies disable is not part of the plan, but it is checked all the same.
        let condition_policies = self.skeletons.pool.take_policies_read();
        let is_off = when.as_ref().and_then(|w| self.skeletons.pool.constant_value(w)) == Some(Tree::Bool(false));
        if let Some(event) = frame.event.as_ref().filter(|event| event.contains("{{")) {
            cx.add(
                Diagnostic::new(Code::BadPlaceholder, event.span, "the `event:` of a frame must be plain text")
                    .help("for a name that depends on the frame, use `framing: { event: … }`"),
            );
            return None;
        }
        let (data, text, comment) = (frame.data, frame.text, frame.comment);
        let content_span = data.or(text).or(comment).map(|content| content.key_span);
        let own_schema = frame.schema.as_ref().or(schema);
        let (content, schema) = match (data, text, comment) {
            (Some(data), None, None) => {
                let skeleton = self.with_base(base.filter(|_| frame.base), data.0, scope)?;
                let schema = match own_schema {
                    _ if is_off => None,
                    Some(name) => self.schema(name, SchemaOf::Frame, name.span),
                    None => self.schema(&entry.key, SchemaOf::Frame, entry.key_span),
                };
                (FrameContent::Data(skeleton), schema)
            }
            (None, Some(text), None) => (FrameContent::Text(self.skeletons.compile(text.0, scope)?), None),
            (None, None, Some(comment)) => (FrameContent::Comment(self.skeletons.compile(comment.0, scope)?), None),
            (None, None, None) => {
                let message = format!("the frame `{}` has no content", entry.key);
                let help = "a frame has exactly one of `data:`, `text:` and `comment:`";
                let diagnostic = Diagnostic::new(Code::BadFrame, entry.key_span, message).help(help);
                fields.not_exactly_one(&CONTENT_KEYS, diagnostic);
                fields.finish();
                return None;
            }
            _ => {
                let present: Vec<&str> = CONTENT_KEYS.into_iter().filter(|k| entry.value.get(k).is_some()).collect();
                let message = format!("the frame `{}` has both `{}:`", entry.key, present.join(":` and `"));
                let help = "a frame has exactly one of `data:`, `text:` and `comment:`; use two frames";
                cx.add(Diagnostic::new(Code::BadFrame, entry.key_span, message).help(help));
                return None;
            }
        };
        let lines = [(text, "text"), (comment, "comment")];
        let mut lines = lines.into_iter().filter_map(|(content, what)| content.map(|c| (c.0.as_text(), c.span, what)));
        let event = frame.event.as_ref().map(|event| (Some(event.as_str()), event.span, "event name"));
        if lines.by_ref().chain(event).any(|(text, span, what)| self.has_line_break(text, span, what)) {
            return None;
        }
        fields.finish();
        let name = Arc::from(entry.key.as_str());
        let event = frame.event.map(|event| event.value);
        let cacheable = matches!(&content, FrameContent::Data(data) if is_cacheable(when.as_ref(), data));
        // If a patch replaced the content of the frame, the patch is the source of the frame.
        let span = content_span.filter(|s| s.file != entry.key_span.file).unwrap_or(entry.key_span);
        // Only the policies of `when:` decide that a frame is disabled.
        let (state, content_policies) = if is_off {
            (FrameState::Disabled, Vec::new())
        } else {
            (FrameState::Enabled, self.skeletons.pool.take_policies_read())
        };
        let policies = [condition_policies, content_policies].concat();
        Some((
            FramePlan {
                name,
                span,
                when,
                event,
                event_name: EventName::Rendered,
                content,
                schema,
                policies,
                cacheable,
                ordinal: 0,
                is_counted: true,
                before_open: frame.before_open.is_some_and(|before| before.value),
            },
            state,
        ))
    }

    /// Reports a line break in text that must be one line of a stream.
    fn has_line_break(&self, text: Option<&str>, span: Span, what: &str) -> bool {
        let found = text.is_some_and(|t| t.contains(LINE_BREAKS));
        if found {
            let message = format!("a line break in the {what} of a frame");
            let help = "it would end the frame and start another one";
            self.context.cx.add(Diagnostic::new(Code::UnsafeText, span, message).help(help));
        }
        found
    }

    /// The keys of `base:`, then the frame's own. A key of the frame replaces the one of `base:`.
    fn with_base(&self, base: Option<&Node>, data: &Node, scope: &VariableScope) -> Option<Skeleton> {
        let own = self.skeletons.compile(data, scope)?;
        let Some(base) = base else { return Some(own) };
        let mut merged = match self.skeletons.compile(base, scope)?.into_map() {
            Some(entries) => entries,
            None => {
                self.context.cx.wrong_type(base, "a map of the fields that every frame has");
                return None;
            }
        };
        match own.into_map() {
            Some(entries) => {
                merged.retain(|(k, _)| !entries.iter().any(|(own, _)| own == k));
                merged.extend(entries);
                Some(Skeleton::Map(merged.into()))
            }
            None => {
                self.context.cx.add(
                    Diagnostic::new(Code::BadFrame, data.span, "`base:` cannot be merged with a directive")
                        .help("put the directive under a key, or write `base: false` next to `data:`"),
                );
                None
            }
        }
    }
}
