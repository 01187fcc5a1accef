//! `status:` and `admin:` of gateway.yaml: the status endpoint and the admin listener.

use super::path_template::PathTemplate;
use super::secret::SecretSource;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::grammar::notation::{notation_schema, text_notation};
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::field_reader::text_of;
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

pub const DEFAULT_STATUS_PATH: &str = "/status";
/// The environment variable with the default admin token.
pub const ADMIN_TOKEN_VAR: &str = "REFRAME_ADMIN_TOKEN";

impl<'n> FromNode<'n> for StatusEndpoint {
    fn from_node(node: &'n Node, at: At) -> Option<StatusEndpoint> {
        match text_of(node, at.cx)? {
            "off" => Some(StatusEndpoint::Off),
            path if is_literal_path(path) => Some(StatusEndpoint::Path(path.to_owned())),
            other => {
                let message = format!("`{other}` is not a path: write `/status` or `off`");
                at.cx.error(Code::UnknownValue, node.span, message);
                None
            }
        }
    }
}

notation_schema!(StatusEndpoint, { "type": "string", "pattern": "^(/|off$)" });

text_notation! {
    /// A path without parameters.
    LiteralPath(String), |text, node, at| {
        if !is_literal_path(text) {
            at.cx.error(Code::UnknownValue, node.span, format!("`{text}` is not a path: write `/{}`", at.key));
        }
        is_literal_path(text).then(|| text.to_owned())
    }
}
notation_schema!(LiteralPath, { "type": "string", "pattern": "^/[^{}]*$" });

fn is_literal_path(path: &str) -> bool {
    path.starts_with('/') && PathTemplate::parse(path).is_ok_and(|template| template.parameters.is_empty())
}

section! {
    /// A listener for administrators.
    #[derive(PartialEq, Eq)]
    #[subject = "`admin:`"]
    #[title = "admin"]
    pub struct AdminListener {
        /// A local `HOST:PORT`; port 0 picks a free port. `--admin` takes precedence.
        listen: LocalAddress,
        /// The token that callers send as `Authorization: Bearer TOKEN`. Default: the environment variable
        /// `REFRAME_ADMIN_TOKEN`.
        token: SecretSource = SecretSource::Env(ADMIN_TOKEN_VAR.to_owned()),
    }
}

text_notation! {
    /// `HOST:PORT` of this machine.
    LocalAddress(String), |text, node, at| {
        let is_remote = text.parse::<SocketAddr>().is_ok_and(|address| !address.ip().is_loopback());
        if is_remote {
            let message = "the admin listener must use a loopback address";
            at.cx.add(Diagnostic::new(Code::UnknownValue, node.span, message).help("write 127.0.0.1:PORT"));
        }
        (!is_remote).then(|| text.to_owned())
    }
}
notation_schema!(LocalAddress, { "type": "string" });
