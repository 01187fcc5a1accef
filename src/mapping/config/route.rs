//! `routes:` and `by_user_agent:` of gateway.yaml: the dialect of an endpoint, and clients that get other policies.

use super::dialect::DialectPlan;
use super::gateway::{KnownNames, Validation};
use super::path_template::{PathMatcher, PathTemplate};
use super::route_choose::{ChooseEntry, ChooseRule};
use super::route_headers::{RouteHeaders, SelectingHeaders};
use super::scalar_constants::ScalarConstants;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::named_enum;
use crate::mapping::grammar::collections::{Entries, List};
use crate::mapping::grammar::notation::{NameOf, Spanned, exactly_one, notation_schema};
use crate::mapping::grammar::policies::{DialectPolicies, ProfilePolicies};
use crate::mapping::grammar::section::Required;
use crate::mapping::grammar::{At, FromNode, Section, section};
use crate::mapping::policy::variants::{RouteVariants, user_agent_contains};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node};

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
    pub websocket: WebSocket,
    pub head: HeadResponse,
    /// Policies of this route only, unparsed.
    pub policies: Vec<Entry>,
    /// Headers with which a client selects policies or a profile.
    pub headers: RouteHeaders,
    /// Policies by the content of a request: the first rule with a true condition applies.
    pub choose: Vec<ChooseRule>,
    /// The compiled dialect in all variants. Set after the dialects are compiled.
    pub variants: RouteVariants,
    pub span: Span,
}

named_enum! {
    /// The response to HEAD at the endpoint of a route.
    pub enum HeadResponse {
        /// 200.
        Always = "always",
        /// 200, or while no backend can serve a turn the error that a turn would get.
        WhenReady = "when_ready",
    }
}

named_enum! {
    /// The response to a request for a WebSocket.
    pub enum WebSocket {
        /// 405: as for any other method that the endpoint does not have.
        NotAllowed = "not_allowed",
        /// 426: clients that can do without a WebSocket send their request with the method of the route.
        UpgradeRequired = "upgrade_required",
    }
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

section! {
    /// An endpoint and the dialect that it serves.
    #[subject = "a route"]
    #[title = "route"]
    pub struct RouteEntry<'n> {
        /// Method and path: `POST /path`. The path must match exactly, but for parameters: `{model}`.
        endpoint: Required<Option<Spanned<Endpoint>>>,
        /// The name of a dialect.
        dialect: Spanned<String>,
        /// The name of a profile.
        profile: Option<Spanned<String>>,
        /// Policies of this route. They take precedence over those of the profile and its `environment:`.
        policies: Entries<'n, DialectPolicies> = Entries::default(),
        /// Request headers that let a client choose: header to policy, or to a map for other words and for profiles. Only
        /// the values of the policy are accepted; any other value is a 400.
        headers: Entries<'n, SelectingHeaders> = Entries::default(),
        /// Policies that depend on the request: the first rule with a true `when:` applies. Read after the request.
        choose: List<ChooseEntry<'n>> = List::default(),
        /// Values of request fields at this endpoint, whatever the client sends: `{ stream: true }`.
        set: ScalarConstants = ScalarConstants::default(),
        /// Overrides `validation` of the gateway. Default: the gateway's.
        validation: Option<NameOf<Validation>>,
        /// The response to a request for a WebSocket (GET with `Upgrade`) at this path.
        websocket: NameOf<WebSocket> = NameOf(WebSocket::NotAllowed),
        /// The response to HEAD at this path.
        head: NameOf<HeadResponse> = NameOf(HeadResponse::Always),
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
        let headers = RouteHeaders::new(&entry.headers, known, cx);
        let choose = entry.choose.iter().filter_map(|rule| ChooseRule::new(rule, cx)).collect();
        // Look up all names before returning, so that all mistakes are reported at once.
        let dialect = resolve_name(&entry.dialect, known.dialects, "dialect", cx);
        let profile = resolve_profile(entry.profile.as_ref(), known, cx);
        let endpoint = entry.endpoint.0?;
        Some(RoutePlan {
            method: endpoint.method.clone(),
            path: endpoint.path.clone(),
            path_matcher: PathMatcher::new(&endpoint.path),
            set: entry.set,
            dialect: dialect?,
            profile: profile?,
            profile_span: entry.profile.map(|name| name.span),
            validation: entry.validation.map_or(validation, |own| own.0),
            websocket: entry.websocket.0,
            head: entry.head.0,
            policies: entry.policies.to_vec(),
            headers,
            choose,
            variants: RouteVariants::default(),
            span: endpoint.span,
        })
    }

    /// Whether both have the same method and the same path; the names of parameters do not matter.
    /// Whether a request with this path can reach it.
    pub fn serves_path(&self, path: &str) -> bool {
        match PathMatcher::new(&self.path) {
            Some(matcher) => !path.contains('{') && !matcher.parameters(path).is_empty(),
            None => self.path == path,
        }
    }

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

pub(super) fn resolve_name(name: &Spanned<String>, known: &[&str], noun: &str, cx: LoadContext) -> Option<String> {
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
