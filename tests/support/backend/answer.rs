//! What a scripted backend answers: a head, and the steps of its body.

use super::encoding::Encoder;
use std::time::Duration;

/// An answer that grows word by word: `Answer::sse(&["one", "two"]).gzip().split(1).cut()`.
///
/// Each word works on what stands before it: `.gzip().split(1)` cuts the encoded bytes, `.split(1).gzip()` encodes each
/// byte for itself.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Without one, the steps are all that is sent.
    head: Option<Head>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    delimited: Delimited,
}

/// How the other side can tell where the body ends.
#[derive(Clone, Copy, Debug)]
pub enum Delimited {
    Chunked,
    Length,
    UntilClose,
    /// The content-length is that of the body, and this more or less. One that promises too much closes at its end; one
    /// that promises too little leaves the rest in front of the next answer.
    WrongLength(isize),
}

#[derive(Clone, Debug)]
pub enum Step {
    /// One write and, where the body is chunked, one chunk.
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Nothing more until the other side closes.
    Stall,
    /// Closes the socket here and now, without the final chunk.
    Cut,
    /// As `Cut`, but with an RST.
    Reset,
    /// The same piece again and again until the other side closes.
    Endless(Vec<u8>),
}

impl Answer {
    /// An answer without a body.
    pub fn new(status: u16) -> Answer {
        let head = Head { status, headers: Vec::new(), delimited: Delimited::Length };
        Answer { head: Some(head), steps: Vec::new() }
    }

    pub fn json(status: u16, text: &str) -> Answer {
        Answer::new(status).header("content-type", "application/json").bytes(text)
    }

    /// A stream of events that have nothing but data, each one a piece.
    pub fn sse(events: &[&str]) -> Answer {
        events.iter().fold(Answer::stream("text/event-stream"), |answer, data| answer.event(data))
    }

    /// A stream of events that is well formed only if these bytes are.
    pub fn sse_raw(bytes: impl AsRef<[u8]>) -> Answer {
        Answer::stream("text/event-stream").bytes(bytes)
    }

    /// A stream of lines, each one a piece.
    pub fn ndjson(lines: &[&str]) -> Answer {
        lines.iter().fold(Answer::stream("application/x-ndjson"), |answer, line| answer.bytes(format!("{line}\n")))
    }

    /// No head: only the steps, as they are, and then the end of the connection.
    pub fn raw() -> Answer {
        Answer { head: None, steps: Vec::new() }
    }

    /// Bytes that are no HTTP at all.
    pub fn garbage(bytes: impl AsRef<[u8]>) -> Answer {
        Answer::raw().bytes(bytes)
    }

    /// Never answers, not even with a head.
    pub fn hang() -> Answer {
        Answer::raw().stall()
    }

    fn stream(content_type: &str) -> Answer {
        Answer::new(200).header("content-type", content_type).chunked()
    }
}

/// The head.
impl Answer {
    pub fn status(mut self, status: u16) -> Answer {
        self.head_mut().status = status;
        self
    }

    /// Takes the place of a header of the same name.
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        let headers = &mut self.head_mut().headers;
        match headers.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
            Some(header) => value.clone_into(&mut header.1),
            None => headers.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    pub fn chunked(self) -> Answer {
        self.delimited(Delimited::Chunked)
    }

    pub fn length(self) -> Answer {
        self.delimited(Delimited::Length)
    }

    pub fn until_close(self) -> Answer {
        self.delimited(Delimited::UntilClose)
    }

    pub fn wrong_length(self, delta: isize) -> Answer {
        self.delimited(Delimited::WrongLength(delta))
    }

    pub fn delimited(mut self, delimited: Delimited) -> Answer {
        self.head_mut().delimited = delimited;
        self
    }

    fn head_mut(&mut self) -> &mut Head {
        self.head.as_mut().expect("a raw answer has no head")
    }
}

/// The body.
impl Answer {
    pub fn step(mut self, step: Step) -> Answer {
        self.steps.push(step);
        self
    }

    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Answer {
        self.step(Step::Bytes(bytes.as_ref().to_vec()))
    }

    /// One more event: `Answer::sse(&["one"]).pause(a_while).event("two")`.
    pub fn event(self, data: &str) -> Answer {
        self.bytes(format!("data: {data}\n\n"))
    }

    pub fn pause(self, time: Duration) -> Answer {
        self.step(Step::Pause(time))
    }

    pub fn stall(self) -> Answer {
        self.step(Step::Stall)
    }

    pub fn cut(self) -> Answer {
        self.step(Step::Cut)
    }

    pub fn reset(self) -> Answer {
        self.step(Step::Reset)
    }

