//! Compressed responses: gzip, brotli and zstd.

use super::body::{ExchangeBody, ResponseBody};
use futures_util::FutureExt;
use http::header::ACCEPT_ENCODING;
use http::{Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::mem;
use std::task::{Context, Poll};
use tower_http::decompression::Decompression;
use tower_service::Service;

/// Decodes the body of a response, if its header `content-encoding` has a known value. There always is a result.
pub fn decoded(response: Response<ExchangeBody>) -> Option<Response<ResponseBody>> {
    let (mut head, body) = response.into_parts();
    let mut request = Request::new(body);
    *request.headers_mut() = mem::take(&mut head.headers);
    let (decoded, body) = Decompression::new(Echo).call(request).now_or_never()?.ok()?.into_parts();
    head.headers = decoded.headers;
    // Of the request.
    head.headers.remove(ACCEPT_ENCODING);
    Some(Response::from_parts(head, ResponseBody::Encoded(Box::pin(body))))
}

/// The service below the decoder: its response has the headers and the body of the request.
struct Echo;

impl Service<Request<ExchangeBody>> for Echo {
    type Response = Response<ExchangeBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<ExchangeBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ExchangeBody>) -> Self::Future {
        let (head, body) = request.into_parts();
        let mut response = Response::new(body);
        *response.headers_mut() = head.headers;
        ready(Ok(response))
    }
}
