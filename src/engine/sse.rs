//! Frame → bytes, as server-sent events or NDJSON.

use crate::domain::{Frame, FrameBody, StreamFormat};

/// Appends one frame. Text and comments have no line breaks: `encode` rejects them.
pub fn write(frame: &Frame, kind: StreamFormat, out: &mut Vec<u8>) {
    match kind {
        StreamFormat::Sse => write_sse(frame, out),
        StreamFormat::Ndjson => write_line(frame, out),
    }
}

/// Appends a data frame that is already rendered to bytes.
pub fn write_rendered(event: Option<&str>, kind: StreamFormat, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    match kind {
        StreamFormat::Sse => {
            if let Some(event) = event {
                write_event_name(event, out);
            }
            out.extend_from_slice(b"data: ");
            data(out);
            out.extend_from_slice(b"\n\n");
        }
        StreamFormat::Ndjson => {
            data(out);
            out.push(b'\n');
        }
    }
}

fn write_event_name(event: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.push(b'\n');
}

/// Appends a comment: a keepalive between frames.
pub fn comment(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b": ");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\n\n");
}

fn write_sse(frame: &Frame, out: &mut Vec<u8>) {
    if let Some(event) = &frame.event {
        write_event_name(event, out);
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

/// One line per frame. NDJSON has no comments, so they are left out.
fn write_line(frame: &Frame, out: &mut Vec<u8>) {
    match &frame.body {
        FrameBody::Data(tree) => tree.write(out),
        FrameBody::Text(text) => out.extend_from_slice(text.as_bytes()),
        FrameBody::Comment(_) => return,
    }
    out.push(b'\n');
}
