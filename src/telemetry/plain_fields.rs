//! The fields of log lines as text without colours: the same as those of `tracing_subscriber`, which formats each name and
//! each character apart, for colours that are not there. Every response has two lines with many fields.

use std::fmt::{self, Debug, Write};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

pub struct PlainFields;

struct PlainVisitor<'w> {
    writer: Writer<'w>,
    is_empty: bool,
    result: fmt::Result,
}

/// Escapes what a terminal would take for a command, as `tracing_subscriber` does in messages.
struct Harmless<'v, 'w>(&'v mut Writer<'w>);

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        if writer.has_ansi_escapes() {
            return DefaultFields::new().format_fields(writer, fields);
        }
        let mut visitor = PlainVisitor { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

impl PlainVisitor<'_> {
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut Self) -> fmt::Result) {
        // Those of `log` belong to the metadata.
        if self.result.is_ok() && !field.name().starts_with("log.") {
            self.result = self.write_name(field.name()).and_then(|()| value(self));
        }
    }

    fn write_name(&mut self, name: &str) -> fmt::Result {
        if !std::mem::take(&mut self.is_empty) {
            self.writer.write_char(' ')?;
        }
        if name == "message" {
            return Ok(());
        }
        self.writer.write_str(name.strip_prefix("r#").unwrap_or(name))?;
        self.writer.write_char('=')
    }
}

impl Visit for PlainVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else if value.bytes().all(is_plain) {
            self.write(field, |this| {
                this.writer.write_char('"')?;
                this.writer.write_str(value)?;
                this.writer.write_char('"')
            });
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, |this| write!(this.writer, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, |this| this.writer.write_str(if value { "true" } else { "false" }));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let is_message = field.name() == "message";
        self.write(field, |this| match is_message {
            true => write!(Harmless(&mut this.writer), "{value:?}"),
            false => write!(this.writer, "{value:?}"),
        });
    }
}

impl Write for Harmless<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_harmless = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
        if text.bytes().all(is_harmless) {
            return self.0.write_str(text);
        }
        text.chars().try_for_each(|c| match c {
            '\x1b' | '\x07' | '\x08' | '\x0c' | '\x7f' => write!(self.0, "\\x{:02x}", u32::from(c)),
            '\u{80}'..='\u{9f}' => write!(self.0, "\\u{{{:x}}}", u32::from(c)),
            _ => self.0.write_char(c),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/telemetry_plain_fields.rs"]
mod tests;
