//! Unit tests of `server::body`. Time is simulated.

use super::*;
use futures_util::stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SILENCE: Option<Duration> = Some(Duration::from_secs(30));

#[tokio::test]
async fn a_body_is_read_to_its_end_and_may_be_as_large_as_the_limit() {
    let mut body = body(chunks(&["ab", "cd"]));
    assert_eq!(body.read(4, SILENCE).await, Ok(b"abcd".to_vec()));
    assert_eq!(body.state, BodyState::Complete);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_an_error() {
    let mut body = body(chunks(&["abc", "de", "f"]));
    let fault = body.read(4, SILENCE).await.unwrap_err();
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::TooLarge, "the body is larger than 4 bytes"));
}

#[tokio::test]
async fn a_body_of_a_known_length_that_is_too_large_is_not_read() {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("5"));
    headers.insert(EXPECT, HeaderValue::from_static("100-Continue"));
    let mut body = RequestBody::new(&headers, false, stream::pending());
    assert_eq!(body.read(4, None).await.unwrap_err().kind, FaultKind::TooLarge);
    assert_eq!(body.state, BodyState::Expected, "no `100 Continue` was sent");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_sending_times_out() {
    let mut body = body(chunks(&["ab"]).chain(stream::pending()));
    let began = Instant::now();
    let fault = body.read(4, SILENCE).await.unwrap_err();
    assert_eq!((fault.kind, fault.status()), (FaultKind::Timeout, 408));
    assert_eq!(fault.message, "the body was sent too slowly: bytes received in 30s: 2");
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_byte_by_byte_times_out() {
    let began = Instant::now();
    let fault = body(paced(1)).read(1 << 20, SILENCE).await.unwrap_err();
    assert_eq!(fault.status(), 408);
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_slow_line_may_take_longer() {
    // 1 MiB at 10 KiB per second takes 102 seconds.
    let began = Instant::now();
    let read = body(paced(10 * 1024).take(103)).read(2 << 20, SILENCE).await.unwrap();
    assert_eq!((read.len(), began.elapsed().as_secs()), (103 * 10 * 1024, 103));
}

#[tokio::test(start_paused = true)]
async fn a_client_may_take_its_time_without_a_limit() {
    assert_eq!(body(paced(1).take(1000)).read(1 << 20, None).await.unwrap().len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn what_is_discarded_is_bounded_in_bytes_and_time() {
    let bytes = Arc::new(AtomicUsize::new(0));
    let counted = bytes.clone();
    discard(stream::repeat_with(move || {
        counted.fetch_add(1 << 20, Ordering::Relaxed);
        Ok(Bytes::from(vec![0; 1 << 20]))
    }))
    .await;
    assert_eq!(bytes.load(Ordering::Relaxed), MAX_DISCARDED_BYTES + (1 << 20));
    for (chunks, seconds) in [(paced(1).boxed(), 30), (stream::pending().boxed(), 5), (paced(1).take(3).boxed(), 3)] {
        let began = Instant::now();
        discard(chunks).await;
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}

fn body(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> RequestBody {
    RequestBody::new(&HeaderMap::new(), false, chunks)
}

fn chunks(chunks: &'static [&'static str]) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    stream::iter(chunks).map(|chunk| Ok(Bytes::from(*chunk)))
}

/// So many bytes per second.
fn paced(bytes: usize) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    Box::pin(stream::repeat(()).then(move |()| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Bytes::from(vec![0; bytes]))
    }))
}
