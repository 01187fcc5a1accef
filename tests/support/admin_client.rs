//! Whoever runs a gateway: reloads it, and asks how it is.

use super::{Client, Reply, Request};
use serde_json::Value;
use std::net::SocketAddr;

pub const TOKEN: &str = "open sesame";

/// Knows the token.
#[derive(Clone, Copy)]
pub struct Operator {
    pub addr: SocketAddr,
}

impl Operator {
    pub fn new(addr: SocketAddr) -> Operator {
        Operator { addr }
    }

    pub fn ask(&self, request: Request) -> Reply {
        Client::connect(self.addr).ask(request.header("authorization", &format!("Bearer {TOKEN}")))
    }

    /// The status of the answer, and what it says.
    pub fn reload(&self) -> (u16, Value) {
        let reply = self.ask(Request::new("POST", "/admin/reload"));
        (reply.status(), reply.json())
    }

    pub fn status(&self) -> Value {
        let reply = self.ask(Request::get("/status"));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json()
    }

    pub fn metrics(&self) -> String {
        self.ask(Request::get("/metrics")).text()
    }
}
