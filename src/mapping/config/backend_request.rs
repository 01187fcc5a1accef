//! A backend's `request:`: how a turn is asked for over HTTP, and where its list of models stands.

use super::capabilities::Manners;
use super::rename_fields::Names;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::variables::{Shape, Type};
use crate::mapping::language::expression::{Expr, Path, Pool, PoolBuilder};
use crate::mapping::language::scope::Env;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::skeleton::{Parts, Skeleton, SkeletonCx, TextSegment};
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Entry, Node};

#[derive(Debug)]
pub struct AskPlan {
    pub method: String,
    /// Reads `model`, which is escaped as one segment, and `upstream`.
    pub path: Skeleton,
    /// A header whose text lacks a value is left out.
    pub headers: Vec<(String, Skeleton)>,
    pub body: Skeleton,
    /// Done to the body before it leaves, in this order.
    pub joins: Vec<Join>,
    pub pool: Pool,
    pub manners: Manners,
    pub reads: Reads,
    pub models: Option<ModelsPlan>,
}

/// Neighbours in a list of the body that the backend takes as one: their inner lists are put together.
#[derive(Debug)]
pub struct Join {
    /// The member of the body.
    pub at: String,
    /// The inner list. A list in it is laid flat, and an element in which it is empty says nothing and is left out.
    pub list: String,
    /// Neighbours are joined if they have this member in common.
    pub by: Option<String>,
    /// Only those are joined whose inner list holds nothing but elements with this member.
    pub only: Option<String>,
}

/// Where a backend lists its models: a path, and the ids in the answer.
#[derive(Debug)]
pub struct ModelsPlan {
    pub path: String,
    pub ids: Selector,
    /// What its ids begin with and the path of a turn does not repeat.
    pub prefix: Option<String>,
}

/// What of a request the body, the path and the headers read: the rest does not reach the backend.
#[derive(Debug, Default)]
pub struct Reads {
    /// Fields of `request`.
    scalars: Vec<String>,
    /// Members that the client sent, as it sent them: `request.extra.NAME`, `request.raw.NAME`.
    members: Vec<String>,
    all_members: bool,
    /// `request.raw.NAME.INNER`
    inner: Vec<(String, String)>,
    /// What is read of the elements of a list: of `p.detail` the last name.
    leaves: Vec<String>,
}

impl Reads {
    pub fn scalar(&self, name: &str) -> bool {
        self.scalars.iter().any(|s| s == name)
    }

    pub fn member(&self, name: &str) -> bool {
        self.all_members || self.members.iter().any(|m| m == name)
    }

    /// Is this read as the client sent it?
    pub fn inner(&self, member: &str, name: &str) -> bool {
        self.member(member) || self.inner.iter().any(|(m, n)| m == member && n == name)
    }

    pub fn leaf(&self, name: &str) -> bool {
        self.leaves.iter().any(|l| l == name)
    }

    /// Are the messages that lead a conversation read as one text only?
    pub fn leads_as_text(&self) -> bool {
        self.scalar("instructions") && !self.scalar("messages") && !self.items()
    }

    /// Are the items of the conversation read one by one, or only as messages?
    pub fn items(&self) -> bool {
        self.scalar("items") || self.scalar("history")
    }

    fn see(&mut self, path: &Path) {
        let mut steps = path.0.iter().map(|s| &**s);
        if steps.next() != Some("request") {
            self.leaves.extend(steps.next_back().map(str::to_owned));
            return;
        }
        match (steps.next(), steps.next(), steps.next()) {
            (Some("raw"), Some(member), Some(name)) => self.inner.push((member.to_owned(), name.to_owned())),
            (Some("extra" | "raw"), Some(member), _) => self.members.push(member.to_owned()),
            (Some("extra" | "raw"), None, _) | (None, ..) => self.all_members = true,
            (Some(scalar), ..) => self.scalars.push(scalar.to_owned()),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Variable(path) | Expr::Chain { path, .. } => self.see(path),
            Expr::Engine { reads, .. } => reads.iter().for_each(|path| self.see(path)),
        }
    }

