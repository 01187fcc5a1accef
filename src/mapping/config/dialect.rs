//! A dialect file, with a profile laid over it, compiled: request rules, frames by moment, body, errors, order.

use super::dialect_capture::CapturePlan;
use super::dialect_order;
use super::dialect_request::RequestPlan;
use super::profile::Profile;
use super::profile_patch;
use super::rename_fields::Names;
use super::schemas::SchemaCache;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::variables::{Shape, Type, variables_at};
use crate::domain::{MomentKind, Tree, WireKind};
use crate::mapping::language::cacheable::is_steady;
use crate::mapping::language::expression::{Expr, Pool, PoolBuilder};
use crate::mapping::language::scope::Env;
use crate::mapping::language::skeleton::{Parts, Skeleton, SkeletonCx};
use crate::mapping::language::table::Tables;
use crate::mapping::policy::owners::Dialects;
use crate::mapping::policy::resolve::{Resolved, SetBy};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Entry, Kind, Node};
use crate::order::Orders;
use reframe_json::Schema;
use std::sync::Arc;

#[derive(Debug)]
pub struct DialectPlan {
    pub name: String,
    pub profile: Option<String>,
    pub resolved: Resolved,
    pub request: RequestPlan,
    pub wire: Wire,
    frames: Vec<Vec<FramePlan>>,
    pub denied: Vec<Denied>,
    pub orders: Orders,
    pub body: Checked,
    pub errors: Checked,
    pub capture: CapturePlan,
    pub pool: Pool,
}

/// A skeleton and the schema that what it makes must satisfy.
#[derive(Debug)]
pub struct Checked {
    pub span: Span,
    pub skeleton: Skeleton,
    pub schema: Option<NamedSchema>,
    /// File and line, for the log.
    pub place: Arc<str>,
}

/// A schema, and where it stands below `schemas/`.
#[derive(Clone, Debug)]
pub struct NamedSchema {
    pub name: String,
    pub schema: Arc<Schema>,
}

#[derive(Debug)]
pub struct Wire {
    pub kind: WireKind,
    pub content_type: String,
    /// The SSE event name of a data frame; reads `data` and `frame`.
    pub event: Option<Skeleton>,
}

#[derive(Debug)]
pub struct FramePlan {
    pub name: Arc<str>,
    pub span: Span,
    pub when: Option<Expr>,
    pub event: Option<String>,
    pub content: Content,
    pub schema: Option<NamedSchema>,
    /// The policies that its expressions read, also those that have decided already.
    pub policies: Vec<String>,
    /// File and line, for the log.
    pub place: Arc<str>,
    /// From one piece to the next nothing changes but the piece: it is filled once and then patched.
    pub steady: bool,
    /// Its place among all frames of the dialect.
    pub ordinal: usize,
}

/// A frame that the policies have turned off. It is no part of the plan; `explain` says why it does not come.
#[derive(Debug)]
pub struct Denied {
    pub moment: MomentKind,
    pub span: Span,
    pub policies: Vec<String>,
}

#[derive(Debug)]
pub enum Content {
    Data(Skeleton),
    Text(Skeleton),
    Comment(Skeleton),
}

impl DialectPlan {
    /// How many frames it has, over all moments.
    pub fn frame_count(&self) -> usize {
        self.frames.iter().map(Vec::len).sum()
    }

    pub fn frames(&self, moment: MomentKind) -> &[FramePlan] {
        self.frames.get(moment as usize).map_or(&[], Vec::as_slice)
    }
}

/// What the compiler of a dialect needs besides the file itself.
pub struct DialectCx<'c> {
    pub cx: Cx<'c>,
    pub shared_tables: &'c Tables,
    pub shared_parts: &'c [Entry],
    pub schemas: &'c SchemaCache<'c>,
    /// All dialects there are, for profiles that name them.
    pub dialects: &'c Dialects<'c>,
}

