//! Where a backend is: its address, its key, how it is asked. What stands in an entry of `backends:` in gateway.yaml.

use super::capabilities::Manners;
use super::timeouts::Timeouts;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::Node;
use core::net::IpAddr;
use url::{Host, Url};

#[derive(Clone, Debug)]
pub struct Reach {
    /// Without a slash at its end: paths of the backend file begin with one.
    pub url: String,
    pub key: Option<KeySource>,
    pub manners: Manners,
    pub timeouts: Timeouts,
    /// Addresses that are refused unless somebody names them, and were named.
    pub allowed: Vec<IpAddr>,
}

/// Where a secret is kept. The secret itself is never part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeySource {
    Env(String),
    File(String),
}

impl KeySource {
    /// `{ env: NAME }` or `{ file: PATH }`.
    pub fn parse(node: &Node, cx: Cx) -> Option<KeySource> {
        if node.as_text().is_some() {
            cx.add(
                Diagnostic::new(Code::PlainSecret, node.span, "a key does not stand in a mapping")
                    .help("say where it is: `{ env: NAME }` or `{ file: PATH }`"),
            );
            return None;
        }
        let fields = Fields::of(node, "a key", cx)?;
        let (env, file) = (fields.text("env"), fields.text("file"));
        let source = match (env, file) {
            (Some(name), None) => Some(KeySource::Env(name.to_owned())),
            (None, Some(path)) => Some(KeySource::File(path.to_owned())),
            _ => {
                let message = "a key has exactly one of `env:` and `file:`";
                fields.not_one_of(&["env", "file"], Diagnostic::new(Code::MissingKey, node.span, message));
                None
            }
        };
        fields.done();
        source
    }
}

impl Reach {
    pub fn parse(fields: &Fields, manners: &Manners, timeouts: Timeouts, cx: Cx) -> Option<Reach> {
        let allowed: Vec<IpAddr> = fields.list("allow_addresses").iter().filter_map(|n| address(n, cx)).collect();
        let key = fields.get("key").map(|n| KeySource::parse(n, cx));
        let manners = manners.refined(fields, cx);
        let timeouts = timeouts.refined(fields.get("timeouts"), cx);
        let node = fields.required("url")?;
        let url = match base(text_of(node, cx)?, &allowed) {
            Ok(url) => url,
            Err(why) => {
                cx.add(Diagnostic::new(Code::UnknownValue, node.span, why.message).help(why.help));
                return None;
            }
        };
        // A key that cannot be read is not the same as no key.
        let key = match key {
            Some(None) => return None,
            other => other.flatten(),
        };
        Some(Reach { url, key, manners, timeouts, allowed })
    }
}

fn address(node: &Node, cx: Cx) -> Option<IpAddr> {
    let parsed = text_of(node, cx)?.parse().ok();
    if parsed.is_none() {
        cx.wrong_type(node, "an IP address");
    }
    parsed
}

/// Why an address cannot be a backend's.
pub struct BadUrl {
    pub message: String,
    pub help: &'static str,
}

/// The base of a backend's URLs, checked: a host, a path, and nothing that could send a request elsewhere.
pub fn base(text: &str, allowed: &[IpAddr]) -> Result<String, BadUrl> {
    let bad = |message: String, help| Err(BadUrl { message, help });
    // What cannot be read may hold a key; it is not repeated.
    let Ok(url) = Url::parse(text) else {
        return bad("this is not a URL".to_owned(), "write it whole: http://127.0.0.1:9000/v1");
    };
    if !matches!(url.scheme(), "http" | "https") {
        return bad(format!("`{}` is not spoken", url.scheme()), "a backend is reached over http or https");
    }
    if text.contains(":///") {
        return bad("this URL has no host".to_owned(), "write it whole: http://127.0.0.1:9000/v1");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return bad("a key does not stand in a URL".to_owned(), "say where it is: `key: { env: NAME }`");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return bad("this URL has more than a path".to_owned(), "what follows the path is said by the backend file");
    }
    let literal = match url.host() {
        Some(Host::Ipv4(ip)) => Some(IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => Some(IpAddr::V6(ip)),
        Some(Host::Domain(_)) => None,
        None => return bad("this URL has no host".to_owned(), "write it whole: http://127.0.0.1:9000/v1"),
    };
    if let Some(ip) = literal.filter(|ip| is_internal(*ip) && !allowed.contains(ip)) {
        return bad(
            format!("{ip} is a link-local or metadata address"),
            "if that is meant, name it in `allow_addresses:`",
        );
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Addresses where machines of a cloud tell their secrets, and the links around them.
pub fn is_internal(ip: IpAddr) -> bool {
    let v4 = |octets: [u8; 4]| {
        let told = [[100, 100, 100, 200], [192, 0, 0, 192]].contains(&octets);
        told || octets[..2] == [169, 254] || octets[0] == 0
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
