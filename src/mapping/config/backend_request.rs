//! A backend's `request:`: the template of its HTTP requests, and the endpoint that lists its models.

use super::capabilities::Capabilities;
use super::rename_fields::RenameFields;
use super::request_values::{self, EntryValues, NamedValues, RequestHeaders, RequestQuery};
use crate::diagnostics::Span;
use crate::domain::{named_enum, variables};
use crate::mapping::grammar::collections::{Entries, List};
use crate::mapping::grammar::notation::NameOf;
use crate::mapping::grammar::section;
use crate::mapping::language::directives::SkeletonNode;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder, VariablePath};
use crate::mapping::language::name_map::NameMap;
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::selector::Selector;
use crate::mapping::language::skeleton::Skeleton;
use crate::mapping::language::skeleton_compiler::SkeletonCompiler;
use crate::mapping::language::skeleton_fragments::Fragments;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Entry;
use std::sync::Arc;

/// Template of the HTTP request that starts a turn.
#[derive(Debug)]
pub struct RequestTemplate {
    pub method: &'static str,
    /// Reads `model`, which is escaped as one path segment, and `upstream`.
    pub path: Skeleton,
    /// A header with a null placeholder is omitted.
    pub headers: NamedValues,
    /// Added to the query of the path; a parameter with a null placeholder is omitted.
    pub query: NamedValues,
    pub body: Skeleton,
    /// The value of `body:`.
    pub body_span: Span,
    /// Applied to the body before it is sent, in this order.
    pub merge_adjacent: Vec<MergeAdjacent>,
    pub pool: ExpressionPool,
    pub settings: RequestSettings,
    pub reads: RequestFieldsRead,
    pub models: Option<ModelListPlan>,
}

/// How the requests to one backend are built: by the settings of its file, and those of its entry in gateway.yaml.
#[derive(Clone, Debug, Default)]
pub struct RequestSettings {
    pub capabilities: Capabilities,
    /// The headers and the query of the entry in gateway.yaml.
    pub entry: Option<Arc<EntryValues>>,
}

section! {
    /// The request to the backend. A field that the body does not read does not reach the backend: it is rejected, or
    /// dropped and listed.
    #[subject = "`request:`"]
    #[title = "request template"]
    pub struct RequestSection<'n> {
        /// The HTTP method.
        method: NameOf<Method> = NameOf(Method::Post),
        /// The path, appended to the URL of the gateway's entry. It sees `model` (percent-encoded, one segment) and
        /// `upstream.stream`.
        path: SkeletonNode<'n>,
        /// The headers. They see `request`, `upstream`, `secret.key` and `build.version`. A header without a value is
        /// omitted.
        headers: Entries<'n, RequestHeaders> = Entries::default(),
        /// Parameters that are added to the query of the path, percent-encoded. They see what headers see. A parameter
        /// without a value is omitted.
        query: Entries<'n, RequestQuery> = Entries::default(),
        /// The body. It sees `request` and `upstream.stream`.
        body: SkeletonNode<'n>,
        /// Lists of the body with adjacent elements that are merged.
        merge_adjacent: List<MergeAdjacent> = List::default(),
        ..capabilities: Capabilities,
    }
}

named_enum! {
    /// The method of requests to a backend.
    pub enum Method {
        Post = "POST",
        Put = "PUT",
        Get = "GET",
    }
}

section! {
    /// Merges adjacent elements of a list by concatenating one of their members.
    #[subject = "`merge_adjacent:`"]
    pub struct MergeAdjacent {
        /// The member of the body that is the list.
        at: String,
        /// The member of its elements with the lists that are concatenated. Nested lists are flattened; an element with
        /// an empty list is omitted.
        list: String,
        /// Merge only elements with the same value of this member.
        by: Option<String>,
        /// Merge only elements with lists in which every element has this member.
        only: Option<String>,
    }
}

section! {
    /// The backend's list of models.
    #[subject = "`models:`"]
    #[title = "models"]
    pub struct ModelListPlan {
        /// The path, appended to the URL of the gateway's entry.
        path: String,
        /// The selector of the ids in the response.
        ids: Selector,
        /// A prefix of each id, which is removed from the ids that clients see.
        prefix: Option<String>,
    }
}

/// The request fields that the body and the headers of the template read. All others are not sent to the backend.
#[derive(Debug, Default)]
pub struct RequestFieldsRead {
    /// Fields of `request`.
    scalars: NameMap<()>,
    /// Members as the client sent them: `request.extra.NAME`, `request.raw.NAME`.
    members: NameMap<()>,
    all_members: bool,
    /// `request.raw.NAME.INNER`
    nested: Vec<(String, String)>,
    /// `request.tool_choice.unknown`, `request.format.unknown`: the field.
    unknown: Vec<String>,
    /// `request.tool_choice.allowed`
    allowed_tools: bool,
    /// `request.format.NAME`
    format_members: Vec<String>,
    /// `request.format`, as a whole
    whole_format: bool,
    /// Fields of list elements, by their last name: `detail` for `p.detail`.
    element_fields: NameMap<()>,
}

