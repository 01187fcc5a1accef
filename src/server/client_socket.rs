//! The socket of a client, which reports writes that must wait, and whether anybody reads.

use super::write_stall::StallWatch;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

pub struct ClientSocket {
    socket: TokioIo<TcpStream>,
    watch: Arc<StallWatch>,
    reads: Arc<ReadCount>,
}

/// How often hyper has tried to read, and whether it waits for bytes.
#[derive(Debug, Default)]
pub struct ReadCount {
    reads: AtomicU64,
    is_waiting: AtomicBool,
}

impl ReadCount {
    pub fn get(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
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
        let read = Pin::new(&mut self.socket).poll_read(cx, buf);
        // Only the task of the connection writes them.
        self.reads.reads.store(self.reads.get() + 1, Ordering::Relaxed);
        self.reads.is_waiting.store(read.is_pending(), Ordering::Relaxed);
        read
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

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if self.watch.has_expired() {
            // What the client does not read would stay in the kernel's buffers.
            let _ = self.socket.inner().set_zero_linger();
        }
    }
}
