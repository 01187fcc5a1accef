//! A small HTTP/2 client on `std::net`, without TLS. It never opens a window unless a test does, so a test decides how
//! much of a response is accepted.

use crate::support::{Request, TIMEOUT};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One connection, closed on drop.
pub struct Http2Client {
    socket: TcpStream,
    last_stream: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Http2Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// Types of frames.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const MAX_PAYLOAD: usize = 16 * 1024;

impl Http2Client {
    pub fn connect(addr: SocketAddr) -> Http2Client {
        Http2Client::over(TcpStream::connect(addr).unwrap())
    }

    pub fn over(socket: TcpStream) -> Http2Client {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut client = Http2Client { socket, last_stream: 0 };
        let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        opening.extend(frame(SETTINGS, 0, 0, b""));
        client.socket.write_all(&opening).unwrap();
        client
    }

    /// Sends a request and returns the number of its stream.
    pub fn send(&mut self, request: &Request) -> u32 {
        let stream = self.send_headers(request);
        self.send_data(stream, &request.body, true);
        stream
    }

    /// Sends a request without its body.
    pub fn send_headers(&mut self, request: &Request) -> u32 {
        self.last_stream = if self.last_stream == 0 { 1 } else { self.last_stream + 2 };
        let fixed =
            [(":method", &*request.method), (":scheme", "http"), (":path", &request.path), (":authority", "localhost")];
        let own = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut block = Vec::new();
        for (name, value) in fixed.into_iter().chain(own) {
            // A literal without indexing and without Huffman coding.
            block.push(0);
            block.extend(text(name));
            block.extend(text(value));
        }
        self.socket.write_all(&frame(HEADERS, END_HEADERS, self.last_stream, &block)).unwrap();
        self.last_stream
    }

    pub fn send_data(&mut self, stream: u32, bytes: &[u8], ends: bool) {
        let blocks: Vec<&[u8]> = if bytes.is_empty() { vec![b""] } else { bytes.chunks(MAX_PAYLOAD).collect() };
        let last = blocks.len() - 1;
        for (n, block) in blocks.into_iter().enumerate() {
            let flags = if ends && n == last { END_STREAM } else { 0 };
            self.socket.write_all(&frame(DATA, flags, stream, block)).unwrap();
        }
    }

    /// Cancels a stream.
    pub fn reset(&mut self, stream: u32) {
        self.socket.write_all(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).unwrap();
    }

    /// Accepts so many bytes more of a stream, or of the whole connection (0).
    pub fn open_window(&mut self, stream: u32, bytes: u32) {
        self.socket.write_all(&frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())).unwrap();
    }

    /// The next frame of a stream. Settings and pings are acknowledged.
    pub fn next_frame(&mut self) -> io::Result<Http2Frame> {
        loop {
            let mut head = [0; 9];
            self.socket.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
            let mut payload = vec![0; length];
            self.socket.read_exact(&mut payload)?;
            let received = Http2Frame { kind: head[3], flags: head[4], stream, payload };
            match received.kind {
                SETTINGS if received.flags & ACK == 0 => self.socket.write_all(&frame(SETTINGS, ACK, 0, b""))?,
                PING if received.flags & ACK == 0 => self.socket.write_all(&frame(PING, ACK, 0, &received.payload))?,
                _ if stream > 0 && received.kind != WINDOW_UPDATE => return Ok(received),
                _ => {}
            }
        }
    }
}

impl Http2Frame {
    pub fn ends_stream(&self) -> bool {
        self.kind == RST_STREAM || matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A string of HPACK: its length as an integer with a prefix of 7 bits, and its bytes.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = match text.len() {
        short @ 0..127 => vec![short as u8],
        long => {
            let (mut rest, mut bytes) = (long - 127, vec![127]);
            while rest >= 128 {
                bytes.push((rest % 128 + 128) as u8);
                rest /= 128;
            }
            bytes.push(rest as u8);
            bytes
        }
    };
    bytes.extend(text.as_bytes());
    bytes
}
