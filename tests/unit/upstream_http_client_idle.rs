//! Unit tests of `upstream::http_client::idle`.

use super::super::Request;
use super::*;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Full;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

async fn connections() -> (Box<Http1Connection>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, backend) = tokio::join!(TcpStream::connect(address), listener.accept());
    let stream = MaybeHttpsStream::Http(TokioIo::new(client.unwrap()));
    let Ok(connection) = Http1Connection::open(stream).await else { panic!("it is not opened") };
    (connection, backend.unwrap().0)
}

fn pool() -> Arc<IdleConnections> {
    let pool = Arc::<IdleConnections>::default();
    // The test looks at its events itself.
    pool.lock().has_reaper = true;
    pool
}

#[tokio::test]
async fn a_request_over_a_connection_of_the_pool_is_no_event_of_the_pool() {
    let (pool, (connection, _backend)) = (pool(), connections().await);
    pool.put_http1(connection);
    let mut connection = pool.take_http1().unwrap();
    assert!(connection.is_reused);
    let _responding = connection.send(Request::new(Full::new(Bytes::new())));
    assert_eq!(pool.events.0.notified().now_or_never(), None);
}

#[tokio::test]
async fn a_connection_of_the_pool_that_the_backend_closes_is_an_event() {
    let (pool, (connection, backend)) = (pool(), connections().await);
    pool.put_http1(connection);
    drop(backend);
    pool.events.0.notified().await;
    let waker = pool.waker.clone();
    assert!(!pool.take_http1().unwrap().poll_idle(&waker));
}
