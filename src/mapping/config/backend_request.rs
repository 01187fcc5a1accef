//! A backend's `request:`: the template of its HTTP requests, and the endpoint that lists its models.

use super::capabilities::Capabilities;
use super::rename_fields::RenameFields;
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::variables;
use crate::mapping::language::expression::{ExpressionPool, ExpressionPoolBuilder, VariablePath};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::skeleton::{Fragments, Skeleton, SkeletonCompiler};
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node};

/// Template of the HTTP request that starts a turn.
#[derive(Debug)]
pub struct RequestTemplate {
    pub method: String,
    /// Reads `model`, which is escaped as one path segment, and `upstream`.
    pub path: Skeleton,
    /// A header with a null placeholder is omitted.
    pub headers: Vec<(String, Skeleton)>,
    pub body: Skeleton,
    /// Applied to the body before it is sent, in this order.
    pub merge_adjacent: Vec<MergeAdjacent>,
    pub pool: ExpressionPool,
    pub capabilities: Capabilities,
    pub reads: RequestFieldsRead,
    pub models: Option<ModelListPlan>,
}

/// Merges adjacent elements of a list of the body by concatenating their inner lists.
#[derive(Debug)]
pub struct MergeAdjacent {
    /// The member of the body that holds the list.
    pub at: String,
    /// The member with the inner list. Nested lists are flattened; an element with an empty inner list is omitted.
    pub list: String,
    /// Elements are merged if they have the same value of this member.
    pub by: Option<String>,
    /// Elements are merged only if all elements of their inner lists have this member.
    pub only: Option<String>,
}

/// The endpoint that lists a backend's models: its path, and the ids in the response.
#[derive(Debug)]
pub struct ModelListPlan {
    pub path: String,
    pub ids: Selector,
    /// A prefix of the ids that is not part of the model in request paths.
    pub prefix: Option<String>,
}

/// The request fields that the body and the headers of the template read. All others are not sent to the backend.
#[derive(Debug, Default)]
pub struct RequestFieldsRead {
    /// Fields of `request`.
    scalars: Vec<String>,
    /// Members as the client sent them: `request.extra.NAME`, `request.raw.NAME`.
    members: Vec<String>,
    all_members: bool,
    /// `request.raw.NAME.INNER`
    nested: Vec<(String, String)>,
    /// Fields of list elements, by their last name: `detail` for `p.detail`.
    element_fields: Vec<String>,
}

impl RequestFieldsRead {
    fn of<'s>(skeletons: impl Iterator<Item = &'s Skeleton>) -> RequestFieldsRead {
        let mut reads = RequestFieldsRead::default();
        skeletons.for_each(|skeleton| {
            skeleton.visit(&mut |visited| visited.expression.variables().iter().for_each(|path| reads.record(path)));
        });
        reads
    }

    pub fn scalar(&self, name: &str) -> bool {
        self.scalars.iter().any(|s| s == name)
    }

    pub fn member(&self, name: &str) -> bool {
        self.all_members || self.members.iter().any(|m| m == name)
    }

    /// Whether a nested member is read as the client sent it.
    pub fn nested(&self, member: &str, name: &str) -> bool {
        self.member(member) || self.nested.iter().any(|(m, n)| m == member && n == name)
    }

    pub fn element_field(&self, name: &str) -> bool {
        self.element_fields.iter().any(|l| l == name)
    }

    /// Whether the leading system messages are read only as one text.
    pub fn instructions_as_text(&self) -> bool {
        self.scalar("instructions") && !self.scalar("messages") && !self.items()
    }

    /// Whether the items of the conversation are read, not only messages.
    pub fn items(&self) -> bool {
        self.scalar("items") || self.scalar("history")
    }

    fn record(&mut self, path: &VariablePath) {
        let mut steps = path.0.iter().map(|s| &**s);
        if steps.next() != Some("request") {
            self.element_fields.extend(steps.next_back().map(str::to_owned));
            return;
        }
        match (steps.next(), steps.next(), steps.next()) {
            (Some("raw"), Some(member), Some(name)) => self.nested.push((member.to_owned(), name.to_owned())),
            (Some("extra" | "raw"), Some(member), _) => self.members.push(member.to_owned()),
            (Some("extra" | "raw"), None, _) | (None, ..) => self.all_members = true,
            (Some(scalar), ..) => self.scalars.push(scalar.to_owned()),
        }
    }
}