    fn skeleton(&mut self, skeleton: &Skeleton) {
        match skeleton {
            Skeleton::Constant(_) => {}
            Skeleton::Hole { expr, .. } => self.expr(expr),
            Skeleton::Text(segments) => segments.iter().for_each(|segment| match segment {
                TextSegment::Text(_) => {}
                TextSegment::Hole(expr) => self.expr(expr),
            }),
            Skeleton::List(items) => items.iter().for_each(|s| self.skeleton(s)),
            Skeleton::Map(entries) => entries.iter().for_each(|(_, s)| self.skeleton(s)),
            Skeleton::Each { list, filter, body, .. } => {
                self.expr(list);
                filter.iter().for_each(|f| self.expr(f));
                self.skeleton(body);
            }
            Skeleton::Switch { on, cases, default } => {
                self.expr(on);
                cases.iter().for_each(|(_, s)| self.skeleton(s));
                default.iter().for_each(|s| self.skeleton(s));
            }
            Skeleton::With { value, body, .. } => {
                self.expr(value);
                self.skeleton(body);
            }
            Skeleton::If { condition, then, otherwise } => {
                self.expr(condition);
                self.skeleton(then);
                otherwise.iter().for_each(|s| self.skeleton(s));
            }
        }
    }
}

pub(crate) const METHODS: &[&str] = &["POST", "PUT", "GET"];

impl AskPlan {
    pub fn parse(
        node: &Node,
        parts: &[Entry],
        shared_parts: &[Entry],
        models: Option<&Node>,
        tables: &Tables,
        cx: Cx,
    ) -> Option<AskPlan> {
        let fields = Fields::of(node, "`request:`", cx)?;
        let mut known = Parts::default();
        known.add(parts);
        known.add(shared_parts);
        let pool = PoolBuilder::new(tables.clone());
        let scx = SkeletonCx { cx, pool: &pool, parts: &known, names: &Names::default() };
        let method = fields.get("method").and_then(|n| cx.word(n, METHODS)).unwrap_or("POST");
        let upstream = ("upstream", Type::Record(Shape::Upstream));
        let path_env = Env::new("`path:`", [("model", Type::Text), upstream]);
        let path = fields.required("path").and_then(|n| scx.compile(n, &path_env));
        let request = ("request", Type::Record(Shape::Request));
        let header_env = Env::new(
            "a header",
            [request, upstream, ("secret", Type::Record(Shape::Secret)), ("build", Type::Record(Shape::Build))],
        );
        let mut headers = Vec::new();
        for entry in fields.map("headers") {
            if !is_token(&entry.key) {
                cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not the name of a header", entry.key));
                continue;
            }
            if entry.value.as_text().is_some_and(|t| t.contains(['\n', '\r', '\0'])) {
                cx.add(
                    Diagnostic::new(Code::UnsafeText, entry.value.span, "a line break in a header")
                        .help("it would end the header and begin another one"),
                );
                continue;
            }
            headers.extend(scx.compile(&entry.value, &header_env).map(|s| (entry.key.to_ascii_lowercase(), s)));
        }
        let body_env = Env::new("the body of a backend's request", [request, upstream]);
        let body = fields.required("body").and_then(|n| scx.compile(n, &body_env));
        let joins = fields.list("join").iter().filter_map(|n| Join::parse(n, cx)).collect();
        let manners = Manners::default().refined(&fields, cx);
        fields.done();
        let models = models.and_then(|n| models_plan(n, cx));
        let (path, body) = (path?, body?);
        let mut reads = Reads::default();
        reads.skeleton(&body);
        headers.iter().for_each(|(_, s)| reads.skeleton(s));
        Some(AskPlan {
            method: method.to_owned(),
            path,
            headers,
            body,
            joins,
            pool: pool.build()?,
            manners,
            reads,
            models,
        })
    }
}

impl Join {
    fn parse(node: &Node, cx: Cx) -> Option<Join> {
        let fields = Fields::of(node, "`join:`", cx)?;
        let (at, list) = (fields.required_text("at"), fields.required_text("list"));
        let (by, only) = (fields.text("by").map(str::to_owned), fields.text("only").map(str::to_owned));
        fields.done();
        Some(Join { at: at?.to_owned(), list: list?.to_owned(), by, only })
    }
}

fn models_plan(node: &Node, cx: Cx) -> Option<ModelsPlan> {
    let fields = Fields::of(node, "`models:`", cx)?;
    let path = fields.required_text("path").map(str::to_owned);
    let ids = fields.required("ids").and_then(|n| Selector::parse(text_of(n, cx)?, n.span, cx));
    let prefix = fields.text("prefix").map(str::to_owned);
    fields.done();
    Some(ModelsPlan { path: path?, ids: ids?, prefix })
}

/// A name that HTTP takes for a header.
pub fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
