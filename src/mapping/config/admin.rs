//! What those who run the gateway ask it: where its status is, and the listener that takes their orders.

use super::backend_address::KeySource;
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::source::field_reader::{Cx, Fields, text_of};
use crate::mapping::source::yaml::Node;
use core::net::SocketAddr;

/// Where the gateway tells how it is: the generation that serves, what was refused last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nobody said anything: at the usual path, for those who may ask.
    Usual,
    At(String),
    Off,
}

/// A second listener, for those who run the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    pub listen: String,
    pub token: KeySource,
}

/// The usual path.
pub const STATUS: &str = "/status";
/// Where the token of `--admin` is.
pub const ADMIN_TOKEN: &str = "REFRAME_ADMIN_TOKEN";

impl Status {
    /// `/path` or `off`.
    pub fn parse(node: &Node, cx: Cx) -> Option<Status> {
        match text_of(node, cx)? {
            "off" => Some(Status::Off),
            path if path.starts_with('/') => Some(Status::At(path.to_owned())),
            other => {
                cx.error(Code::UnknownValue, node.span, format!("`{other}` is not a path: write `/status`, or `off`"));
                None
            }
        }
    }
}

impl Admin {
    pub fn parse(node: &Node, cx: Cx) -> Option<Admin> {
        let fields = Fields::of(node, "`admin:`", cx)?;
        let listen = fields.required_text("listen");
        let token = match fields.get("token") {
            Some(node) => KeySource::parse(node, cx),
            None => Some(KeySource::Env(ADMIN_TOKEN.to_owned())),
        };
        fields.done();
        let literal = listen.and_then(|text| text.parse::<SocketAddr>().ok());
        if let Some(node) = node.get("listen").filter(|_| literal.is_some_and(|at| !at.ip().is_loopback())) {
            cx.add(
                Diagnostic::new(Code::UnknownValue, node.span, "the admin listener would be reached from elsewhere")
                    .help("it listens on this machine only: 127.0.0.1:PORT"),
            );
            return None;
        }
        Some(Admin { listen: listen?.to_owned(), token: token? })
    }
}
