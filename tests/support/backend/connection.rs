//! One connection of the scripted backend: it reads requests, and plays the answers step by step.

use super::{Answer, FAR_TOO_LONG, Seen, Stage, Step};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a write may be blocked before it looks whether the other side is still there.
const TICK: Duration = Duration::from_millis(5);

/// A small one, so that a writer whose bytes nobody takes is blocked soon.
const SEND_BUFFER: usize = 64 * 1024;

struct Connection<'a> {
    number: usize,
    socket: &'a TcpStream,
    inbox: &'a Inbox,
    stage: &'a Stage,
}

/// What came from the other side. A thread of its own reads it, so that the end is noticed whatever the script does.
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

/// What becomes of the connection after an answer.
enum Then {
    KeepAlive,
    Close,
    Reset,
}

/// The other side went away while it was answered.
struct Gone(Instant);

/// Lets the thread that reads come to its end, also when a script panics.
struct StopReading<'a>(&'a TcpStream);

/// Takes the last handle of the socket, which is closed on return.
pub(super) fn serve(socket: Arc<TcpStream>, number: usize, stage: &Stage) {
    socket.set_nodelay(true).unwrap();
    socket.set_write_timeout(Some(TICK)).unwrap();
    SockRef::from(&*socket).set_send_buffer_size(SEND_BUFFER).unwrap();
    let inbox = Inbox::default();
    thread::scope(|scope| {
        scope.spawn(|| inbox.fill(&socket));
        let _stop = StopReading(&socket);
        Connection { number, socket: &socket, inbox: &inbox, stage }.talk();
    });
}

impl Connection<'_> {
    fn talk(&self) {
        let mut requests = BufReader::new(self.inbox);
        while let Ok(seen) = self.request(&mut requests) {
            self.stage.record().seen.push(seen.clone());
            let answer = (self.stage.script)(&seen);
            match self.play(&answer, &seen) {
                Ok(Then::KeepAlive) => {}
                Ok(Then::Close) => return,
                Ok(Then::Reset) => return SockRef::from(self.socket).set_linger(Some(Duration::ZERO)).unwrap(),
                Err(Gone(at)) => return self.stage.record().gone.push(at),
            }
        }
    }

    /// The next request; an error when there is none.
    fn request(&self, from: &mut impl BufRead) -> io::Result<Seen> {
        let first = line(from)?;
        let [method, path, "HTTP/1.1"] = first.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not the first line of a request: {first:?}");
        };
        let (method, path) = (method.to_owned(), path.to_owned());
        let headers = headers(from)?;
        let mut seen = Seen { method, path, headers, body: Vec::new(), connection: self.number };
        if seen.header("expect") == Some("100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").map_err(|Gone(_)| ErrorKind::ConnectionReset)?;
        }
        seen.body = match (seen.header("transfer-encoding"), seen.header("content-length")) {
            (Some("chunked"), None) => chunks(from)?,
            (None, Some(length)) => exactly(from, length.parse().unwrap())?,
            (None, None) => Vec::new(),
            other => panic!("no way to tell where the body of the request ends: {other:?}"),
        };
        Ok(seen)
    }

    fn play(&self, answer: &Answer, seen: &Seen) -> Result<Then, Gone> {
        self.write(&answer.opening())?;
        if seen.method != "HEAD" {
            for step in answer.steps() {
                match step {
                    Step::Bytes(piece) => self.write(&answer.framed(piece))?,
                    Step::Pause(time) => self.pause(*time)?,
                    Step::Stall => self.stall()?,
                    Step::Cut => return Ok(Then::Close),
                    Step::Reset => return Ok(Then::Reset),
                    Step::Endless(piece) => self.repeat(&answer.framed(piece))?,
                }
            }
            self.write(answer.closing())?;
        }
        let closes = answer.closes() || seen.header("connection") == Some("close");
        Ok(if closes { Then::Close } else { Then::KeepAlive })
    }

    /// Counts what the socket takes as it takes it: a piece may be blocked halfway.
    fn write(&self, mut bytes: &[u8]) -> Result<(), Gone> {
        let mut socket = self.socket;
        while !bytes.is_empty() {
            self.pause(Duration::ZERO)?;
            match socket.write(bytes) {
                Ok(taken) => {
                    self.stage.written.fetch_add(taken as u64, Ordering::SeqCst);
                    bytes = &bytes[taken..];
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return Err(Gone(Instant::now())),
            }
        }
        Ok(())
    }

    fn pause(&self, time: Duration) -> Result<(), Gone> {
        self.inbox.end_within(time).map_or(Ok(()), |at| Err(Gone(at)))
    }

    fn stall<T>(&self) -> Result<T, Gone> {
        loop {
            self.pause(FAR_TOO_LONG)?;
        }
    }

    fn repeat<T>(&self, piece: &[u8]) -> Result<T, Gone> {
        assert!(!piece.is_empty(), "nothing, again and again");
        loop {
            self.write(piece)?;
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

    /// Waits this long for the end of the other side.
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
        // Only the reading side: an RST must not come after a friendly end.
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
            // Trailers, if there are any, are not part of the body.
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
