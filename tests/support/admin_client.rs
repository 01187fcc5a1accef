//! A client of the admin listener.

use super::{Client, Reply, Request};
use serde_json::Value;
use std::net::SocketAddr;

pub const TOKEN: &str = "open sesame";

/// Sends the admin token with every request.
#[derive(Clone, Copy)]
pub struct AdminClient {
    pub addr: SocketAddr,
}

impl AdminClient {
    pub fn new(addr: SocketAddr) -> AdminClient {
        AdminClient { addr }
    }

    pub fn fetch(&self, request: Request) -> Reply {
        Client::connect(self.addr).fetch(request.header("authorization", &format!("Bearer {TOKEN}")))
    }

    /// The status and body of the response.
    pub fn reload(&self) -> (u16, Value) {
        let reply = self.fetch(Request::new("POST", "/admin/reload"));
        (reply.status(), reply.json())
    }

    pub fn status(&self) -> Value {
        let reply = self.fetch(Request::get("/status"));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json()
    }

    pub fn metrics(&self) -> String {
        self.fetch(Request::get("/metrics")).text()
    }
}
