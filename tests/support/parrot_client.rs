//! Runs the binary as a child process, with a minimal HTTP/1.1 client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A running gateway. Dropping it kills the process.
pub struct Server {
    child: Child,
    addr: String,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

impl Server {
    /// `reframe --add FOLDER serve` on a free port.
    pub fn with(folder: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_reframe"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["--add", folder.to_str().unwrap(), "serve", "--listen", "127.0.0.1:0"])
            .env_remove("PORT")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        // The pipe is read to its end, so that later output never blocks the server.
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("listening on http://") {
                    let _ = sender.send(url.split('/').next().unwrap().to_owned());
                }
            }
        });
        let addr = receiver.recv_timeout(TIMEOUT);
        let mut server = Server { child, addr: String::new() };
        server.addr = addr.expect("the server prints its address");
        server
    }

    pub fn post(&self, path: &str, body: &str) -> Reply {
        self.fetch(&format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n", self.addr, body.len()), body)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.fetch(&format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", self.addr), "")
    }

    fn fetch(&self, head: &str, body: &str) -> Reply {
        let mut socket = TcpStream::connect(&self.addr).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(socket, "{head}content-type: application/json\r\nconnection: close\r\n\r\n{body}").unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        Reply::read(&answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    fn read(answer: &[u8]) -> Reply {
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        let header = |name: &str| {
            let line =
                head.lines().skip(1).find_map(|l| l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)));
            line.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        let body = match header("transfer-encoding").as_str() {
            "chunked" => unchunked(&answer[end + 4..]),
            _ => answer[end + 4..].to_vec(),
        };
        Reply { status, content_type: header("content-type"), body: String::from_utf8(body).unwrap() }
    }
}

/// Panics if the final chunk of size 0 is missing: the response was truncated.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|w| w == b"\r\n").expect("the size of a chunk");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}