/// `settled`: the policies, where more is laid over the dialect than the profile.
pub fn compile(
    node: &Node,
    profile: Option<Profile>,
    settled: Option<&Resolved>,
    dcx: &DialectCx,
) -> Option<DialectPlan> {
    let cx = dcx.cx;
    let Some(name) = node.get("dialect") else {
        Fields::of(node, "a dialect", cx)?.required("dialect");
        return None;
    };
    let name = text_of(name, cx)?.to_owned();
    let own_schemas = node.get("schemas").and_then(Node::as_text).map(str::to_owned);
    let mut patched;
    let mut node = node;
    let mut names = Names::default();
    if let Some(profile) = profile {
        for entry in profile.patch.iter().chain(profile.names) {
            dcx.dialects.knows(entry, cx);
        }
        if let Some(entry) = profile.patch.iter().find(|e| e.key == name) {
            patched = node.clone();
            profile_patch::apply(&mut patched, &entry.value, &name, cx);
            node = &patched;
        }
        names = profile.renames(&name, cx);
    }
    let fields = Fields::of(node, "a dialect", cx)?;
    fields.get("dialect");
    let tables = Tables::parse(fields.map("tables"), cx).or(dcx.shared_tables);
    let mut parts = Parts::default();
    parts.add(fields.map("parts"));
    parts.add(dcx.shared_parts);
    let (own, policies) = (fields.map("own_policies"), fields.map("policies"));
    let resolved = match settled {
        Some(settled) => settled.clone(),
        None => {
            let base = Resolved::dialect(own, policies, cx);
            let over = profile.map_or(&[] as &[Entry], |p| p.policies);
            let laid = base.read_for(&name, dcx.dialects, over, &SetBy::Profile, cx);
            base.under([base.settings.clone(), laid].concat())
        }
    };
    let schemas = fields.get("schemas").and_then(|n| dcx.schemas.folder(n, cx));
    let request = fields.required("request").and_then(|n| RequestPlan::parse(n, &tables, cx));
    let pool = PoolBuilder::new(tables.clone()).policies(&resolved.policies.words);
    let compiler = Compiler {
        scx: SkeletonCx { cx, pool: &pool, parts: &parts, names: &names },
        dcx,
        schemas,
        policies: resolved.words(),
    };
    let request =
        request.map(|plan| RequestPlan { schema: compiler.request_schema(own_schemas.as_deref(), node.span), ..plan });
    let stream = fields.required("stream").and_then(|n| compiler.stream(n));
    let body_env =
        compiler.env("the body", [("turn", Type::Record(Shape::Turn)), ("request", Type::Record(Shape::Request))]);
    let body = fields.required("body").and_then(|n| compiler.checked(n, "body", &body_env));
    let error_env = compiler.env("an error", [("fault", Type::Record(Shape::Fault))]);
    let errors = fields.required("errors").and_then(|n| compiler.checked(n, "error", &error_env));
    let named = |node: &Node, frame: &str| compiler.schema(frame, SchemaOf::Frame, node.span);
    let capture = CapturePlan::parse(fields.get("capture"), &tables, named, cx);
    fields.done();
    let (wire, frames, denied, orders) = stream?;
    let plan = DialectPlan {
        name,
        profile: profile.map(|p| p.name.to_owned()),
        resolved,
        request: request?,
        wire,
        frames,
        denied,
        orders,
        body: body?,
        errors: errors?,
        capture: capture?,
        pool: pool.build()?,
    };
    names.check(&plan.name, cx);
    Some(plan)
}

/// Do the policies let a frame be?
enum Say {
    Yes,
    No,
}

/// What a schema is looked up for.
#[derive(Clone, Copy)]
enum SchemaOf {
    Frame,
    Whole,
}

struct Compiler<'c, 'n> {
    scx: SkeletonCx<'c, 'n>,
    dcx: &'c DialectCx<'c>,
    /// The folder of this dialect's schemas.
    schemas: Option<&'c str>,
    policies: Vec<(String, Vec<String>)>,
}

