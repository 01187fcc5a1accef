//! How clients and operators learn which fields of a request were not sent to the backend.

use crate::mapping::config::dialect::DialectPlan;
use poem::Response;
use poem::http::{HeaderName, HeaderValue};

/// Labels of a metric, the field and the reason: fields that the dialect knows by their name, all others as `unknown`, so
/// that clients cannot create labels.
pub fn labels<'f>(dialect: &DialectPlan, field: &'f str) -> (&'f str, &'static str) {
    let name = field.split(['.', '[']).next().unwrap_or_default();
    let is_known =
        dialect.request.known_members.iter().any(|k| k == name) || matches!(name, "items" | "parts" | "tools");
    if is_known { (name, "unsupported") } else { ("unknown", "unknown") }
}

/// Lists the fields in the header of this name, if there are any.
pub fn add_dropped_header(response: &mut Response, name: &str, dropped: &[String]) {
    if !dropped.is_empty()
        && let (Ok(name), Ok(value)) = (HeaderName::try_from(name), dropped_header(dropped))
    {
        response.headers_mut().insert(name, value);
    }
}

/// The value of `x-reframe-dropped`. The client chose the names, so control and non-ASCII characters are escaped and
/// long lists are truncated.
fn dropped_header(dropped: &[String]) -> Result<HeaderValue, poem::http::header::InvalidHeaderValue> {
    const MAX_LENGTH: usize = 1000;
    let mut text = String::new();
    for name in dropped {
        let name = percent_encoding::utf8_percent_encode(name, percent_encoding::CONTROLS).to_string();
        if text.len() + name.len() > MAX_LENGTH {
            text.push_str(", ...");
            break;
        }
        text += if text.is_empty() { "" } else { ", " };
        text += &name;
    }
    HeaderValue::from_str(&text)
}
