//! `status:` and `admin:` of gateway.yaml: the status endpoint and the admin listener.

use super::backend_address::SecretSource;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::Node;
use core::net::SocketAddr;

/// The status endpoint: the current generation, and the last rejected set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusEndpoint {
    /// Not set: at the default path, with authentication.
    Default,
    Path(String),
    Off,
}

/// A second listener for administrators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminListener {
    pub listen: String,
    pub token: SecretSource,
}

pub const DEFAULT_STATUS_PATH: &str = "/status";
/// The environment variable with the default admin token.
pub const ADMIN_TOKEN_VAR: &str = "REFRAME_ADMIN_TOKEN";

impl StatusEndpoint {
    /// `/path` or `off`.
    pub fn parse(node: &Node, cx: LoadContext) -> Option<StatusEndpoint> {
        match text_of(node, cx)? {
            "off" => Some(StatusEndpoint::Off),
            path if path.starts_with('/') => Some(StatusEndpoint::Path(path.to_owned())),
            other => {
                cx.error(Code::UnknownValue, node.span, format!("`{other}` is not a path: write `/status` or `off`"));
                None
            }
        }
    }
}

impl AdminListener {
    pub fn parse(node: &Node, cx: LoadContext) -> Option<AdminListener> {
        let fields = FieldReader::of(node, "`admin:`", cx)?;
        let listen = fields.required_text("listen");
        let token = match fields.get("token") {
            Some(node) => SecretSource::parse(node, cx),
            None => Some(SecretSource::Env(ADMIN_TOKEN_VAR.to_owned())),
        };
        fields.finish();
        let literal = listen.and_then(|text| text.parse::<SocketAddr>().ok());
        if let Some(node) = node.get("listen").filter(|_| literal.is_some_and(|at| !at.ip().is_loopback())) {
            cx.add(
                Diagnostic::new(Code::UnknownValue, node.span, "the admin listener must use a loopback address")
                    .help("write 127.0.0.1:PORT"),
            );
            return None;
        }
        Some(AdminListener { listen: listen?.to_owned(), token: token? })
    }
}
