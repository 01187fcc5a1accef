//! `routes:` and `by_user_agent:` of gateway.yaml: what is spoken at an endpoint, and who gets it with other policies.

use super::backend_request::is_token;
use super::gateway::{Known, Validation, endpoint};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::policy::variants::{Variants, agent_has};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::{Entry, Node};

#[derive(Debug)]
pub struct RoutePlan {
    pub method: String,
    pub path: String,
    pub dialect: String,
    pub profile: Option<String>,
    /// Where the profile is named; it may also come from the command line.
    pub profile_span: Option<Span>,
    pub validation: Validation,
    /// Policies that hold here only, as they stand in the file.
    pub policies: Vec<Entry>,
    /// Headers with which a client chooses a policy.
    pub headers: Vec<HeaderRule>,
    /// What it speaks, compiled: filled in when the dialects are.
    pub variants: Variants,
    pub span: Span,
}

/// `x-usage: usage`: a client may choose the words of one policy.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// In lower case.
    pub name: String,
    pub policy: String,
    pub span: Span,
    pub policy_span: Span,
}

/// What a client gets whose user agent has a word in it.
#[derive(Debug)]
pub struct AgentRule {
    /// As it is written; upper and lower case are one.
    pub word: String,
    pub word_span: Span,
    /// Instead of the route's.
    pub profile: Option<String>,
    pub policies: Vec<Entry>,
    pub span: Span,
}

/// Headers that have a meaning of their own.
const TAKEN: &[&str] = &[
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
    pub(crate) fn parse(node: &Node, known: &Known, validation: Validation, cx: Cx) -> Option<RoutePlan> {
        let fields = Fields::of(node, "a route", cx)?;
        let at = fields.required("endpoint")?;
        let dialect = fields.required("dialect");
        let profile = fields.get("profile");
        let own = fields.get("validation").and_then(|n| cx.word(n, Validation::WORDS)).and_then(Validation::from_word);
        let policies = fields.map("policies").to_vec();
        let headers = headers(fields.map("headers"), cx);
        fields.done();
        // All are looked up before one is missed, so that two slips are told at once.
        let dialect = dialect.and_then(|node| named(node, known.dialects, "dialect", cx));
        let profile_span = profile.map(|node| node.span);
        let profile = match profile {
            Some(node) => named(node, known.profiles, "profile", cx).map(Some),
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
            variants: Variants::default(),
            span: at.span,
        })
    }
}

impl AgentRule {
    /// All of them, in their order. Warns of those that an earlier one leaves nobody to.
    pub(crate) fn parse_all(nodes: &[Node], known: &Known, cx: Cx) -> Vec<AgentRule> {
        let rules: Vec<AgentRule> = nodes.iter().filter_map(|n| AgentRule::parse(n, known, cx)).collect();
        for (at, rule) in rules.iter().enumerate() {
            let earlier = rules[..at].iter().find(|r| agent_has(&rule.word, &r.word));
            if let Some(earlier) = earlier {
                let message =
                    format!("this rule can never hold: whoever says `{}` also says `{}`", rule.word, earlier.word);
                let help = format!("the rule at {} comes first", cx.sources.show(earlier.span));
                cx.add(Diagnostic::new(Code::UnreachableRule, rule.word_span, message).help(help));
            }
        }
        rules
    }

    fn parse(node: &Node, known: &Known, cx: Cx) -> Option<AgentRule> {
        let fields = Fields::of(node, "a rule by user agent", cx)?;
        let word = fields.required("match");
        let (profile, policies) = (fields.get("profile"), fields.get("policies"));
        if profile.is_none() && policies.is_none() {
            let message = "a rule by user agent has `profile:`, `policies:` or both";
            fields.not_one_of(&["profile", "policies"], Diagnostic::new(Code::MissingKey, node.span, message));
        }
        let policies = fields.map("policies").to_vec();
        fields.done();
        let profile = match profile {
            Some(node) => named(node, known.profiles, "profile", cx).map(Some),
            None => Some(None),
        };
        let word = word?;
        let (text, word_span) = (text_of(word, cx)?.to_owned(), word.span);
        if text.is_empty() {
            cx.error(Code::UnknownValue, word_span, "`match:` is empty, and would be in every user agent");
        }
        Some(AgentRule { word: text, word_span, profile: profile?, policies, span: node.span })
    }
}

fn named(node: &Node, known: &[&str], noun: &str, cx: Cx) -> Option<String> {
    let text = text_of(node, cx)?;
    if !known.contains(&text) {
        let message = format!("no {noun} is called `{text}`");
        cx.unknown(Code::UnknownReference, node.span, message, text, known.iter().copied());
        return None;
    }
    Some(text.to_owned())
}

fn headers(entries: &[Entry], cx: Cx) -> Vec<HeaderRule> {
    let mut rules: Vec<HeaderRule> = Vec::new();
    for entry in entries {
        let name = entry.key.to_ascii_lowercase();
        let Some(policy) = text_of(&entry.value, cx) else { continue };
        if !is_token(&name) {
            cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not the name of a header", entry.key));
        } else if TAKEN.contains(&name.as_str()) {
            let message = format!("`{}` has a meaning of its own, and cannot choose a policy", entry.key);
            cx.add(
                Diagnostic::new(Code::UnsafeText, entry.key_span, message).help("take a header that nobody else reads"),
            );
        } else if rules.iter().any(|r| r.name == name) {
            let message = format!("`{}` stands twice: upper and lower case are one", entry.key);
            cx.error(Code::DuplicateName, entry.key_span, message);
        } else if let Some(other) = rules.iter().find(|r| r.policy == policy) {
            let message = format!("two headers choose `{policy}`");
            let help = format!("the other one is `{}`", other.name);
            cx.add(Diagnostic::new(Code::DuplicateName, entry.value.span, message).help(help));
        } else {
            let policy = policy.to_owned();
            rules.push(HeaderRule { name, policy, span: entry.key_span, policy_span: entry.value.span });
        }
    }
    rules
}