impl RequestFieldsRead {
    pub fn of<'s>(skeletons: impl Iterator<Item = &'s Skeleton>) -> RequestFieldsRead {
        let mut reads = RequestFieldsRead::default();
        skeletons.for_each(|skeleton| {
            skeleton.visit(&mut |visited| visited.expression.variables().iter().for_each(|path| reads.record(path)));
        });
        reads
    }

    /// Adds what conditions read.
    pub fn and_expressions<'e>(mut self, expressions: impl Iterator<Item = &'e Expression>) -> RequestFieldsRead {
        expressions.flat_map(|expression| expression.variables()).for_each(|path| self.record(path));
        self
    }

    pub fn scalar(&self, name: &str) -> bool {
        self.scalars.contains(name)
    }

    pub fn member(&self, name: &str) -> bool {
        self.all_members || self.members.contains(name)
    }

    /// Whether a nested member is read as the client sent it.
    pub fn nested(&self, member: &str, name: &str) -> bool {
        self.member(member) || self.nested.iter().any(|(m, n)| m == member && n == name)
    }

    /// Whether a tool choice or format that the client's dialect does not define is read as the client sent it.
    pub fn unknown(&self, field: &str) -> bool {
        self.unknown.iter().any(|f| f == field)
    }

    /// Whether the names of the tools that a tool choice allows are read.
    pub fn allowed_tools(&self) -> bool {
        self.allowed_tools
    }

    /// Whether a member of the response format is read. `selector`: where the client's dialect has it.
    pub fn sends_format_member(&self, name: &str, selector: &Selector) -> bool {
        let path = selector.members().unwrap_or_default();
        let is_sent_as_it_is = match &path[..] {
            [member, inner, ..] => self.nested(member, inner),
            [member] => self.member(member),
            [] => false,
        };
        is_sent_as_it_is || self.whole_format || self.format_members.iter().any(|member| member == name)
    }

    pub fn element_field(&self, name: &str) -> bool {
        self.element_fields.contains(name)
    }

    /// Whether the leading system messages are read only as one text.
    pub fn instructions_as_text(&self) -> bool {
        let read_with_others = ["messages", "items", "history"];
        self.scalar("instructions") && !read_with_others.iter().any(|name| self.scalar(name))
    }

    /// Whether the items of the conversation are read, not only messages.
    pub fn items(&self) -> bool {
        ["items", "history", "earlier_items"].iter().any(|name| self.scalar(name))
    }

    /// Whether the reasoning of messages is read, or that of the items.
    pub fn reasoning(&self) -> bool {
        self.items() || self.element_field("reasoning") || self.element_field("thoughts")
    }

    fn record(&mut self, path: &VariablePath) {
        let mut steps = path.0.iter().map(|s| &**s);
        if steps.next() != Some("request") {
            steps.next_back().into_iter().for_each(|name| *self.element_fields.entry(name) = ());
            return;
        }
        let (field, inner, innermost) = (steps.next(), steps.next(), steps.next());
        self.allowed_tools |= field == Some("tool_choice") && matches!(inner, Some("allowed") | None);
        if field == Some("format") {
            self.whole_format |= inner.is_none();
            self.format_members.extend(inner.map(str::to_owned));
        }
        match (field, inner, innermost) {
            (Some("raw"), Some(member), Some(name)) => self.nested.push((member.to_owned(), name.to_owned())),
            (Some("extra" | "raw"), Some(member), _) => *self.members.entry(member) = (),
            (Some("extra" | "raw"), None, _) | (None, ..) => self.all_members = true,
            (Some(field), Some("unknown"), _) => self.unknown.push(field.to_owned()),
            (Some(scalar), ..) => *self.scalars.entry(scalar) = (),
        }
    }
}

impl RequestTemplate {
    pub fn new(
        section: RequestSection,
        fragments: &[Entry],
        shared_fragments: &[Entry],
        models: Option<ModelListPlan>,
        tables: &Tables,
        cx: LoadContext,
    ) -> Option<RequestTemplate> {
        let mut all_fragments = Fragments::default();
        all_fragments.add(fragments);
        all_fragments.add(shared_fragments);
        let pool = ExpressionPoolBuilder::new(tables.clone());
        let compiler =
            SkeletonCompiler { cx, pool: &pool, fragments: &all_fragments, rename_fields: &RenameFields::default() };
        let path_scope = VariableScope::new("`path:`", [variables::MODEL_NAME, variables::UPSTREAM]);
        let path = compiler.compile(section.path.0, &path_scope);
        let in_headers = [variables::REQUEST, variables::UPSTREAM, variables::SECRET, variables::BUILD];
        let header_scope = VariableScope::new("a header", in_headers);
        let headers = request_values::headers(section.headers.items, &compiler, &header_scope);
        let query_scope = VariableScope::new("`query:`", in_headers);
        let query = request_values::query(section.query.items, &compiler, &query_scope);
        let body_scope =
            VariableScope::new("the body of a backend's request", [variables::REQUEST, variables::UPSTREAM]);
        let (body, body_span) = (compiler.compile(section.body.0, &body_scope), section.body.0.span);
        let (path, body) = (path?, body?);
        let reads = RequestFieldsRead::of([&body].into_iter().chain(headers.iter().chain(&query).map(|(_, s)| s)));
        Some(RequestTemplate {
            method: section.method.0.name(),
            path,
            headers,
            query,
            body,
            body_span,
            merge_adjacent: section.merge_adjacent.0,
            pool: pool.build(),
            settings: RequestSettings { capabilities: section.capabilities, entry: None },
            reads,
            models,
        })
    }
}
