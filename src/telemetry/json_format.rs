//! Log lines as JSON: one object per line, with the fields of the event as members.

use super::ACCESS_TARGET;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

pub struct JsonFormat;

impl<S, N> FormatEvent<S, N> for JsonFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let now = Timestamp::now();
        let metadata = event.metadata();
        let mut members = Members(Map::new());
        members.add("ts", json!(format!("{now:.3}")));
        members.add("ts_ms", json!(now.as_millisecond()));
        members.add("level", json!(metadata.level().as_str().to_lowercase()));
        if metadata.target() == ACCESS_TARGET {
            members.add("kind", json!("access"));
            members.add("component", json!("http"));
            members.add("event", json!("access_log"));
        }
        event.record(&mut members);
        writeln!(writer, "{}", Value::Object(members.0))
    }
}

/// The members of a line, in order.
struct Members(Map<String, Value>);

impl Members {
    fn add(&mut self, name: &str, value: Value) {
        // The text of the event, and the id of the request.
        let name = match name {
            "message" => "msg",
            "id" => "req_id",
            name => name,
        };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Members {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field.name(), json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), json!(format!("{value:?}")));
    }
}
