//! Unit tests of `server::body`.

use futures_util::stream;

use super::*;

const LONG: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_body_is_read_to_its_end_and_may_be_as_large_as_the_limit() {
    assert_eq!(collect(chunks(&["ab", "cd"]), 4, LONG).await, Ok(b"abcd".to_vec()));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_discarded_before_the_error() {
    let mut body = chunks(&["abc", "de", "f"]);
    let fault = collect(&mut body, 4, LONG).await.unwrap_err();
    assert_eq!((fault.kind, fault.message.as_str()), (FaultKind::TooLarge, "the body is larger than 4 bytes"));
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_body_without_end_is_an_error() {
    let endless = stream::repeat_with(|| Ok(Bytes::from(vec![0; 1 << 20])));
    assert_eq!(collect(endless, 4, LONG).await.unwrap_err().kind, FaultKind::TooLarge);
}

#[tokio::test]
async fn a_client_that_stops_sending_times_out() {
    let silent = chunks(&["ab"]).chain(stream::pending());
    let fault = collect(silent, 4, Duration::from_millis(20)).await.unwrap_err();
    assert_eq!((fault.kind, fault.status()), (FaultKind::Timeout, 408));
}

fn chunks(chunks: &'static [&'static str]) -> impl Stream<Item = io::Result<Bytes>> + Unpin {
    stream::iter(chunks).map(|chunk| Ok(Bytes::from(*chunk)))
}
