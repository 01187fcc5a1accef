//! Unit tests of `upstream::http_client::exchange`: requests over HTTP/2 that the backend refuses.

use super::super::connector::open_http2;
use super::super::{BaseUrl, ConnectSettings};
use super::*;
use bytes::Bytes;
use h2::Reason;
use http_body_util::Full;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::{TcpListener, TcpStream};

/// A backend over HTTP/2 that resets its first requests, and answers each of the others with its body.
async fn refusing_backend(refusals: usize, reason: Reason) -> (TcpStream, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let requests = Arc::<AtomicUsize>::default();
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        let mut connection = h2::server::handshake(socket).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            if seen.fetch_add(1, Ordering::SeqCst) < refusals {
                respond.send_reset(reason);
                continue;
            }
            tokio::spawn(async move {
                let mut body = request.into_body();
                let sent = body.data().await.unwrap().unwrap();
                respond.send_response(Response::new(()), false).unwrap().send_data(sent, true).unwrap();
            });
        }
    });
    (client, requests)
}

/// The body of the response, or the error; and how many requests the backend got. `retries`: those before, on other
/// connections.
async fn exchange(refusals: usize, reason: Reason, retries: usize) -> (Result<Vec<u8>, SendError>, usize) {
    let (socket, requests) = refusing_backend(refusals, reason).await;
    let Ok(sender) = open_http2(MaybeHttpsStream::Http(TokioIo::new(socket))).await else { panic!("it is not opened") };
    let origin = BaseUrl::parse("http://backend.test/").unwrap().origin;
    let client = Arc::new(HttpClient::new(origin, &ConnectSettings { timeout: None, allowed: Vec::new() }, None));
    client.idle.share_http2(sender);
    let mut exchange = client.send(http::Request::post("/chat").body(Full::new(Bytes::from_static(b"hello"))).unwrap());
    exchange.retries = retries;
    let answered = match poll_fn(|cx| exchange.poll_response(cx)).await {
        Ok(response) => {
            let (mut body, mut bytes) = (response.into_body(), Vec::new());
            while let Some(chunk) = poll_fn(|cx| body.poll_bytes(cx)).await {
                bytes.extend_from_slice(&chunk.unwrap());
            }
            Ok(bytes)
        }
        Err(error) => Err(error),
    };
    (answered, requests.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_request_that_the_backend_has_not_read_is_sent_again() {
    for refusals in 0..=MAX_RETRIES {
        let (answered, requests) = exchange(refusals, Reason::REFUSED_STREAM, 0).await;
        assert_eq!((answered.unwrap(), requests), (b"hello".to_vec(), refusals + 1));
    }
}

#[tokio::test]
async fn a_request_is_not_sent_for_ever() {
    for before in 0..=MAX_RETRIES {
        let (answered, requests) = exchange(usize::MAX, Reason::REFUSED_STREAM, before).await;
        assert!(matches!(answered, Err(SendError::Send(_))));
        assert_eq!(before + requests, MAX_RETRIES + 1);
    }
}

#[tokio::test]
async fn a_request_that_the_backend_may_have_read_is_not_sent_again() {
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::NO_ERROR] {
        let (answered, requests) = exchange(1, reason, 0).await;
        assert!(matches!(answered, Err(SendError::Send(_))), "{reason:?}");
        assert_eq!(requests, 1, "{reason:?}");
    }
}
