//! One connection of the mock backend: reads requests and sends the responses step by step.

use super::{BackendState, MockResponse, RecordedRequest, ResponseStep, TIMEOUT};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a write may block before it checks whether the client is still connected, and a gate is closed before it is
/// tried again.
const TICK: Duration = Duration::from_millis(5);

/// Small, so that a write blocks soon if the client does not read.
const SEND_BUFFER: usize = 64 * 1024;

struct Connection<'a> {
    number: usize,
    socket: &'a TcpStream,
    inbox: &'a Inbox,
    state: &'a BackendState,
}

/// Received bytes. They are read by a separate thread, so that a disconnect is noticed whatever the script does.
#[derive(Default)]
struct Inbox {
    incoming: Mutex<Incoming>,
    changed: Condvar,
}

#[derive(Default)]
struct Incoming {
    bytes: VecDeque<u8>,
    ended: Option<Instant>,
}

/// What happens to the connection after a response.
enum AfterResponse {
    KeepAlive,
    Close,
    Reset,
}

/// The client disconnected during the response.
struct ClientDisconnected(Instant);

/// Ends the reading thread, even if the script panics.
struct StopReading<'a>(&'a TcpStream);

/// Takes the last handle of the socket, so that it is closed on return.
pub(super) fn serve(socket: Arc<TcpStream>, number: usize, state: &BackendState) {
    socket.set_nodelay(true).unwrap();
    socket.set_write_timeout(Some(TICK)).unwrap();
    SockRef::from(&*socket).set_send_buffer_size(SEND_BUFFER).unwrap();
    let inbox = Inbox::default();
    thread::scope(|scope| {
        scope.spawn(|| inbox.fill(&socket));
        let _stop = StopReading(&socket);
        Connection { number, socket: &socket, inbox: &inbox, state }.serve_requests();
    });
}

impl Connection<'_> {
    fn serve_requests(&self) {
        let mut requests = BufReader::new(self.inbox);
        while let Ok(request) = self.request(&mut requests) {
            self.state.record().requests.push(request.clone());
            let response = (self.state.script)(&request);
            match self.send_response(&response, &request) {
                Ok(AfterResponse::KeepAlive) => {}
                Ok(AfterResponse::Close) => return,
                Ok(AfterResponse::Reset) => {
                    return SockRef::from(self.socket).set_linger(Some(Duration::ZERO)).unwrap();
                }
                Err(ClientDisconnected(at)) => return self.state.record().disconnects.push(at),
            }
        }
    }

    /// The next request; an error if there is none.
    fn request(&self, from: &mut impl BufRead) -> io::Result<RecordedRequest> {
        let first = line(from)?;
        let [method, path, "HTTP/1.1"] = first.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not the first line of a request: {first:?}");
        };
        let (method, path) = (method.to_owned(), path.to_owned());
        let headers = headers(from)?;
        let mut request = RecordedRequest { method, path, headers, body: Vec::new(), connection: self.number };
        if request.header("expect") == Some("100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").map_err(|ClientDisconnected(_)| ErrorKind::ConnectionReset)?;
        }
        request.body = match (request.header("transfer-encoding"), request.header("content-length")) {
            (Some("chunked"), None) => chunks(from)?,
            (None, Some(length)) => exactly(from, length.parse().unwrap())?,
            (None, None) => Vec::new(),
            other => panic!("the length of the request body is undefined: {other:?}"),
        };
        Ok(request)
    }

    fn send_response(
        &self,
        response: &MockResponse,
        request: &RecordedRequest,
    ) -> Result<AfterResponse, ClientDisconnected> {
        self.write(&response.opening())?;
        if request.method != "HEAD" {
            for step in response.steps() {
                match step {
                    ResponseStep::Bytes(chunk) => self.write(&response.framed(chunk))?,
                    ResponseStep::Pause(time) => self.pause(*time)?,
                    ResponseStep::Wait(gate) => {
                        while !gate.pass() {
                            self.pause(TICK)?;
                        }
                    }
                    ResponseStep::Stall => self.stall()?,
                    ResponseStep::Disconnect => return Ok(AfterResponse::Close),
                    ResponseStep::Reset => return Ok(AfterResponse::Reset),
                    ResponseStep::Endless(chunk) => self.repeat(&response.framed(chunk))?,
                }
            }
            self.write(response.closing())?;
        }
        let closes = response.closes() || request.header("connection") == Some("close");
        Ok(if closes { AfterResponse::Close } else { AfterResponse::KeepAlive })
    }

    /// Counts the bytes as the socket accepts them: a write may block half way.
    fn write(&self, mut bytes: &[u8]) -> Result<(), ClientDisconnected> {
        let mut socket = self.socket;
        while !bytes.is_empty() {
            self.pause(Duration::ZERO)?;
            match socket.write(bytes) {
                Ok(taken) => {
                    self.state.written.fetch_add(taken as u64, Ordering::SeqCst);
                    bytes = &bytes[taken..];
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return Err(ClientDisconnected(Instant::now())),
            }
        }
        Ok(())
    }

    fn pause(&self, time: Duration) -> Result<(), ClientDisconnected> {
        self.inbox.end_within(time).map_or(Ok(()), |at| Err(ClientDisconnected(at)))
    }

    fn stall<T>(&self) -> Result<T, ClientDisconnected> {
        loop {
            self.pause(TIMEOUT)?;
        }
    }

    fn repeat<T>(&self, chunk: &[u8]) -> Result<T, ClientDisconnected> {
        assert!(!chunk.is_empty(), "an empty chunk cannot be repeated");
        loop {
            self.write(chunk)?;
        }
    }
}

impl Inbox {
    fn fill(&self, mut socket: &TcpStream) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = socket.read(&mut buffer) {
            self.incoming().bytes.extend(&buffer[..length]);
            self.changed.notify_all();
        }
        self.incoming().ended = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Waits up to this long for the client to disconnect.
    fn end_within(&self, time: Duration) -> Option<Instant> {
        let not_ended = |incoming: &mut Incoming| incoming.ended.is_none();
        let waited = self.changed.wait_timeout_while(self.incoming(), time, not_ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for &Inbox {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let nothing_yet = |incoming: &mut Incoming| incoming.bytes.is_empty() && incoming.ended.is_none();
        let waited = self.changed.wait_while(self.incoming(), nothing_yet);
        waited.unwrap_or_else(PoisonError::into_inner).bytes.read(buffer)
    }
}

impl Drop for StopReading<'_> {
    fn drop(&mut self) {
        // Only the reading side: an RST must not follow a clean end.
        let _ = self.0.shutdown(Shutdown::Read);
    }
}

fn headers(from: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = line(from)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("not a header: {line:?}"));
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(from)?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        let length = usize::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("not the size of a chunk: {size:?}"));
        if length == 0 {
            // Trailers are not part of the body.
            headers(from)?;
            return Ok(body);
        }
        body.extend(exactly(from, length)?);
        assert_eq!(line(from)?, "", "a chunk has its length");
    }
}

fn exactly(from: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
    Ok(String::from_utf8_lossy(line).into_owned())
}
