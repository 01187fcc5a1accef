//! An entry of `backends:` in gateway.yaml: the URL of a backend, its API key, capabilities and timeouts.

use super::backend_request::RequestSettings;
use super::capabilities::Capabilities;
use super::child_process::ProcessSection;
use super::gateway::KnownNames;
use super::request_values::{EntryValues, RequestHeaders, RequestQuery};
use super::secret::SecretSource;
use super::timeouts::Timeouts;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::grammar::collections::{Entries, List};
use crate::mapping::grammar::notation::{Spanned, notation_schema, text_notation};
use crate::mapping::grammar::unparsed::Unparsed;
use crate::mapping::grammar::{Named, section};
use crate::mapping::source::field_reader::LoadContext;
use core::net::IpAddr;
use std::sync::Arc;
use url::{Host, Url};

#[derive(Clone, Debug)]
pub struct BackendAddress {
    /// Without a trailing slash: paths of the backend file begin with one.
    pub url: String,
    pub api_key: Option<SecretSource>,
    pub settings: RequestSettings,
    pub timeouts: Timeouts,
    /// Link-local and metadata addresses that the mapping explicitly allows. All others are rejected.
    pub allowed_addresses: Vec<IpAddr>,
}

section! {
    /// A backend that models refer to: its backend file, its address, and overrides of its capabilities. A replay
    /// backend has `script`, an HTTP backend has `url`, a child process may have `process`.
    #[subject = Named("the backend")]
    #[title = "backend"]
    pub struct BackendEntry<'n> {
        /// The name of a backend file: the value of its key `backend:`.
        file as "use": Spanned<String>,
        /// The name of the script that a replay backend plays.
        script: Option<Spanned<String>>,
        /// Scheme, host and path. The paths of the backend file are appended to it.
        url: Option<Spanned<String>>,
        /// The key that is sent to the backend.
        api_key: Option<SecretSource>,
        /// Headers that are sent in addition to those of the backend file, or in their place; null omits one. They see
        /// `upstream`, `secret.key` and `build.version`.
        headers: Entries<'n, RequestHeaders> = Entries::default(),
        /// Parameters of the query of every request, like `headers`.
        query: Entries<'n, RequestQuery> = Entries::default(),
        /// Overrides `process` of the backend file, key by key: only for a child process. Read at startup only.
        process: Option<Unparsed<'n, ProcessSection<'n>>>,
        /// Overrides `timeouts` of the gateway, key by key.
        timeouts: Option<Timeouts>,
        /// IP addresses that are exempt from the address check: other link-local and cloud metadata addresses are
        /// rejected.
        allow_addresses: List<IpAddress> = List::default(),
        ..capabilities: Capabilities,
    }
}

text_notation! {
    /// An IP address.
    IpAddress(IpAddr), |text, node, at| {
        let address = text.parse().ok();
        if address.is_none() {
            at.cx.wrong_type(node, "an IP address");
        }
        address
    }
}
notation_schema!(IpAddress, { "type": "string" });

impl BackendAddress {
    /// The address of an HTTP backend. `settings` and `timeouts` are those that the entry can override.
    pub fn new(
        entry: &BackendEntry,
        settings: &RequestSettings,
        timeouts: Timeouts,
        known: &KnownNames,
        cx: LoadContext,
    ) -> Option<BackendAddress> {
        let allowed_addresses: Vec<IpAddr> = entry.allow_addresses.iter().map(|address| address.0).collect();
        let values = EntryValues::new(&entry.headers, &entry.query, known, cx);
        let url = entry.url.as_ref()?;
        match parse_base_url(url, &allowed_addresses) {
            Ok(url) => Some(BackendAddress {
                url,
                api_key: entry.api_key.clone(),
                settings: RequestSettings {
                    capabilities: settings.capabilities.with(&entry.capabilities),
                    entry: values.map(Arc::new),
                },
                timeouts: entry.timeouts.map_or(timeouts, |own| own.or(timeouts)),
                allowed_addresses,
            }),
            Err(why) => {
                cx.add(Diagnostic::new(Code::UnknownValue, url.span, why.message).help(why.help));
                None
            }
        }
    }
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