pub(crate) const METHODS: &[&str] = &["POST", "PUT", "GET"];

impl RequestTemplate {
    pub fn parse(
        node: &Node,
        fragments: &[Entry],
        shared_fragments: &[Entry],
        models: Option<&Node>,
        tables: &Tables,
        cx: LoadContext,
    ) -> Option<RequestTemplate> {
        let fields = FieldReader::of(node, "`request:`", cx)?;
        let mut all_fragments = Fragments::default();
        all_fragments.add(fragments);
        all_fragments.add(shared_fragments);
        let pool = ExpressionPoolBuilder::new(tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &all_fragments, rename_fields: &RenameFields::default() };
        let method = fields.get("method").and_then(|n| cx.one_of(n, METHODS)).unwrap_or("POST");
        let path_scope = VariableScope::new("`path:`", [variables::MODEL_NAME, variables::UPSTREAM]);
        let path = fields.required("path").and_then(|n| compiler.compile(n, &path_scope));
        let in_headers = [variables::REQUEST, variables::UPSTREAM, variables::SECRET, variables::BUILD];
        let header_scope = VariableScope::new("a header", in_headers);
        let mut headers = Vec::new();
        for entry in fields.map("headers") {
            if !is_token(&entry.key) {
                cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not a valid header name", entry.key));
                continue;
            }
            if entry.value.as_text().is_some_and(|t| t.contains(['\n', '\r', '\0'])) {
                cx.add(
                    Diagnostic::new(Code::UnsafeText, entry.value.span, "a line break in a header")
                        .help("it would end the header and start another one"),
                );
                continue;
            }
            headers.extend(compiler.compile(&entry.value, &header_scope).map(|s| (entry.key.to_ascii_lowercase(), s)));
        }
        let body_scope =
            VariableScope::new("the body of a backend's request", [variables::REQUEST, variables::UPSTREAM]);
        let body = fields.required("body").and_then(|n| compiler.compile(n, &body_scope));
        let merge_adjacent = fields.list("merge_adjacent").iter().filter_map(|n| MergeAdjacent::parse(n, cx)).collect();
        let capabilities = Capabilities::default().with_overrides(&fields, cx);
        fields.finish();
        let models = models.and_then(|n| models_plan(n, cx));
        let (path, body) = (path?, body?);
        let reads = RequestFieldsRead::of([&body].into_iter().chain(headers.iter().map(|(_, s)| s)));
        Some(RequestTemplate {
            method: method.to_owned(),
            path,
            headers,
            body,
            merge_adjacent,
            pool: pool.build()?,
            capabilities,
            reads,
            models,
        })
    }
}

impl MergeAdjacent {
    fn parse(node: &Node, cx: LoadContext) -> Option<MergeAdjacent> {
        let fields = FieldReader::of(node, "`merge_adjacent:`", cx)?;
        let (at, list) = (fields.required_text("at"), fields.required_text("list"));
        let (by, only) = (fields.text("by").map(str::to_owned), fields.text("only").map(str::to_owned));
        fields.finish();
        Some(MergeAdjacent { at: at?.to_owned(), list: list?.to_owned(), by, only })
    }
}

fn models_plan(node: &Node, cx: LoadContext) -> Option<ModelListPlan> {
    let fields = FieldReader::of(node, "`models:`", cx)?;
    let path = fields.required_text("path").map(str::to_owned);
    let ids = fields.required("ids").and_then(|n| Selector::parse(text_of(n, cx)?, n.span, cx));
    let prefix = fields.text("prefix").map(str::to_owned);
    fields.finish();
    Some(ModelListPlan { path: path?, ids: ids?, prefix })
}

/// Whether a name is a valid HTTP token, such as a header name.
pub fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
