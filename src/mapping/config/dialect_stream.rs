//! A dialect's `stream:`: framing, frames by moment, order.

use super::dialect::{Compiler, DisabledFrame, FrameContent, FramePlan, SchemaOf, StreamEncoding};
use super::dialect_order;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::variables::{self, variables_at};
use crate::domain::{MomentKind, StreamFormat, Tree};
use crate::mapping::language::cacheable::is_cacheable;
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::source::field_reader::{FieldReader, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use crate::order::Orders;
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

/// Whether policies enable a frame.
enum FrameState {
    Enabled,
    Disabled,
}

impl Compiler<'_, '_> {
    pub(super) fn stream(&self, node: &Node) -> Option<StreamPlan> {
        let cx = self.context.cx;
        let fields = FieldReader::of(node, "`stream:`", cx)?;
        let encoding = fields.required("framing").and_then(|n| self.encoding(n));
        let schema = fields.get("schema");
        if node.misspells("schema") {
            cx.findings.suppress(&[Code::BadSchema]);
        }
        let base = fields.get("base");
        let mut frames: Vec<Vec<FramePlan>> = MomentKind::ALL.iter().map(|_| Vec::new()).collect();
        let (mut framed, mut disabled_frames) = (Vec::new(), Vec::new());
        let frames_node = fields.required("frames");
        for entry in fields.map("frames") {
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
                match self.frame(frame, base, schema, &scope) {
                    Some((mut plan, FrameState::Enabled)) => {
                        plan.ordinal = frames.iter().map(Vec::len).sum();
                        plan.cacheable &= moment.is_delta();
                        frames[moment as usize].push(plan);
                    }
                    Some((FramePlan { span, policies, .. }, FrameState::Disabled)) => {
                        disabled_frames.push(DisabledFrame { moment, span, policies });
                    }
                    None => {}
                }
            }
        }
        let too_deep = frames_node.is_some_and(|frames| frames.get("order").is_some());
        let order = if too_deep { fields.get("order") } else { fields.required("order") };
        let orders = order.map(|n| dialect_order::parse(n, &framed, cx)).unwrap_or_default();
        fields.finish();
        Some(StreamPlan { encoding: encoding?, frames, disabled_frames, orders })
    }

    fn encoding(&self, node: &Node) -> Option<StreamEncoding> {
        let cx = self.context.cx;
        let fields = FieldReader::of(node, "`framing:`", cx)?;
        let format = match fields.get("as") {
            Some(node) => cx.one_of(node, StreamFormat::NAMES).and_then(StreamFormat::from_name)?,
            None => StreamFormat::Sse,
        };
        if let Some(data) = fields.get("data") {
            cx.one_of(data, &["json"]);
        }
        let content_type = fields.text("content_type").unwrap_or(match format {
            StreamFormat::Sse => "text/event-stream; charset=utf-8",
            StreamFormat::Ndjson => "application/x-ndjson",
        });
        let scope = self.scope("`framing:`", [variables::DATA, variables::FRAME]);
        let event = match fields.get("event") {
            Some(node) if self.has_line_break(node, "event name") => return None,
            Some(node) => Some(self.skeletons.compile(node, &scope)?),
            None => None,
        };
        fields.finish();
        Some(StreamEncoding { format, content_type: content_type.to_owned(), event })
    }

    /// `schema`: the schema of all frames of the stream, if they have one.
    fn frame(
        &self,
        entry: &Entry,
        base: Option<&Node>,
        schema: Option<&Node>,
        scope: &VariableScope,
    ) -> Option<(FramePlan, FrameState)> {
        let cx = self.context.cx;
        // Discard the policies that other frames read.
        self.skeletons.pool.take_policies_read();
        let fields = FieldReader::of(&entry.value, format!("the frame `{}`", entry.key), cx)?;
        let when = match fields.get("when") {
            Some(node) => Some(self.skeletons.condition(node, scope)?),
            None => None,
        };
        // A frame that policies disable is not part of the plan, but it is checked all the same.
        let condition_policies = self.skeletons.pool.take_policies_read();
        let is_off = when.as_ref().and_then(|w| self.skeletons.pool.constant_value(w)) == Some(Tree::Bool(false));
        let event = fields.text("event").map(str::to_owned);
        if event.as_deref().is_some_and(|e| e.contains("{{")) {
            let span = fields.get("event").map_or(entry.key_span, |n| n.span);
            cx.add(
                Diagnostic::new(Code::BadPlaceholder, span, "the `event:` of a frame must be plain text")
                    .help("for a name that depends on the frame, use `framing: { event: … }`"),
            );
            return None;
        }
        let has_base = fields.bool("base").unwrap_or(true);
        let (data, text, comment) = (fields.get("data"), fields.get("text"), fields.get("comment"));
        let content_span = CONTENT_KEYS.into_iter().find_map(|key| fields.entry(key)).map(|e| e.key_span);
        let own_schema = fields.get("schema").or(schema);
        let (content, schema) = match (data, text, comment) {
            (Some(data), None, None) => {
                let skeleton = self.with_base(base.filter(|_| has_base), data, scope)?;
                let schema = match own_schema {
                    _ if is_off => None,
                    Some(node) => self.schema(text_of(node, cx)?, SchemaOf::Frame, node.span),
                    None => self.schema(&entry.key, SchemaOf::Frame, entry.key_span),
                };
                (FrameContent::Data(skeleton), schema)
            }
            (None, Some(text), None) => (FrameContent::Text(self.skeletons.compile(text, scope)?), None),
            (None, None, Some(comment)) => (FrameContent::Comment(self.skeletons.compile(comment, scope)?), None),
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
        let lines = [(text, "text"), (comment, "comment"), (fields.get("event"), "event name")];
        if lines.into_iter().any(|(node, what)| node.is_some_and(|n| self.has_line_break(n, what))) {
            return None;
        }
        fields.finish();
        let name = Arc::from(entry.key.as_str());
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
        Some((FramePlan { name, span, when, event, content, schema, policies, cacheable, ordinal: 0 }, state))
    }

    /// Reports a line break in text that must be one line of a stream.
    fn has_line_break(&self, node: &Node, what: &str) -> bool {
        let found = node.as_text().is_some_and(|t| t.contains(['\n', '\r', '\0']));
        if found {
            let message = format!("a line break in the {what} of a frame");
            let help = "it would end the frame and start another one";
            self.context.cx.add(Diagnostic::new(Code::UnsafeText, node.span, message).help(help));
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
                Some(Skeleton::Map(merged))
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
