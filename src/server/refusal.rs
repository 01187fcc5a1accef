//! Refuses clients when no file descriptor is left: a few descriptors are kept for this, and given up one by one, so that
//! these clients get a 503 at once. Without them they would wait in the backlog, with no answer.

use super::listener::Listener;
use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Renders the whole HTTP response for a client that is refused.
pub type RefusalResponse = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> + Send + Sync>;

/// How many clients can be refused at the same time.
const RESERVED: usize = 8;
/// How long a refused client may take to send its request and to read the response.
const LINGER: Duration = Duration::from_secs(1);
/// How long to wait for the client that could not be accepted. It is there, unless it has disconnected.
const ACCEPT_TIME: Duration = Duration::from_millis(50);

/// Descriptors that are kept for refusals, as far as there are some to keep.
#[derive(Clone)]
pub(super) struct Reserve(Arc<Mutex<Vec<File>>>);

impl Reserve {
    pub fn new() -> Reserve {
        let reserve = Reserve(Arc::new(Mutex::new(Vec::with_capacity(RESERVED))));
        reserve.renew();
        reserve
    }

    /// Keeps descriptors again that are free meanwhile.
    pub fn renew(&self) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while files.len() < RESERVED {
            match File::open(if cfg!(windows) { "NUL" } else { "/dev/null" }) {
                Ok(file) => files.push(file),
                Err(_) => return,
            }
        }
    }

    /// Accepts the next client in place of a reserved descriptor, and refuses it. Returns false if there is none left, or
    /// no client. Cancel-safe: the reserve is renewed before the next client is accepted.
    pub async fn refuse_one(&self, listener: &Listener) -> bool {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().is_none() {
            return false;
        }
        let Ok(Ok((socket, _))) = timeout(ACCEPT_TIME, listener.accept()).await else { return false };
        let (response, reserve) = (listener.refusal.clone(), self.clone());
        tokio::spawn(async move {
            // A client that does not read or disconnect in time gets no more.
            let _ = timeout(LINGER, async move { send(socket, &response().await).await }).await;
            // Its descriptor is for the next client that is refused, not for whoever asks first.
            reserve.renew();
        });
        true
    }
}

/// Sends the response, and reads what the client sends: to close a socket with unread data resets the connection, and the
/// client may never see the response.
async fn send(mut socket: TcpStream, response: &[u8]) -> io::Result<()> {
    socket.write_all(response).await?;
    socket.shutdown().await?;
    let mut discarded = [0; 4096];
    while socket.read(&mut discarded).await? > 0 {}
    Ok(())
}

/// A response without a body, for a listener that has no dialects.
pub(super) fn plain() -> RefusalResponse {
    let head = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    Arc::new(move || Box::pin(async move { head.as_bytes().to_vec() }))
}
