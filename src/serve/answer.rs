//! A turn as an HTTP answer: a JSON body, or a stream whose source is polled inside the response body.

use super::endpoint::Slot;
use super::{pages, reply};
use crate::canon::{Fault, FaultKind, Frame};
use crate::ingress;
use crate::mapping::dialect::DialectPlan;
use crate::pipeline::{Answer, Order, Pipeline, Step};
use crate::reload::Generation;
use crate::turn::Ids;
use crate::upstream::{self, Arrived, Source};
use crate::wire;
use bytes::Bytes;
use futures_util::Stream;
use poem::{Body, Response};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

pub async fn answer(
    generation: &Arc<Generation>,
    dialect: Arc<DialectPlan>,
    body: &[u8],
    slot: Slot,
    id: &str,
) -> Result<Response, Fault> {
    let request = Arc::new(ingress::read(&dialect.request, body)?);
    let gateway = &generation.plan.gateway;
    let model = gateway.model(&request.model).ok_or_else(|| {
        let param = dialect.request.param_of("model").unwrap_or_else(|| "model".to_owned());
        pages::unknown_model(&request.model).param(param)
    })?;
    let backend = gateway
        .backends
        .get(model.backend)
        .ok_or_else(|| Fault::new(FaultKind::Internal, "the model has no backend"))?;
    let (source, rules) = upstream::ask(&generation.plan, backend, &request)?;
    let stream = request.stream;
    let pipeline = Pipeline::new(Order {
        backend: rules,
        dialect: dialect.clone(),
        request,
        validation: gateway.validation,
        answer: if stream { Answer::Stream } else { Answer::Body },
        ids: Ids::Seeded(uuid::Uuid::new_v4().as_u128()),
        now_ms: now_ms(),
    });
    let live = Live { pipeline, source, over: false, dialect, _generation: generation.clone(), _slot: slot };
    if stream { live.into_stream(id).await } else { live.into_body().await }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A turn under way. Dropping it, because the client is gone, leaves the backend.
struct Live {
    pipeline: Pipeline,
    source: Source,
    over: bool,
    dialect: Arc<DialectPlan>,
    /// Kept so that nothing of the plan goes before the turn does.
    _generation: Arc<Generation>,
    _slot: Slot,
}

/// What is ready together leaves together, up to here.
const WRITE_BYTES: usize = 64 * 1024;

impl Live {
    /// The next step of the turn.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let step = match ready!(self.source.poll_next(cx)) {
            Arrived::Raw(raw) => self.pipeline.push(&raw, now_ms()),
            Arrived::Ended(how) => {
                let step = self.pipeline.finish(how, now_ms());
                self.over = true;
                step
            }
        };
        self.over |= step.over;
        Poll::Ready(step)
    }

    async fn into_body(mut self) -> Result<Response, Fault> {
        while !self.over {
            poll_fn(|cx| self.poll_step(cx)).await;
        }
        self.pipeline.body().map(|body| reply::json(200, &body))
    }

    /// The head is held until the first event of the turn, so that a fault before it is a plain HTTP error.
    async fn into_stream(mut self, id: &str) -> Result<Response, Fault> {
        let mut opening = Vec::new();
        write_all(&self.pipeline.begin().frames, &self.dialect, &mut opening);
        let first = match opening.is_empty() {
            true => poll_fn(|cx| self.poll_bytes(cx)).await,
            false => Some(Bytes::from(opening)),
        };
        if let Some(fault) = self.pipeline.fault()
            && !self.pipeline.is_open()
        {
            return Err(fault.clone());
        }
        tracing::debug!(id, "stream began");
        let content_type = self.dialect.wire.content_type.clone();
        let body = Body::from_bytes_stream(Frames { first, live: self });
        Ok(Response::builder()
            .content_type(content_type)
            .header("cache-control", "no-cache, no-transform")
            .header("x-accel-buffering", "no")
            .body(body))
    }

    /// Everything that is ready now, as one piece; `None` when the turn is over.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = Vec::new();
        while !self.over && out.len() < WRITE_BYTES {
            match self.poll_step(cx) {
                Poll::Ready(step) => write_all(&step.frames, &self.dialect, &mut out),
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready((!out.is_empty()).then(|| Bytes::from(out)))
    }
}

fn write_all(frames: &[Frame], dialect: &DialectPlan, out: &mut Vec<u8>) {
    for frame in frames {
        wire::write(frame, dialect.wire.kind, out);
    }
}

/// The response body: the source is polled here, so there is no task and no channel per frame.
struct Frames {
    first: Option<Bytes>,
    live: Live,
}

impl Stream for Frames {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.live.poll_bytes(cx).map(|bytes| bytes.map(Ok))
    }
}
