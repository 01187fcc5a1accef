//! Keepalive comments in streams, and the clients that cannot parse them: by header, query parameter or user agent.

use super::router::header;
use crate::mapping::config::timeouts::Keepalive;
use poem::Request;
use std::time::Duration;
use url::form_urlencoded;

/// The keepalive interval for a client; `None` if it is disabled by `disable_for`.
pub fn keepalive_interval(plan: &Keepalive, request: &Request) -> Option<Duration> {
    let header = |name: &str| header(request, name);
    let off = &plan.disable_for;
    let by_header = off.header.as_ref().and_then(|name| header(&name.0)) == Some("1");
    let mut query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    let by_query =
        off.query.as_ref().is_some_and(|query_name| query.any(|(name, value)| name == **query_name && value == "1"));
    let agent = || header("user-agent").unwrap_or_default().to_lowercase();
    let by_agent = !off.user_agents.is_empty() && {
        let agent = agent();
        off.user_agents.iter().any(|word| agent.contains(&word.0))
    };
    plan.every.0.filter(|_| !(by_header || by_query || by_agent))
}
