//! `routes:` and `by_user_agent:` of gateway.yaml: the dialect of an endpoint, and clients that get other policies.

use super::backend_request::is_token;
use super::gateway::{KnownNames, Validation, endpoint};
use super::path_template::PathTemplate;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::policy::variants::{RouteVariants, user_agent_contains};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node};

#[derive(Debug)]
pub struct RoutePlan {
    pub method: String,
    pub path: String,
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

impl RoutePlan {
    pub(crate) fn parse(node: &Node, known: &KnownNames, validation: Validation, cx: LoadContext) -> Option<RoutePlan> {
        let fields = FieldReader::of(node, "a route", cx)?;
        let at = fields.required("endpoint")?;
        let dialect = fields.required("dialect");
        let profile = fields.get("profile");
        let own =
            fields.get("validation").and_then(|n| cx.one_of(n, Validation::NAMES)).and_then(Validation::from_name);
        let policies = fields.map("policies").to_vec();
        let headers = headers(fields.map("headers"), cx);
        fields.finish();
        // Look up all names before returning, so that all mistakes are reported at once.
        let dialect = dialect.and_then(|node| resolve_name(node, known.dialects, "dialect", cx));
        let profile_span = profile.map(|node| node.span);
        let profile = match profile {
            Some(node) => resolve_name(node, known.profiles, "profile", cx).map(Some),
            None => Some(None),
        };
        let (method, path) = endpoint(at, cx)?;
        Some(RoutePlan {
            method,
            path,
            dialect: dialect?,
            profile: profile?,
            profile_span,
            validation: own.unwrap_or(validation),
            policies,
            headers,
            variants: RouteVariants::default(),
            span: at.span,
        })
    }

    /// Whether both have the same method and the same path; the names of parameters do not matter.
    pub(crate) fn serves_same_requests(&self, other: &RoutePlan) -> bool {
        let literals = |path| PathTemplate::parse(path).map(|template| template.literals);
        self.method == other.method && literals(&self.path) == literals(&other.path)
    }
}

impl UserAgentRule {
    /// Parses all rules in order. Warns of rules that never apply because an earlier one always matches first.
    pub(crate) fn parse_list(nodes: &[Node], known: &KnownNames, cx: LoadContext) -> Vec<UserAgentRule> {
        let rules: Vec<UserAgentRule> = nodes.iter().filter_map(|n| UserAgentRule::parse(n, known, cx)).collect();
        for (at, rule) in rules.iter().enumerate() {
            let earlier = rules[..at].iter().find(|r| user_agent_contains(&rule.pattern, &r.pattern));
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

    fn parse(node: &Node, known: &KnownNames, cx: LoadContext) -> Option<UserAgentRule> {
        let fields = FieldReader::of(node, "a user agent rule", cx)?;
        let pattern = fields.required("match");
        let (profile, policies) = (fields.get("profile"), fields.get("policies"));
        if profile.is_none() && policies.is_none() {
            let message = "a user agent rule needs `profile:`, `policies:` or both";
            fields.not_exactly_one(&["profile", "policies"], Diagnostic::new(Code::MissingKey, node.span, message));
        }
        let policies = fields.map("policies").to_vec();
        fields.finish();
        let profile = match profile {
            Some(node) => resolve_name(node, known.profiles, "profile", cx).map(Some),
            None => Some(None),
        };
        let pattern = pattern?;
        let (text, pattern_span) = (text_of(pattern, cx)?.to_owned(), pattern.span);
        if text.is_empty() {
            cx.error(Code::UnknownValue, pattern_span, "`match:` is empty and would match every user agent");
        }
        Some(UserAgentRule { pattern: text, pattern_span, profile: profile?, policies, span: node.span })
    }
}

fn resolve_name(node: &Node, known: &[&str], noun: &str, cx: LoadContext) -> Option<String> {
    let text = text_of(node, cx)?;
    if !known.contains(&text) {
        let message = format!("unknown {noun} `{text}`");
        cx.unknown(Code::UnknownReference, node.span, message, text, known.iter().copied());
        return None;
    }
    Some(text.to_owned())
}

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