    pub fn endless(self, piece: impl AsRef<[u8]>) -> Answer {
        self.step(Step::Endless(piece.as_ref().to_vec()))
    }

    /// Cuts the bytes anew, so that each piece has `n` of them. What is sent without a pause in between is cut as one,
    /// wherever its events end.
    pub fn split(mut self, n: usize) -> Answer {
        let mut cut = Vec::new();
        let mut run = Vec::new();
        for step in std::mem::take(&mut self.steps) {
            if let Step::Bytes(bytes) = step {
                run.extend(bytes);
            } else {
                cut.extend(pieces(&std::mem::take(&mut run), n));
                cut.push(step);
            }
        }
        cut.extend(pieces(&run, n));
        self.steps = cut;
        self
    }

    /// Waits between one piece and the next.
    pub fn pace(mut self, time: Duration) -> Answer {
        let mut paced: Vec<Step> = Vec::new();
        for step in std::mem::take(&mut self.steps) {
            if let (Some(Step::Bytes(_)), Step::Bytes(_)) = (paced.last(), &step) {
                paced.push(Step::Pause(time));
            }
            paced.push(step);
        }
        self.steps = paced;
        self
    }

    pub fn gzip(self) -> Answer {
        self.encoded("gzip", Encoder::gzip())
    }

    pub fn brotli(self) -> Answer {
        self.encoded("br", Encoder::brotli())
    }

    pub fn zstd(self) -> Answer {
        self.encoded("zstd", Encoder::zstd())
    }

    /// Each piece can be decoded as soon as it is there. What stops halfway, as in `.cut().gzip()`, lacks the end of its
    /// encoding as well.
    fn encoded(mut self, name: &str, mut encoder: Encoder) -> Answer {
        for step in &mut self.steps {
            match step {
                Step::Bytes(bytes) => *bytes = encoder.piece(bytes),
                // A piece is encoded with what came before it in mind: the same bytes twice would be nonsense.
                Step::Endless(_) => panic!("what has no end cannot be encoded in advance"),
                Step::Pause(_) | Step::Stall | Step::Cut | Step::Reset => {}
            }
        }
        let end = encoder.end();
        match self.steps.last_mut() {
            Some(Step::Bytes(last)) => last.extend(end),
            Some(Step::Pause(_)) | None => self.steps.push(Step::Bytes(end)),
            Some(Step::Stall | Step::Cut | Step::Reset | Step::Endless(_)) => {}
        }
        self.header("content-encoding", name)
    }
}

/// On the wire.
impl Answer {
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn opening(&self) -> Vec<u8> {
        let Some(head) = &self.head else { return Vec::new() };
        let mut text = format!("HTTP/1.1 {} scripted\r\n", head.status);
        for (name, value) in &head.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &match head.delimited {
            Delimited::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Delimited::Length => format!("content-length: {}\r\n", self.size()),
            Delimited::UntilClose => "connection: close\r\n".to_owned(),
            Delimited::WrongLength(delta) => {
                let wrong = self.size().checked_add_signed(delta).expect("a length below zero");
                format!("content-length: {wrong}\r\n")
            }
        };
        (text + "\r\n").into_bytes()
    }

    /// A piece as it is sent. An empty one is not sent: as a chunk, it would end the body.
    pub(super) fn framed(&self, piece: &[u8]) -> Vec<u8> {
        if piece.is_empty() || !self.is_chunked() {
            return piece.to_vec();
        }
        [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
    }

    pub(super) fn closing(&self) -> &'static [u8] {
        if self.is_chunked() { b"0\r\n\r\n" } else { b"" }
    }

    /// Whether the end of the answer is the end of its connection.
    pub(super) fn closes(&self) -> bool {
        let Some(head) = &self.head else { return true };
        match head.delimited {
            Delimited::UntilClose => true,
            Delimited::WrongLength(delta) if delta > 0 => true,
            Delimited::WrongLength(_) | Delimited::Chunked | Delimited::Length => {
                head.headers.iter().any(|(name, value)| name == "connection" && value == "close")
            }
        }
    }

    fn is_chunked(&self) -> bool {
        self.head.as_ref().is_some_and(|head| matches!(head.delimited, Delimited::Chunked))
    }

    fn size(&self) -> usize {
        let sizes = self.steps.iter().map(|step| if let Step::Bytes(bytes) = step { bytes.len() } else { 0 });
        sizes.sum()
    }
}

fn pieces(bytes: &[u8], n: usize) -> impl Iterator<Item = Step> {
    bytes.chunks(n).map(|piece| Step::Bytes(piece.to_vec()))
}
