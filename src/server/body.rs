//! Reads the body of a request, to the size limit and with an idle timeout.

use crate::domain::{Fault, FaultKind};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// A client that sends nothing for this long would occupy a concurrency slot.
const BODY_TIMEOUT: Duration = Duration::from_secs(75);
/// How much of a body that is too large is discarded, and for how long, before the error is sent. Many clients send
/// everything before they read: an early response would be a broken pipe to them.
const MAX_DISCARDED_BYTES: usize = 64 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

pub async fn read(body: poem::Body, limit: usize) -> Result<Vec<u8>, Fault> {
    collect(body.into_bytes_stream(), limit, BODY_TIMEOUT).await
}

async fn collect(
    body: impl Stream<Item = io::Result<Bytes>>,
    limit: usize,
    idle_timeout: Duration,
) -> Result<Vec<u8>, Fault> {
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    loop {
        let chunk = timeout(idle_timeout, body.next()).await.map_err(|_| {
            let message = format!("no data of the body was received for {} s", idle_timeout.as_secs());
            Fault { status: Some(408), ..Fault::new(FaultKind::Timeout, message) }
        })?;
        match chunk {
            None => return Ok(bytes),
            Some(Ok(chunk)) if bytes.len() + chunk.len() <= limit => bytes.extend_from_slice(&chunk),
            Some(Ok(_)) => break,
            Some(Err(error)) => {
                return Err(Fault::new(FaultKind::NotJson, format!("the body could not be read: {error}")));
            }
        }
    }
    drop(bytes);
    let _ = timeout(DISCARD_TIMEOUT, async {
        let mut discarded = 0;
        while let Some(Ok(chunk)) = body.next().await
            && discarded < MAX_DISCARDED_BYTES
        {
            discarded += chunk.len();
        }
    })
    .await;
    Err(Fault::new(FaultKind::TooLarge, format!("the body is larger than {limit} bytes")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/server_body.rs"]
mod tests;
