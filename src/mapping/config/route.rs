//! `routes:` and `by_user_agent:` of gateway.yaml: the dialect of an endpoint, and clients that get other policies.

use super::dialect::DialectPlan;
use super::gateway::{KnownNames, Validation};
use super::path_template::{PathMatcher, PathTemplate};
use super::scalar_constants::ScalarConstants;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::policy::BUILT_IN;
use crate::mapping::grammar::collections::Entries;
use crate::mapping::grammar::notation::{HeaderName, NameOf, Spanned, exactly_one, is_token, notation_schema, or_null};
use crate::mapping::grammar::policies::{DialectPolicies, ProfilePolicies};
use crate::mapping::grammar::{At, FromNode, Section, section};
use crate::mapping::policy::variants::{RouteVariants, user_agent_contains};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node};
use schemars::json_schema;
use serde_json::json;

#[derive(Debug)]
pub struct RoutePlan {
    pub method: String,
    pub path: String,
    /// Reads the parameters of the path; `None` if it has none.
    pub path_matcher: Option<PathMatcher>,
    /// Scalars of every request, whatever the client sends.
    pub set: ScalarConstants,
    pub dialect: String,
    pub profile: Option<String>,
    /// Span of the profile's name. `None` if the profile comes from the command line.
    pub profile_span: Option<Span>,
    pub validation: Validation,
    /// Policies of this route only, unparsed.
    pub policies: Vec<Entry>,
    /// Headers with which a client selects the value of a policy.
    pub headers: Vec<HeaderRule>,
    /// The compiled dialect in all variants. Set after the dialects are compiled.
    pub variants: RouteVariants,
    pub span: Span,
}

/// `x-usage: usage`: the header selects the value of one policy.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// In lower case.
    pub name: String,
    pub policy: String,
    pub span: Span,
    pub policy_span: Span,
}

/// Settings for clients with a certain user agent.
#[derive(Debug)]
pub struct UserAgentRule {
    /// A substring of the user agent, compared without case.
    pub pattern: String,
    pub pattern_span: Span,
    /// Replaces the route's profile.
    pub profile: Option<String>,
    pub policies: Vec<Entry>,
    pub span: Span,
}

/// Headers with a standard meaning. They cannot select a policy.
const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "origin",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-api-key",
];

section! {
    /// An endpoint and the dialect that it serves.
    #[subject = "a route"]
    #[title = "route"]
    pub struct RouteEntry<'n> {
        /// Method and path: `POST /path`. The path must match exactly, but for parameters: `{model}`.
        endpoint: Spanned<Endpoint>,
        /// The name of a dialect.
        dialect: Spanned<String>,
        /// The name of a profile.
        profile: Option<Spanned<String>>,
        /// Policies of this route. They take precedence over those of the profile and its `environment:`.
        policies: Entries<'n, DialectPolicies> = Entries::default(),
        /// Request headers that let a client choose a policy: header to policy. Only the values of the policy are
        /// accepted; any other value is a 400.
        headers: Entries<'n, PolicyHeaders> = Entries::default(),
        /// Values of request fields at this endpoint, whatever the client sends: `{ stream: true }`.
        set: ScalarConstants = ScalarConstants::default(),
        /// Overrides `validation` of the gateway. Default: the gateway's.
        validation: Option<NameOf<Validation>>,
    }
}

section! {
    /// A rule for clients with a text in their `User-Agent`: at least one of `profile` and `policies`.
    #[subject = "a user agent rule"]
    #[title = "user agent rule"]
    #[extend("anyOf" = exactly_one(["profile", "policies"]))]
    pub struct UserAgentEntry<'n> {
        /// A text that the `User-Agent` contains, compared without case.
        #[extend("minLength" = 1)]
        pattern as "match": Spanned<String>,
        /// The name of a profile that replaces the route's. Its settings take precedence over the route's policies.
        profile: Option<Spanned<String>>,
        /// Policies: a value for every dialect, or dialect to value. They take precedence over those of the profile.
        policies: Option<Entries<'n, ProfilePolicies>>,
    }
}

