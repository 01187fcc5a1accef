//! The load generator: connections that send one request after the other and read the answers.

use crate::mock::now;
use crate::rows::{Answer, Api};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpStream;

/// The key of clients; the gateway compares it with its own.
pub const API_KEY: &str = "bench-key";

/// What all clients of a row have seen so far.
#[derive(Default)]
pub struct Seen {
    pub requests: AtomicU64,
    pub frames: AtomicU64,
    pub times: Mutex<Times>,
}

/// In nanoseconds.
#[derive(Default)]
pub struct Times {
    pub first_byte: Vec<u64>,
    pub frame: Vec<u64>,
}

/// Sends the same request again and again until it is dropped or fails.
pub async fn repeat(server: SocketAddr, api: Api, answer: Answer, seen: &Seen) -> Result<()> {
    let body = Bytes::from(answer.request(api));
    let socket = TcpStream::connect(server).await?;
    socket.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    let connection = tokio::spawn(connection);
    let result = loop {
        if let Err(error) = exchange(&mut sender, server, api, answer, &body, seen).await {
            break error;
        }
    };
    connection.abort();
    Err(result)
}

async fn exchange(
    sender: &mut SendRequest<Full<Bytes>>,
    server: SocketAddr,
    api: Api,
    answer: Answer,
    body: &Bytes,
    seen: &Seen,
) -> Result<()> {
    let request = Request::post(api.path())
        .header(HOST, server.to_string())
        .header(CONTENT_TYPE, "application/json")
        .header(AUTHORIZATION, format!("Bearer {API_KEY}"))
        .body(Full::new(body.clone()))?;
    sender.ready().await?;
    let sent = now();
    let response = sender.send_request(request).await?;
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let text = body.collect().await?.to_bytes();
        bail!("{status}: {}", String::from_utf8_lossy(&text));
    }
    let mut markers = Markers::default();
    let mut first = true;
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let time = now();
        let mut times = seen.times.lock().ok().context("the times are poisoned")?;
        if std::mem::take(&mut first) {
            times.first_byte.push(time.saturating_sub(sent));
        }
        length += data.len();
        let before = markers.expected;
        markers.read(&data, |written| times.frame.push(time.saturating_sub(written)));
        seen.frames.fetch_add(u64::from(markers.expected - before), Ordering::Relaxed);
    }
    if markers.expected != answer.deltas() {
        bail!("the answer to {answer} ended after {} deltas", markers.expected);
    }
    if length == 0 {
        bail!("the answer to {answer} is empty");
    }
    seen.requests.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Finds the mock's stamps `@NUMBER:NANOSECONDS ` in any dialect. Each number counts once: a dialect may repeat the
/// whole text at the end.
#[derive(Default)]
struct Markers {
    expected: u32,
    /// A stamp that is split between two reads.
    partial: Vec<u8>,
}

impl Markers {
    fn read(&mut self, data: &[u8], mut found: impl FnMut(u64)) {
        for &byte in data {
            match byte {
                b'@' => {
                    self.partial.clear();
                    self.partial.push(byte);
                }
                _ if self.partial.is_empty() => {}
                b'0'..=b'9' | b':' => self.partial.push(byte),
                _ => {
                    let text = std::str::from_utf8(&self.partial[1..]).unwrap_or_default();
                    let stamp =
                        text.split_once(':').and_then(|(n, t)| n.parse::<u32>().ok().zip(t.parse::<u64>().ok()));
                    self.partial.clear();
                    if let Some((number, written)) = stamp
                        && number == self.expected
                    {
                        self.expected += 1;
                        found(written);
                    }
                }
            }
        }
    }
}
