//! Frame → bytes.

use crate::domain::{Frame, FrameBody, WireKind};

/// Appends one frame. Text and comments have no line breaks: `egress` refuses them.
pub fn write(frame: &Frame, kind: WireKind, out: &mut Vec<u8>) {
    match kind {
        WireKind::Sse => write_sse(frame, out),
        WireKind::Ndjson => write_line(frame, out),
    }
}

/// A data frame whose bytes are at hand.
pub fn write_ready(event: Option<&str>, kind: WireKind, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    match kind {
        WireKind::Sse => {
            if let Some(event) = event {
                name(event, out);
            }
            out.extend_from_slice(b"data: ");
            data(out);
            out.extend_from_slice(b"\n\n");
        }
        WireKind::Ndjson => {
            data(out);
            out.push(b'\n');
        }
    }
}

fn name(event: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.push(b'\n');
}

/// A sign of life between frames, for those streams that can hold one.
pub fn comment(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b": ");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\n\n");
}

fn write_sse(frame: &Frame, out: &mut Vec<u8>) {
    if let Some(event) = &frame.event {
        name(event, out);
    }
    match &frame.body {
        FrameBody::Data(tree) => {
            out.extend_from_slice(b"data: ");
            tree.write(out);
        }
        FrameBody::Text(text) => {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(text.as_bytes());
        }
        FrameBody::Comment(text) => return comment(text, out),
    }
    out.extend_from_slice(b"\n\n");
}

/// A line for each frame; a comment has no place in it.
fn write_line(frame: &Frame, out: &mut Vec<u8>) {
    match &frame.body {
        FrameBody::Data(tree) => tree.write(out),
        FrameBody::Text(text) => out.extend_from_slice(text.as_bytes()),
        FrameBody::Comment(_) => return,
    }
    out.push(b'\n');
}
