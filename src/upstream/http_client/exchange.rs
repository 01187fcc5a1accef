//! One request and its response: takes a connection or opens one, sends the request, and sends it again if a connection
//! that was used before has ended meanwhile. Dropping it cancels the request.

use super::body::{ExchangeBody, ResponseBody};
use super::connector::Connection;
use super::http1::{Http1Connection, Responding};
use super::send_error::{SendError, causes};
use super::{HttpClient, Request};
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST};
use http::uri::PathAndQuery;
use http::{HeaderValue, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

pub struct Exchange {
    client: Arc<HttpClient>,
    /// Until it is sent.
    request: Option<Request>,
    state: State,
    /// How often it was sent again over HTTP/2, on whichever connections.
    retries: usize,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Connection, SendError>> + Send>>;

enum State {
    Start,
    Connecting(Connecting),
    Http1 { connection: Box<Http1Connection>, responding: Responding },
    Http2 { responding: Responding, again: Box<Request> },
    Done,
}

/// How often a backend may refuse a request over HTTP/2 before it has read it. It may do so on new connections, too.
const MAX_RETRIES: usize = 2;

impl Exchange {
    pub(super) fn new(client: Arc<HttpClient>, mut request: Request) -> Exchange {
        let headers = request.headers_mut();
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("zstd,gzip,br"));
        Exchange { client, request: Some(request), state: State::Start, retries: 0 }
    }

    /// The response, once. Not to be polled after it.
    pub fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<ResponseBody>, SendError>> {
        loop {
            match &mut self.state {
                State::Start => match self.client.pooled() {
                    Some(connection) => self.send(connection),
                    None => self.connect(),
                },
                State::Connecting(connecting) => {
                    let connection = ready!(connecting.as_mut().poll(cx))?;
                    let connection = self.client.share(connection);
                    self.send(connection);
                }
                State::Http1 { connection, responding } => {
                    let answered = ready!(connection.poll(cx, |cx| responding.as_mut().poll(cx)));
                    let State::Http1 { connection, .. } = std::mem::replace(&mut self.state, State::Done) else {
                        return Poll::Pending;
                    };
                    match answered {
                        Ok(response) => return Poll::Ready(self.response(response, Some(connection))),
                        Err(error) => self.retry_unsent(error, connection.is_reused)?,
                    }
                }
                State::Http2 { responding, .. } => {
                    let answered = ready!(responding.as_mut().poll(cx));
                    let State::Http2 { again, .. } = std::mem::replace(&mut self.state, State::Done) else {
                        return Poll::Pending;
                    };
                    let may_retry = self.retries < MAX_RETRIES;
                    self.retries += 1;
                    match answered {
                        Ok(response) => return Poll::Ready(self.response(response, None)),
                        Err(error) if may_retry && was_refused(error.error()) => {
                            (self.request, self.state) = (Some(*again), State::Start);
                        }
                        Err(error) => self.retry_unsent(error, may_retry)?,
                    }
                }
                State::Done => return Poll::Pending,
            }
        }
    }

    fn connect(&mut self) {
        let client = self.client.clone();
        self.state = State::Connecting(Box::pin(async move {
            let uri = client.origin.uri(PathAndQuery::from_static("/"));
            let uri = uri.map_err(|error| SendError::Connect(error.into()))?;
            client.connector.connect(uri).await
        }));
    }

    fn send(&mut self, connection: Connection) {
        let Some(mut request) = self.request.take() else {
            self.state = State::Done;
            return;
        };
        let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        self.state = match connection {
            Connection::Http1(mut connection) => {
                if let Some(host) = self.client.origin.host() {
                    request.headers_mut().entry(HOST).or_insert(host);
                }
                *request.uri_mut() = path.into();
                let responding = connection.send(request);
                State::Http1 { connection, responding }
            }
            Connection::Http2(mut sender) => {
                if let Ok(uri) = self.client.origin.uri(path) {
                    *request.uri_mut() = uri;
                }
                let again = Box::new(request.clone());
                State::Http2 { responding: Box::pin(sender.try_send_request(request)), again }
            }
        };
    }

    /// Sends the request over another connection if nothing of it was sent over this one. A new connection that does not
    /// accept its first request is an error.
    fn retry_unsent(&mut self, mut error: TrySendError<Request>, may_retry: bool) -> Result<(), SendError> {
        match error.take_message().filter(|_| may_retry) {
            Some(request) => {
                (self.request, self.state) = (Some(request), State::Start);
                Ok(())
            }
            None => Err(SendError::Send(error.into_error())),
        }
    }

    fn response(
        &self,
        response: Response<Incoming>,
        connection: Option<Box<Http1Connection>>,
    ) -> Result<Response<ResponseBody>, SendError> {
        let idle = self.client.idle.clone();
        let decoded = ResponseBody::of(response.map(|incoming| ExchangeBody::new(incoming, connection, idle)));
        decoded.ok_or_else(|| SendError::Connect("the response could not be decoded".into()))
    }
}

/// Whether the backend has refused a request over HTTP/2 without reading it: it may be sent again.
fn was_refused(error: &hyper::Error) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<h2::Error>()).any(|error| {
        let is_goodbye = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        let is_refusal = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_remote() && (is_goodbye || is_refusal)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "../../../tests/unit/upstream_http_client_exchange.rs"]
mod tests;
