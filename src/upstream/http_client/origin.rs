//! The URL of a backend, parsed once: a request only appends its path.

use http::uri::{Authority, InvalidUri, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use url::{Position, Url};

/// Where connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    authority: Authority,
}

/// The base URL of a backend.
#[derive(Clone, Debug)]
pub struct BaseUrl {
    pub origin: Origin,
    /// Without a trailing slash.
    url: String,
    /// The part of the URL before its path.
    path_start: usize,
}

impl Origin {
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The value of `Host`.
    pub fn host(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.authority.as_str()).ok()
    }

    /// The URL of a path: connections need one, and requests over HTTP/2.
    pub fn uri(&self, path: PathAndQuery) -> Result<Uri, http::Error> {
        Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone()).path_and_query(path).build()
    }
}

impl BaseUrl {
    /// `None`: it is not the URL of an HTTP server. The load has checked that.
    pub fn parse(url: &str) -> Option<BaseUrl> {
        let parsed = Url::parse(url).ok()?;
        let scheme = parsed.scheme().parse().ok()?;
        let authority = parsed[Position::BeforeHost..Position::AfterPort].parse().ok()?;
        let url = parsed[..Position::AfterPath].trim_end_matches('/').to_owned();
        let path_start = parsed[..Position::BeforePath].len();
        Some(BaseUrl { origin: Origin { scheme, authority }, url, path_start })
    }

    /// The path and query of a request. What a URL cannot contain as it is, such as a space, is encoded.
    pub fn request_path(&self, path: &str) -> Option<PathAndQuery> {
        let url = format!("{}{path}", self.url);
        let own = url.get(self.path_start..)?;
        if is_plain(own) {
            return own.parse().ok();
        }
        let parsed = Url::parse(&url).ok()?;
        let path: Result<PathAndQuery, InvalidUri> = parsed[Position::BeforePath..Position::AfterQuery].parse();
        path.ok()
    }
}

/// Whether the URL standard changes nothing in a path and query.
fn is_plain(path: &str) -> bool {
    let is_unchanged = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~!$&()*+,;=:@?%".contains(&byte);
    // Segments of dots are resolved, also encoded ones.
    let has_dots = || path.contains("/.") || path.contains("%2e") || path.contains("%2E");
    path.starts_with('/') && path.bytes().all(is_unchanged) && !has_dots()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../../tests/unit/upstream_http_client_origin.rs"]
mod tests;
