//! The socket of a client, which reports writes that must wait, and whether anybody reads.

use super::write_stall::StallWatch;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

pub struct ClientSocket {
    socket: TokioIo<TcpStream>,
    watch: Arc<StallWatch>,
    reads: Arc<ReadCount>,
}

/// How often hyper has tried to read.
#[derive(Debug, Default)]
pub struct ReadCount(AtomicU64);

impl ReadCount {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ClientSocket {
    pub fn new(socket: TcpStream, watch: Arc<StallWatch>, reads: Arc<ReadCount>) -> ClientSocket {
        ClientSocket { socket: TokioIo::new(socket), watch, reads }
    }

    fn report<T>(&self, written: Poll<T>) -> Poll<T> {
        match &written {
            Poll::Ready(_) => self.watch.progress(),
            Poll::Pending => self.watch.wait(),
        }
        written
    }
}

impl Read for ClientSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        self.reads.0.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl Write for ClientSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.report(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, slices);
        self.report(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
