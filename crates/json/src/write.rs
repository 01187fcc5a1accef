//! Writes a tree as JSON.

use crate::special_bytes::first_special;
use crate::{Num, SurrogateString, Tree};

impl Tree {
    /// Appends compact JSON without whitespace.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Tree::List(items) => write_list(items.iter(), Tree::write, out),
            Tree::Map(entries) => write_map(entries.iter().map(|(key, tree)| (&**key, tree)), Tree::write, out),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => {
                self.write_scalar(out);
            }
        }
    }

    /// The tree as compact JSON.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        into_text(out)
    }

    /// One entry or element per line, indented by two spaces.
    pub fn to_json_pretty(&self) -> String {
        let mut out = Vec::new();
        self.write_indented(0, &mut out);
        into_text(out)
    }

    fn write_indented(&self, depth: usize, out: &mut Vec<u8>) {
        match self {
            Tree::List(items) if !items.is_empty() => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    next_line(index > 0, depth + 1, out);
                    item.write_indented(depth + 1, out);
                }
                next_line(false, depth, out);
                out.push(b']');
            }
            Tree::Map(entries) if !entries.is_empty() => {
                out.push(b'{');
                for (index, (key, tree)) in entries.iter().enumerate() {
                    next_line(index > 0, depth + 1, out);
                    write_str(key, out);
                    out.extend_from_slice(b": ");
                    tree.write_indented(depth + 1, out);
                }
                next_line(false, depth, out);
                out.push(b'}');
            }
            Tree::List(_) => out.extend_from_slice(b"[]"),
            Tree::Map(_) => out.extend_from_slice(b"{}"),
            Tree::Null | Tree::Bool(_) | Tree::Num(_) | Tree::Str(_) | Tree::SurrogateString(_) => {
                self.write_scalar(out);
            }
        }
    }

    fn write_scalar(&self, out: &mut Vec<u8>) {
        match self {
            Tree::Null => out.extend_from_slice(b"null"),
            Tree::Bool(true) => out.extend_from_slice(b"true"),
            Tree::Bool(false) => out.extend_from_slice(b"false"),
            Tree::Num(num) => num.write(out),
            Tree::Str(text) => write_str(text, out),
            Tree::SurrogateString(string) => write_surrogate_string(string, out),
            Tree::List(_) | Tree::Map(_) => {}
        }
    }
}

impl Num {
    /// Appends the number as it is spelled.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Num::Int(int) => write_int(*int, out),
            Num::Token(token) => out.extend_from_slice(token.as_bytes()),
        }
    }
}

pub(crate) fn write_list<T>(elements: impl Iterator<Item = T>, write: impl Fn(T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, element) in elements.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(element, out);
    }
    out.push(b']');
}

pub(crate) fn write_map<'k, T>(
    members: impl Iterator<Item = (&'k str, T)>,
    write: impl Fn(T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_str(key, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

/// Appends a JSON string with its quotes. Escapes only the quote, the backslash and control characters; everything else
/// is written as UTF-8.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    match first_special(bytes) == bytes.len() {
        true => out.extend_from_slice(bytes),
        false => write_escaped(text, out),
    }
    out.push(b'"');
}

/// Writes lone surrogates as `\uXXXX` escapes, as they were read.
fn write_surrogate_string(string: &SurrogateString, out: &mut Vec<u8>) {
    out.push(b'"');
    if let Some(leading_low) = string.leading_low {
        write_unit(leading_low, out);
    }
    write_escaped(&string.text, out);
    if let Some(trailing_high) = string.trailing_high {
        write_unit(trailing_high, out);
    }
    out.push(b'"');
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let at = first_special(rest);
        out.extend_from_slice(&rest[..at]);
        let Some(byte) = rest.get(at).copied() else { return };
        rest = &rest[at + 1..];
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            _ => {
                write_unit(u16::from(byte), out);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
}

/// One UTF-16 code unit as `\uXXXX`.
fn write_unit(unit: u16, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from(unit >> shift & 0xF)]);
    }
}

/// Formats without allocating a string, because most numbers in frames are integers.
fn write_int(int: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = int.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if int < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

fn next_line(comma: bool, depth: usize, out: &mut Vec<u8>) {
    if comma {
        out.push(b',');
    }
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

/// What was written, as text. The writer only copies text and adds ASCII, so the output is always valid UTF-8 and the
/// error branch is not reached.
pub fn into_text(out: Vec<u8>) -> String {
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}
