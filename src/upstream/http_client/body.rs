//! The body of a response. Its connection goes back to the pool when it was read to its end.

use super::decoded::decoded;
use super::http1::Http1Connection;
use super::idle::IdleConnections;
use super::send_error::root_cause;
use bytes::Bytes;
use http::Response;
use http::header::CONTENT_ENCODING;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower_http::decompression::DecompressionBody;

pub enum ResponseBody {
    Plain(ExchangeBody),
    Encoded(Pin<Box<DecompressionBody<ExchangeBody>>>),
}

/// As it was sent.
pub struct ExchangeBody {
    incoming: Incoming,
    /// None over HTTP/2, and after the end of the body.
    connection: Option<Box<Http1Connection>>,
    idle: Arc<IdleConnections>,
}

impl ResponseBody {
    /// The body of a response, decoded if it is compressed.
    pub(super) fn of(response: Response<ExchangeBody>) -> Option<Response<ResponseBody>> {
        match response.headers().contains_key(CONTENT_ENCODING) {
            true => decoded(response),
            false => Some(response.map(ResponseBody::Plain)),
        }
    }

    /// The next bytes, without trailers and empty chunks; an error as its innermost cause.
    pub fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        loop {
            let frame = match self {
                ResponseBody::Plain(body) => {
                    let frame = ready!(Pin::new(body).poll_frame(cx));
                    frame.map(|frame| frame.map_err(|error| root_cause(&error)))
                }
                ResponseBody::Encoded(body) => {
                    let frame = ready!(body.as_mut().poll_frame(cx));
                    frame.map(|frame| frame.map_err(|error| root_cause(&*error)))
                }
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(bytes))) if !bytes.is_empty() => return Poll::Ready(Some(Ok(bytes))),
                Some(Ok(_)) => {}
                Some(Err(why)) => return Poll::Ready(Some(Err(why))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl ExchangeBody {
    pub(super) fn new(
        incoming: Incoming,
        connection: Option<Box<Http1Connection>>,
        idle: Arc<IdleConnections>,
    ) -> ExchangeBody {
        ExchangeBody { incoming, connection, idle }
    }
}

impl Body for ExchangeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let ExchangeBody { incoming, connection, idle } = &mut *self;
        let frame = match connection {
            Some(connection) => ready!(connection.poll(cx, |cx| Pin::new(&mut *incoming).poll_frame(cx))),
            None => ready!(Pin::new(incoming).poll_frame(cx)),
        };
        if frame.is_none()
            && let Some(connection) = connection.take()
        {
            idle.put_http1(connection);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // Its end is polled, so that the connection can be used again.
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
