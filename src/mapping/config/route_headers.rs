//! `headers:` of a route: request headers with which a client selects a policy or a profile.

use super::gateway::KnownNames;
use super::route::resolve_name;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::named_enum;
use crate::domain::policy::BUILT_IN;
use crate::mapping::grammar::collections::{List, Map};
use crate::mapping::grammar::notation::{HeaderName, NameOf, Spanned, is_token, notation_schema, or_null};
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, YamlKind};
use schemars::json_schema;
use serde_json::json;

named_enum! {
    /// What happens to a header with a value that it cannot have: a 400, or it counts as absent.
    pub enum UnknownHeaderValue { Reject = "reject", Ignore = "ignore" }
}

/// The headers of a route that select something.
#[derive(Clone, Debug, Default)]
pub struct RouteHeaders {
    pub policies: Vec<HeaderRule>,
    pub profile: Option<ProfileHeader>,
}

/// `x-usage: usage`: the header selects the value of one policy.
#[derive(Clone, Debug)]
pub struct HeaderRule {
    /// In lower case.
    pub name: String,
    pub policy: String,
    /// Other words for values: word, value, span of the value.
    pub words: Vec<(String, String, Span)>,
    pub unknown: UnknownHeaderValue,
    pub span: Span,
    pub policy_span: Span,
}

/// The header that selects one of these profiles instead of the route's.
#[derive(Clone, Debug)]
pub struct ProfileHeader {
    /// In lower case.
    pub name: String,
    pub profiles: Vec<String>,
    pub unknown: UnknownHeaderValue,
    pub span: Span,
}

/// Headers with a standard meaning. They cannot select anything.
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
    /// What a request header selects: exactly one of `policy` and `profiles`.
    #[subject = "a header"]
    #[title = "selecting header"]
    #[exactly_one("policy", "profiles")]
    pub struct HeaderEntry {
        /// The policy that gets the value of the header.
        policy: Option<Spanned<String>>,
        /// The profiles that the header may name. The profile replaces the one of the route and of a user-agent rule, and
        /// the policies of that rule do not apply.
        profiles: Option<List<Spanned<String>>>,
        /// Other words for values of the policy: word to value.
        words: Map<Spanned<String>> = Map::default(),
        /// A value that is none of these: `reject` is a 400, `ignore` treats the header as absent.
        unknown: NameOf<UnknownHeaderValue> = NameOf(UnknownHeaderValue::Reject),
    }
}

/// Header to policy, or to what it selects in detail.
#[derive(Clone, Copy, Debug)]
pub struct SelectingHeaders;

notation_schema!(SelectingHeaders, |generator| {
    let name = generator.subschema_for::<HeaderName>();
    let details = generator.subschema_for::<HeaderEntry>();
    let lists: Vec<&str> = BUILT_IN.iter().filter(|p| p.list).map(|p| p.name).collect();
    let policy = json!({ "type": "string", "not": { "enum": lists } });
    or_null(json_schema!({
        "title": "header to policy, or to a map",
        "propertyNames": name,
        "additionalProperties": { "if": { "type": "object" }, "then": details, "else": policy },
    }))
});

impl RouteHeaders {
    pub(super) fn new(entries: &[Entry], known: &KnownNames, cx: LoadContext) -> RouteHeaders {
        let mut headers = RouteHeaders::default();
        for entry in entries {
            headers.add(entry, known, cx);
        }
        headers
    }

    fn add(&mut self, entry: &Entry, known: &KnownNames, cx: LoadContext) {
        let name = entry.key.to_ascii_lowercase();
        let details = match &entry.value.kind {
            YamlKind::Map(_) => {
                HeaderEntry::from_node(&entry.value, At { key: &entry.key, key_span: entry.key_span, cx })
            }
            _ => text_of(&entry.value, cx).map(|policy| {
                let (span, key_span) = (entry.value.span, entry.key_span);
                let policy = Some(Spanned { value: policy.to_owned(), span, key_span });
                HeaderEntry {
                    policy,
                    profiles: None,
                    words: Map::default(),
                    unknown: NameOf(UnknownHeaderValue::Reject),
                }
            }),
        };
        let Some(HeaderEntry { policy, profiles, words, unknown: NameOf(unknown) }) = details else { return };
        let mut names = self.policies.iter().map(|r| &r.name).chain(self.profile.as_ref().map(|p| &p.name));
        if !is_token(&name) {
            cx.error(Code::UnsafeText, entry.key_span, format!("`{}` is not a valid header name", entry.key));
        } else if RESERVED_HEADERS.contains(&name.as_str()) {
            let message = format!("`{}` is a standard header and cannot select a policy", entry.key);
            cx.add(
                Diagnostic::new(Code::UnsafeText, entry.key_span, message)
                    .help("use a header that has no other meaning"),
            );
        } else if names.any(|other| *other == name) {
            let message = format!("duplicate header `{}`: header names are case-insensitive", entry.key);
            cx.error(Code::DuplicateName, entry.key_span, message);
        } else if let Some(profiles) = profiles {
            if let Some(other) = &self.profile {
                let message = "two headers select a profile".to_owned();
                let help = format!("the other one is `{}`", other.name);
                cx.add(Diagnostic::new(Code::DuplicateName, entry.key_span, message).help(help));
                return;
            }
            let profiles =
                profiles.iter().filter_map(|name| resolve_name(name, known.profiles, "profile", cx)).collect();
            self.profile = Some(ProfileHeader { name, profiles, unknown, span: entry.key_span });
        } else if let Some(policy) = policy {
            if let Some(other) = self.policies.iter().find(|r| r.policy == policy.value) {
                let message = format!("two headers select `{}`", policy.value);
                let help = format!("the other one is `{}`", other.name);
                cx.add(Diagnostic::new(Code::DuplicateName, policy.span, message).help(help));
                return;
            }
            let words = words.0.into_iter().map(|word| (word.key, word.value.value, word.value.span)).collect();
            let (policy, policy_span) = (policy.value, policy.span);
            self.policies.push(HeaderRule { name, policy, words, unknown, span: entry.key_span, policy_span });
        }
    }
}
