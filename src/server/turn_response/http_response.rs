//! A turn becomes a JSON body or a stream.

use super::held_turn::HeldTurn;
use crate::domain::{Fault, TurnRequest};
use crate::engine::response_head::HeadContext;
use crate::server::response;
use bytes::Bytes;
use futures_util::Stream;
use poem::http::{HeaderName, HeaderValue};
use poem::{Body, Response};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) async fn body_response(mut held: HeldTurn, id: &str, request: &TurnRequest) -> Result<Response, Fault> {
    let turn = held.turn()?;
    while !turn.is_over {
        poll_fn(|cx| turn.poll_output(cx)).await;
    }
    let body = turn.pipeline.body_json()?;
    let mut response = response::json(200, body);
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
    let state = Some(turn.pipeline.state());
    let head = HeadContext { request_id: id, request: Some(request), turn: state, fault: None };
    response::add_headers(&mut response, &turn.dialect, &head);
    Ok(response)
}

/// Delays the response headers until the first event of the turn, so that a fault before it is a plain HTTP error; or
/// until the first keepalive is due.
pub(super) async fn stream_response(mut held: HeldTurn) -> Result<Response, Fault> {
    let turn = held.turn()?;
    let mut opening = Vec::new();
    turn.pipeline.begin();
    turn.pipeline.drain(&mut opening);
    let first = match turn.pipeline.is_open() {
        // Some dialects open a stream without a frame.
        true => Some(Bytes::from(opening)).filter(|o| !o.is_empty()),
        false => poll_fn(|cx| turn.poll_bytes(cx)).await,
    };
    if let Some(fault) = turn.pipeline.fault()
        && !turn.pipeline.is_open()
    {
        return Err(fault.clone());
    }
    let dialect = turn.dialect.clone();
    let body = Body::from_bytes_stream(TurnBody { first, turn: held });
    let response = Response::builder().content_type(&dialect.encoding.content_type).body(body);
    let mut response = response::with_room_for_headers(response);
    for (name, value) in &dialect.encoding.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// The response body. It polls the upstream response itself, so there is no task and no channel per frame.
struct TurnBody {
    first: Option<Bytes>,
    turn: HeldTurn,
}

impl Stream for TurnBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        match self.turn.turn() {
            Ok(turn) => turn.poll_bytes(cx).map(|bytes| bytes.map(Ok)),
            Err(_) => Poll::Ready(None),
        }
    }
}