impl Compiler<'_, '_> {
    fn env<const N: usize>(&self, place: &str, variables: [(&'static str, Type); N]) -> Env {
        Env::new(place, variables).policies(self.policies.clone())
    }

    /// A body or an error: a skeleton that must satisfy `schemas/DIALECT/NAME.json`, or `{ schema, data }`.
    fn checked(&self, node: &Node, schema: &str, env: &Env) -> Option<Checked> {
        let skeleton = self.scx.compile(node, env)?;
        let place = Arc::from(self.dcx.cx.sources.show(node.span));
        Some(Checked { span: node.span, skeleton, schema: self.schema(schema, SchemaOf::Whole, node.span), place })
    }

    /// `chunk` is `schemas/chat/chunk.json`, else the definition `chunk` in the dialect's `events.json`, else
    /// `schemas/shared/chunk.json`.
    fn schema(&self, name: &str, kind: SchemaOf, span: Span) -> Option<NamedSchema> {
        let folder = self.schemas?;
        let own = format!("{folder}/{name}.json");
        let shared = format!("shared/{name}.json");
        let event = format!("{folder}/events.json#/$defs/{name}");
        // A whole answer is never one of the stream's events, whatever its name.
        let places = match kind {
            SchemaOf::Frame => vec![own.clone(), event, shared],
            SchemaOf::Whole => vec![own.clone(), shared],
        };
        let found = places.into_iter().find(|p| self.dcx.schemas.contains(p));
        let name = found.unwrap_or(own);
        let schema = self.dcx.schemas.get_closed(&name, span, self.dcx.cx)?;
        Some(NamedSchema { name, schema })
    }

    /// A dialect without one reads what it needs and passes the rest.
    fn request_schema(&self, own: Option<&str>, span: Span) -> Option<NamedSchema> {
        // A profile that changes what leaves need not say again what arrives.
        let folders = [self.schemas, own].into_iter().flatten();
        let name = folders.map(|f| format!("{f}/request.json")).find(|name| self.dcx.schemas.contains(name))?;
        let schema = self.dcx.schemas.contains(&name).then(|| self.dcx.schemas.get(&name, span, self.dcx.cx))??;
        Some(NamedSchema { name, schema })
    }

    #[allow(clippy::type_complexity)]
    fn stream(&self, node: &Node) -> Option<(Wire, Vec<Vec<FramePlan>>, Vec<Denied>, Orders)> {
        let cx = self.dcx.cx;
        let fields = Fields::of(node, "`stream:`", cx)?;
        let wire = fields.required("framing").and_then(|n| self.wire(n));
        let schema = fields.get("schema");
        if node.misspells("schema") {
            cx.findings.mute(&[Code::BadSchema]);
        }
        let base = fields.get("base");
        let mut frames: Vec<Vec<FramePlan>> = MomentKind::ALL.iter().map(|_| Vec::new()).collect();
        let (mut framed, mut denied) = (Vec::new(), Vec::new());
        let within = fields.required("frames");
        for entry in fields.map("frames") {
            let Some(moment) = MomentKind::from_word(&entry.key) else {
                dialect_order::no_moment(&entry.key, entry.key_span, cx);
                continue;
            };
            framed.push((moment, entry.key_span));
            let article = if entry.key.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            let place = format!("{article} `{}` frame", entry.key);
            let env = Env::new(place, variables_at(moment)).policies(self.policies.clone());
            let Kind::Map(list) = &entry.value.kind else {
                cx.wrong_type(&entry.value, "frames by name");
                continue;
            };
            for frame in list {
                match self.frame(frame, base, schema, &env) {
                    Some((mut plan, Say::Yes)) => {
                        plan.ordinal = frames.iter().map(Vec::len).sum();
                        plan.steady &= moment.is_piece();
                        frames[moment as usize].push(plan);
                    }
                    Some((FramePlan { span, policies, .. }, Say::No)) => {
                        denied.push(Denied { moment, span, policies });
                    }
                    None => {}
                }
            }
        }
        let too_deep = within.is_some_and(|frames| frames.get("order").is_some());
        let order = if too_deep { fields.get("order") } else { fields.required("order") };
        let orders = order.map(|n| dialect_order::parse(n, &framed, cx)).unwrap_or_default();
        fields.done();
        Some((wire?, frames, denied, orders))
    }

    fn wire(&self, node: &Node) -> Option<Wire> {
        let cx = self.dcx.cx;
        let fields = Fields::of(node, "`framing:`", cx)?;
        let kind = match fields.get("as") {
            Some(node) => cx.word(node, WireKind::WORDS).and_then(WireKind::from_word)?,
            None => WireKind::Sse,
        };
        if let Some(data) = fields.get("data") {
            cx.word(data, &["json"]);
        }
        let content_type = fields.text("content_type").unwrap_or(match kind {
            WireKind::Sse => "text/event-stream; charset=utf-8",
            WireKind::Ndjson => "application/x-ndjson",
        });
        let env = self.env("`framing:`", [("data", Type::Record(Shape::Open)), ("frame", Type::Text)]);
        let event = match fields.get("event") {
            Some(node) if self.breaks(node, "event name") => return None,
            Some(node) => Some(self.scx.compile(node, &env)?),
            None => None,
        };
        let wire = Wire { kind, content_type: content_type.to_owned(), event };
        fields.done();
        Some(wire)
    }

    /// `schema`: the one that all frames of the stream satisfy, where they have one.
    fn frame(&self, entry: &Entry, base: Option<&Node>, schema: Option<&Node>, env: &Env) -> Option<(FramePlan, Say)> {
        let cx = self.dcx.cx;
        let env = env.with("frame", Type::Text);
        // What other frames asked is none of this one's.
        self.scx.pool.asked();
        let fields = Fields::of(&entry.value, format!("the frame `{}`", entry.key), cx)?;
        let when = match fields.get("when") {
            Some(node) => Some(self.scx.condition(node, &env)?),
            None => None,
        };
        // What the policies have already denied is no part of the plan; that it is sound is checked all the same.
        let asked = self.scx.pool.asked();
        let off = when.as_ref().and_then(|w| self.scx.pool.settled(w)) == Some(Tree::Bool(false));
        let event = fields.text("event").map(str::to_owned);
        if event.as_deref().is_some_and(|e| e.contains("{{")) {
            let at = fields.get("event").map_or(entry.key_span, |n| n.span);
            cx.add(
                Diagnostic::new(Code::BadHole, at, "the `event:` of a frame is plain text")
                    .help("a name that depends on the frame stands in `framing: { event: … }`"),
            );
            return None;
        }
        let on_base = fields.flag("base").unwrap_or(true);
        let (data, text, comment) = (fields.get("data"), fields.get("text"), fields.get("comment"));
        let said = ["data", "text", "comment"].into_iter().find_map(|key| fields.entry(key)).map(|e| e.key_span);
        let own_schema = fields.get("schema").or(schema);
        let (content, schema) = match (data, text, comment) {
            (Some(data), None, None) => {
                let skeleton = self.with_base(base.filter(|_| on_base), data, &env)?;
                let schema = match own_schema {
                    _ if off => None,
                    Some(node) => self.schema(text_of(node, cx)?, SchemaOf::Frame, node.span),
                    None => self.schema(&entry.key, SchemaOf::Frame, entry.key_span),
                };
                (Content::Data(skeleton), schema)
            }
            (None, Some(text), None) => (Content::Text(self.scx.compile(text, &env)?), None),
            (None, None, Some(comment)) => (Content::Comment(self.scx.compile(comment, &env)?), None),
            (None, None, None) => {
                let message = format!("the frame `{}` says nothing", entry.key);
                let help = "it has one of `data:`, `text:` and `comment:`";
                let diagnostic = Diagnostic::new(Code::BadFrame, entry.key_span, message).help(help);
                fields.not_one_of(&["data", "text", "comment"], diagnostic);
                fields.done();
                return None;
            }
            _ => {
                let said: Vec<&str> =
                    ["data", "text", "comment"].into_iter().filter(|k| entry.value.get(k).is_some()).collect();
                let message = format!("the frame `{}` says both `{}:`", entry.key, said.join(":` and `"));
                let help = "it has one of `data:`, `text:` and `comment:`; two frames say two things";
                cx.add(Diagnostic::new(Code::BadFrame, entry.key_span, message).help(help));
                return None;
            }
        };
        let lines = [(text, "text"), (comment, "comment"), (fields.get("event"), "event name")];
        if lines.into_iter().any(|(node, what)| node.is_some_and(|n| self.breaks(n, what))) {
            return None;
        }
        fields.done();
        let name = Arc::from(entry.key.as_str());
        let steady = matches!(&content, Content::Data(data) if is_steady(when.as_ref(), data));
        // A patch may have put other content into the frame: that is the line that makes it.
        let span = said.filter(|s| s.file != entry.key_span.file).unwrap_or(entry.key_span);
        let place = Arc::from(cx.sources.show(span));
        // What is not there was decided by its `when:` alone.
        let (say, shape) = if off { (Say::No, Vec::new()) } else { (Say::Yes, self.scx.pool.asked()) };
        let policies = [asked, shape].concat();
        Some((FramePlan { name, span, when, event, content, schema, policies, place, steady, ordinal: 0 }, say))
    }

    /// A line break in what must be one line of a stream.
    fn breaks(&self, node: &Node, what: &str) -> bool {
        let found = node.as_text().is_some_and(|t| t.contains(['\n', '\r', '\0']));
        if found {
            let message = format!("a line break in the {what} of a frame");
            let help = "it would end the frame and begin another one";
            self.dcx.cx.add(Diagnostic::new(Code::UnsafeText, node.span, message).help(help));
        }
        found
    }

    /// `base:` stands before the frame's own keys; a key of the frame wins.
    fn with_base(&self, base: Option<&Node>, data: &Node, env: &Env) -> Option<Skeleton> {
        let own = self.scx.compile(data, env)?;
        let Some(base) = base else { return Some(own) };
        let mut merged = match self.scx.compile(base, env)?.into_map() {
            Some(entries) => entries,
            None => {
                self.dcx.cx.wrong_type(base, "a map of the fields that every frame has");
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
                self.dcx.cx.add(
                    Diagnostic::new(Code::BadFrame, data.span, "`base:` cannot be laid under a directive")
                        .help("write the directive below a key of its own, or `base: false` beside `data:`"),
                );
                None
            }
        }
    }
}
