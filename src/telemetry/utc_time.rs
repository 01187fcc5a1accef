//! The time of a log line: `2026-11-19T01:02:03.000004Z`. The text of a second is kept, because many lines have the same
//! one.

use jiff::Timestamp;
use std::cell::RefCell;
use std::fmt::{self, Write};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

pub struct UtcTime;

thread_local! {
    static SECOND: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
}

impl FormatTime for UtcTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        format(Timestamp::now(), writer)
    }
}

fn format(time: Timestamp, writer: &mut impl Write) -> fmt::Result {
    SECOND.with_borrow_mut(|(second, text)| {
        if *second != time.as_second() {
            (*second, *text) = (time.as_second(), time.strftime("%Y-%m-%dT%H:%M:%S.").to_string());
        }
        writer.write_str(text)
    })?;
    let mut digits = *b"000000Z";
    let mut rest = time.subsec_microsecond().unsigned_abs();
    for digit in digits[..6].iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    writer.write_str(std::str::from_utf8(&digits).unwrap_or_default())
}

#[cfg(test)]
#[path = "../../tests/unit/telemetry_utc_time.rs"]
mod tests;
