//! The fields of log lines as text without colours: the same as those of `tracing_subscriber`, which formats each name and
//! each character apart, for colours that are not there. Every response has two lines with many fields.

use std::fmt::{self, Debug, Write};
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

pub struct PlainFields;

struct PlainVisitor {
    line: String,
    is_empty: bool,
}

/// The length of most lines.
const LINE_BYTES: usize = 256;

/// Escapes what a terminal would take for a command, as `tracing_subscriber` does in messages.
struct Harmless<'l>(&'l mut String);

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        if writer.has_ansi_escapes() {
            return DefaultFields::new().format_fields(writer, fields);
        }
        let mut visitor = PlainVisitor { line: String::with_capacity(LINE_BYTES), is_empty: true };
        fields.record(&mut visitor);
        writer.write_str(&visitor.line)
    }
}

impl PlainVisitor {
    fn write(&mut self, field: &Field, value: impl FnOnce(&mut String)) {
        // Those of `log` belong to the metadata.
        if !field.name().starts_with("log.") {
            self.write_name(field.name());
            value(&mut self.line);
        }
    }

    fn write_name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_empty) {
            self.line.push(' ');
        }
        if name != "message" {
            self.line.push_str(name.strip_prefix("r#").unwrap_or(name));
            self.line.push('=');
        }
    }
}

impl Visit for PlainVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else if value.bytes().all(is_plain) {
            self.write(field, |line| {
                line.push('"');
                line.push_str(value);
                line.push('"');
            });
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, |line| {
            let _ = write!(line, "{value}");
        });
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, |line| line.push_str(if value { "true" } else { "false" }));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let is_message = field.name() == "message";
        // A text accepts everything.
        self.write(field, |line| {
            let _ = match is_message {
                true => write!(Harmless(line), "{value:?}"),
                false => write!(line, "{value:?}"),
            };
        });
    }
}

impl Write for Harmless<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_harmless = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r');
        if text.bytes().all(is_harmless) {
            self.0.push_str(text);
            return Ok(());
        }
        text.chars().try_for_each(|c| match c {
            '\x1b' | '\x07' | '\x08' | '\x0c' | '\x7f' => write!(self.0, "\\x{:02x}", u32::from(c)),
            '\u{80}'..='\u{9f}' => write!(self.0, "\\u{{{:x}}}", u32::from(c)),
            _ => {
                self.0.push(c);
                Ok(())
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/telemetry_plain_fields.rs"]
mod tests;