impl RoutePlan {
    /// Reports parameters of the path that the dialect reads and the path does not have.
    pub(crate) fn check_parameters(&self, dialect: &DialectPlan, cx: LoadContext) {
        let parameters = self.path_matcher.as_ref().map_or(&[][..], PathMatcher::names);
        for (part, name) in &dialect.request.head_parameters {
            if part == "path" && !parameters.contains(name) {
                let message =
                    format!("the dialect `{}` reads `path.{name}`, which this path does not have", self.dialect);
                let help = format!("add `{{{name}}}` to the path");
                cx.add(Diagnostic::new(Code::UnknownReference, self.span, message).help(help));
            }
        }
    }

    pub(crate) fn new(
        entry: RouteEntry,
        known: &KnownNames,
        validation: Validation,
        cx: LoadContext,
    ) -> Option<RoutePlan> {
        let headers = headers(&entry.headers, cx);
        // Look up all names before returning, so that all mistakes are reported at once.
        let dialect = resolve_name(&entry.dialect, known.dialects, "dialect", cx);
        let profile = resolve_profile(entry.profile.as_ref(), known, cx);
        Some(RoutePlan {
            method: entry.endpoint.method.clone(),
            path: entry.endpoint.path.clone(),
            path_matcher: PathMatcher::new(&entry.endpoint.path),
            set: entry.set,
            dialect: dialect?,
            profile: profile?,
            profile_span: entry.profile.map(|name| name.span),
            validation: entry.validation.map_or(validation, |own| own.0),
            policies: entry.policies.to_vec(),
            headers,
            variants: RouteVariants::default(),
            span: entry.endpoint.span,
        })
    }

    /// Whether both have the same method and the same path; the names of parameters do not matter.
    pub(crate) fn serves_same_requests(&self, other: &RoutePlan) -> bool {
        let literals = |path| PathTemplate::parse(path).map(|template| template.literals);
        self.method == other.method && literals(&self.path) == literals(&other.path)
    }
}

impl UserAgentRule {
    /// Compiles all rules in order. Warns of rules that never apply because an earlier one always matches first.
    pub(crate) fn compile_list(nodes: &[Node], known: &KnownNames, cx: LoadContext) -> Vec<UserAgentRule> {
        let rules: Vec<UserAgentRule> =
            nodes.iter().filter_map(|node| UserAgentRule::compile(node, known, cx)).collect();
        for (at, rule) in rules.iter().enumerate() {
            let layer = cx.sources.layer(rule.span);
            // A layer may take the clients of a layer below it over.
            let earlier = rules[..at]
                .iter()
                .find(|r| user_agent_contains(&rule.pattern, &r.pattern) && cx.sources.layer(r.span) <= layer);
            if let Some(earlier) = earlier {
                let message = format!(
                    "this rule never applies: every user agent with `{}` also has `{}`",
                    rule.pattern, earlier.pattern
                );
                let help = format!("the rule at {} comes first", cx.sources.show(earlier.span));
                cx.add(Diagnostic::new(Code::UnreachableRule, rule.pattern_span, message).help(help));
            }
        }
        rules
    }

    fn compile(node: &Node, known: &KnownNames, cx: LoadContext) -> Option<UserAgentRule> {
        let fields = UserAgentEntry::open(node, "", cx)?;
        let entry = UserAgentEntry::read_fields(&fields);
        if fields.get("profile").is_none() && fields.get("policies").is_none() {
            let message = "a user agent rule needs `profile:`, `policies:` or both";
            fields.not_exactly_one(&["profile", "policies"], Diagnostic::new(Code::MissingKey, node.span, message));
        }
        fields.finish();
        let UserAgentEntry { pattern, profile, policies } = entry?;
        let profile = resolve_profile(profile.as_ref(), known, cx);
        if pattern.is_empty() {
            cx.error(Code::UnknownValue, pattern.span, "`match:` is empty and would match every user agent");
        }
        let policies = policies.map_or(Vec::new(), |p| p.to_vec());
        let pattern_span = pattern.span;
        Some(UserAgentRule { pattern: pattern.value, pattern_span, profile: profile?, policies, span: node.span })
    }
}

