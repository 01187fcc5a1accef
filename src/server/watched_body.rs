//! The body of a response over HTTP/2, which reports frames that the client's window does not admit.

use super::write_stall::StallWatch;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// hyper queues a frame as soon as the window admits one byte of it. When the body is complete, that queue is not
/// watched any more, so frames are small.
const MAX_FRAME: usize = 16 * 1024;

pub struct WatchedBody<B> {
    body: B,
    /// The rest of a large frame.
    rest: Bytes,
    /// None over HTTP/1, where the socket is watched.
    watch: Option<Arc<StallWatch>>,
}

impl<B> WatchedBody<B> {
    pub fn new(body: B, watch: Option<Arc<StallWatch>>) -> WatchedBody<B> {
        WatchedBody { body, rest: Bytes::new(), watch }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        let Some(watch) = &this.watch else { return Pin::new(&mut this.body).poll_frame(cx) };
        // The frame before was taken.
        watch.progress();
        if this.rest.is_empty() {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => this.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        watch.wait();
        let frame = this.rest.split_to(this.rest.len().min(MAX_FRAME));
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
