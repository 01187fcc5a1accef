//! The bare pass-through: forwards every request to the backend and its answer to the client, byte by byte. It is the
//! floor for a gateway in Rust.

use anyhow::Result;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Serves until the process is killed. The first line of its output is its address.
pub async fn serve(backend: SocketAddr) -> Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<HttpConnector, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let client = client.clone();
        let service = service_fn(move |request| forward(client.clone(), backend, request));
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

async fn forward(
    client: Client<HttpConnector, Incoming>,
    backend: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>> {
    let uri = format!("http://{backend}{}", request.uri().path()).parse::<Uri>()?;
    *request.uri_mut() = uri;
    Ok(client.request(request).await?)
}