/// `Some(None)`: no profile is named. `None`: the name is unknown.
fn resolve_profile(name: Option<&Spanned<String>>, known: &KnownNames, cx: LoadContext) -> Option<Option<String>> {
    match name {
        Some(name) => resolve_name(name, known.profiles, "profile", cx).map(Some),
        None => Some(None),
    }
}

fn resolve_name(name: &Spanned<String>, known: &[&str], noun: &str, cx: LoadContext) -> Option<String> {
    if !known.contains(&name.as_str()) {
        let message = format!("unknown {noun} `{}`", name.value);
        cx.unknown(Code::UnknownReference, name.span, message, name, known.iter().copied());
        return None;
    }
    Some(name.value.clone())
}

/// `POST /path`: a method and a path.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub method: String,
    pub path: String,
}

pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

impl<'n> FromNode<'n> for Endpoint {
    fn from_node(node: &'n Node, at: At) -> Option<Endpoint> {
        let text = text_of(node, at.cx)?;
        let Some((method, path)) = text.split_once(' ').filter(|(_, path)| path.trim_start().starts_with('/')) else {
            at.cx.error(Code::UnknownValue, node.span, format!("`{text}` is not an endpoint: write `POST /path`"));
            return None;
        };
        if !METHODS.contains(&method) {
            let span = at.cx.sources.within(node.span, method);
            let message = format!("unknown HTTP method `{method}`");
            at.cx.unknown(Code::UnknownValue, span, message, method, METHODS.iter().copied());
            return None;
        }
        let path = path.trim();
        if let Err(why) = PathTemplate::parse(path) {
            let span = at.cx.sources.within(node.span, path);
            at.cx.error(Code::UnknownValue, span, format!("invalid path: {why}"));
            return None;
        }
        Some(Endpoint { method: method.to_owned(), path: path.to_owned() })
    }
}

notation_schema!(Endpoint, { "type": "string", "pattern": format!("^({}) \\s*/([!\"$->@-z|}}~]|\\{{[A-Za-z0-9_]+\\}})*$", METHODS.join("|")) });

/// Header to policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyHeaders;

notation_schema!(PolicyHeaders, |generator| {
    let name = generator.subschema_for::<HeaderName>();
    let lists: Vec<&str> = BUILT_IN.iter().filter(|p| p.list).map(|p| p.name).collect();
    let policy = json!({ "type": "string", "not": { "enum": lists } });
    or_null(json_schema!({
        "title": "header to policy", "propertyNames": name, "additionalProperties": policy,
    }))
});

fn headers(entries: &[Entry], cx: LoadContext) -> Vec<HeaderRule> {
    let mut rules: Vec<HeaderRule> = Vec::new();
    for entry in entries {
        let name = entry.key.to_ascii_lowercase();
        let Some(policy) = text_of(&entry.value, cx) else { continue };
        if !is_token(&name) {
            cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not a valid header name", entry.key));
        } else if RESERVED_HEADERS.contains(&name.as_str()) {
            let message = format!("`{}` is a standard header and cannot select a policy", entry.key);
            cx.add(
                Diagnostic::new(Code::UnsafeText, entry.key_span, message)
                    .help("use a header that has no other meaning"),
            );
        } else if rules.iter().any(|r| r.name == name) {
            let message = format!("duplicate header `{}`: header names are case-insensitive", entry.key);
            cx.error(Code::DuplicateName, entry.key_span, message);
        } else if let Some(other) = rules.iter().find(|r| r.policy == policy) {
            let message = format!("two headers select `{policy}`");
            let help = format!("the other one is `{}`", other.name);
            cx.add(Diagnostic::new(Code::DuplicateName, entry.value.span, message).help(help));
        } else {
            let policy = policy.to_owned();
            rules.push(HeaderRule { name, policy, span: entry.key_span, policy_span: entry.value.span });
        }
    }
    rules
}
