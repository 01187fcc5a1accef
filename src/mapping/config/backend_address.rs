//! An entry of `backends:` in gateway.yaml: the URL of a backend, its API key, capabilities and timeouts.

use super::capabilities::Capabilities;
use super::timeouts::Timeouts;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::Node;
use core::net::IpAddr;
use url::{Host, Url};

#[derive(Clone, Debug)]
pub struct BackendAddress {
    /// Without a trailing slash: paths of the backend file begin with one.
    pub url: String,
    pub api_key: Option<SecretSource>,
    pub capabilities: Capabilities,
    pub timeouts: Timeouts,
    /// Link-local and metadata addresses that the mapping explicitly allows. All others are rejected.
    pub allowed_addresses: Vec<IpAddr>,
}

/// Where a secret is read from. The secret itself is never part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SecretSource {
    Env(String),
    File(String),
}

impl SecretSource {
    /// `{ env: NAME }` or `{ file: PATH }`.
    pub fn parse(node: &Node, cx: LoadContext) -> Option<SecretSource> {
        if node.as_text().is_some() {
            cx.add(
                Diagnostic::new(Code::InlineSecret, node.span, "secrets must not be written in a mapping")
                    .help("refer to it with `{ env: NAME }` or `{ file: PATH }`"),
            );
            return None;
        }
        let fields = FieldReader::of(node, "a secret", cx)?;
        let (env, file) = (fields.text("env"), fields.text("file"));
        let source = match (env, file) {
            (Some(name), None) => Some(SecretSource::Env(name.to_owned())),
            (None, Some(path)) => Some(SecretSource::File(path.to_owned())),
            _ => {
                let message = "a secret must have exactly one of `env:` and `file:`";
                fields.not_exactly_one(&["env", "file"], Diagnostic::new(Code::MissingKey, node.span, message));
                None
            }
        };
        fields.finish();
        source
    }
}

impl BackendAddress {
    pub fn parse(
        fields: &FieldReader,
        capabilities: &Capabilities,
        timeouts: Timeouts,
        cx: LoadContext,
    ) -> Option<BackendAddress> {
        let allowed_addresses: Vec<IpAddr> =
            fields.list("allow_addresses").iter().filter_map(|n| ip_address(n, cx)).collect();
        let api_key = fields.get("api_key").map(|n| SecretSource::parse(n, cx));
        let capabilities = capabilities.with_overrides(fields, cx);
        let timeouts = timeouts.with_overrides(fields.get("timeouts"), cx);
        let node = fields.required("url")?;
        let url = match parse_base_url(text_of(node, cx)?, &allowed_addresses) {
            Ok(url) => url,
            Err(why) => {
                cx.add(Diagnostic::new(Code::UnknownValue, node.span, why.message).help(why.help));
                return None;
            }
        };
        // An invalid key is not the same as no key.
        let api_key = match api_key {
            Some(None) => return None,
            other => other.flatten(),
        };
        Some(BackendAddress { url, api_key, capabilities, timeouts, allowed_addresses })
    }
}

fn ip_address(node: &Node, cx: LoadContext) -> Option<IpAddr> {
    let parsed = text_of(node, cx)?.parse().ok();
    if parsed.is_none() {
        cx.wrong_type(node, "an IP address");
    }
    parsed
}

/// Why a URL cannot be the base URL of a backend.
pub struct InvalidUrl {
    pub message: String,
    pub help: &'static str,
}

/// Checks the base URL of a backend: a host, a path, and nothing that could send a request elsewhere (SSRF).
pub fn parse_base_url(text: &str, allowed: &[IpAddr]) -> Result<String, InvalidUrl> {
    let bad = |message: String, help| Err(InvalidUrl { message, help });
    // The text may contain a key, so the message does not repeat it.
    let Ok(url) = Url::parse(text) else {
        return bad("invalid URL".to_owned(), "write the full URL: http://127.0.0.1:9000/v1");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return bad(format!("unsupported URL scheme `{}`", url.scheme()), "use http or https");
    }
    if text.contains(":///") {
        return bad("this URL has no host".to_owned(), "write the full URL: http://127.0.0.1:9000/v1");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("a URL must not contain credentials".to_owned(), "set the key with `api_key: { env: NAME }`");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return bad(
            "the URL must not have a query or a fragment".to_owned(),
            "the backend file defines the rest of the request URL",
        );
    }
    let literal = match url.host() {
        Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
        Some(Host::Domain(_)) => None,
        None => return bad("this URL has no host".to_owned(), "write the full URL: http://127.0.0.1:9000/v1"),
    };
    if let Some(ip) = literal.filter(|ip| is_internal(*ip) && !allowed.contains(ip)) {
        return bad(
            format!("{ip} is a link-local or metadata address"),
            "if this is intended, add it to `allow_addresses:`",
        );
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Whether an address is link-local, unspecified or a cloud metadata service.
pub fn is_internal(ip: IpAddr) -> bool {
    let v4 = |octets: [u8; 4]| {
        let metadata = [[100, 100, 100, 200], [192, 0, 0, 192]].contains(&octets);
        metadata || octets[..2] == [169, 254] || octets[0] == 0
    };
    match ip {
        IpAddr::V4(ip) => v4(ip.octets()),
        IpAddr::V6(ip) => {
            let octets = ip.octets();
            let inside = |at: usize| v4([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
            // ::ffff:a.b.c.d, ::a.b.c.d, 64:ff9b::a.b.c.d (NAT64) and 2002:ab:cd:: (6to4) are a.b.c.d.
            let nat64 = octets[..12] == [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
            let mapped =
                octets[..10] == [0; 10] && matches!(octets[10..12], [0, 0] | [0xff, 0xff]) && !ip.is_loopback();
            let mapped = (mapped || nat64) && inside(12) || octets[..2] == [0x20, 0x02] && inside(2);
            let aws = ip.segments()[..3] == [0xfd00, 0x0ec2, 0] && ip.segments()[7] == 0x254;
            mapped || aws || ip.is_unspecified() || (ip.segments()[0] & 0xffc0) == 0xfe80
        }
    }
}
