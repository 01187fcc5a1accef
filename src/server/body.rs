//! The body of a request: read to its end, to the limit, or until the client says no more.

use crate::domain::{Fault, FaultKind};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// A client that sends nothing for this long holds a place for nothing.
const PATIENCE: Duration = Duration::from_secs(75);
/// How much of a body that is too large is thrown away, and for how long, before the client is told. Many clients send
/// everything before they read: to them an answer in the middle is a broken pipe.
const DISCARDED: usize = 64 << 20;
const DISCARDING: Duration = Duration::from_secs(2);

pub async fn read(body: poem::Body, limit: usize) -> Result<Vec<u8>, Fault> {
    collect(body.into_bytes_stream(), limit, PATIENCE).await
}

async fn collect(
    body: impl Stream<Item = io::Result<Bytes>>,
    limit: usize,
    patience: Duration,
) -> Result<Vec<u8>, Fault> {
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    loop {
        let part = timeout(patience, body.next()).await.map_err(|_| {
            let message = format!("nothing of the body came for {} s", patience.as_secs());
            Fault { status: Some(408), ..Fault::new(FaultKind::Timeout, message) }
        })?;
        match part {
            None => return Ok(bytes),
            Some(Ok(part)) if bytes.len() + part.len() <= limit => bytes.extend_from_slice(&part),
            Some(Ok(_)) => break,
            Some(Err(error)) => {
                return Err(Fault::new(FaultKind::NotJson, format!("the body could not be read: {error}")));
            }
        }
    }
    drop(bytes);
    let _ = timeout(DISCARDING, async {
        let mut discarded = 0;
        while let Some(Ok(part)) = body.next().await
            && discarded < DISCARDED
        {
            discarded += part.len();
        }
    })
    .await;
    Err(Fault::new(FaultKind::TooLarge, format!("the body is larger than {limit} bytes")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::stream;

    use super::*;

    const LONG: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_body_is_read_to_its_end_and_may_be_as_large_as_the_limit() {
        assert_eq!(collect(parts(&["ab", "cd"]), 4, LONG).await, Ok(b"abcd".to_vec()));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_after_all_of_it_was_taken() {
        let mut body = parts(&["abc", "de", "f"]);
        let fault = collect(&mut body, 4, LONG).await.unwrap_err();
        assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::TooLarge, "the body is larger than 4 bytes"));
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn a_body_without_end_is_not_waited_for() {
        let endless = stream::repeat_with(|| Ok(Bytes::from(vec![0; 1 << 20])));
        assert_eq!(collect(endless, 4, LONG).await.unwrap_err().kind, FaultKind::TooLarge);
    }

    #[tokio::test]
    async fn a_client_that_sends_no_more_is_not_waited_for() {
        let silent = parts(&["ab"]).chain(stream::pending());
        let fault = collect(silent, 4, Duration::from_millis(20)).await.unwrap_err();
        assert_eq!((fault.kind, fault.status()), (FaultKind::Timeout, 408));
    }

    fn parts(parts: &'static [&'static str]) -> impl Stream<Item = io::Result<Bytes>> + Unpin {
        stream::iter(parts).map(|part| Ok(Bytes::from(*part)))
    }
}
