//! A TCP stream that records the progress of its client, and sends files in place of placeholder
//! bytes.

use super::connection_table::TrackedConnection;
use super::sendfile_queue::SendfileQueue;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream with its entry in the connection table and the files to send.
pub(crate) struct TrackedStream {
    pub(crate) stream: TcpStream,
    pub(crate) connection: Arc<TrackedConnection>,
    pub(crate) files: SendfileQueue,
}

impl TrackedStream {
    fn poll_sendfile(&mut self, context: &mut Context<'_>, max: usize) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(context))?;
            let sent = self
                .stream
                .try_io(Interest::WRITABLE, || self.files.send(&self.stream, max));
            match sent {
                // `try_io` has cleared the readiness, so the next poll waits for it
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        // the end of the stream is not progress of the client
        if count > 0 {
            self.connection.received(count);
        }
        result
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let placeholder = slices
            .iter()
            .position(|slice| SendfileQueue::is_placeholder(slice));
        let result = match placeholder {
            Some(0) => self.poll_sendfile(context, slices[0].len()),
            Some(index) => {
                // first sends the bytes before the file, such as the head of the response
                Pin::new(&mut self.stream).poll_write_vectored(context, &slices[..index])
            }
            None => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
        };
        match &result {
            // the system's send buffer is full: the client takes no more bytes at the moment
            Poll::Pending => self.connection.not_read(),
            Poll::Ready(Ok(count)) => self.connection.sent(*count),
            Poll::Ready(Err(_)) => {}
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for TrackedStream {
    fn drop(&mut self) {
        // otherwise the bytes that the client has not read would stay in the system's buffers
        if self.connection.must_close() && self.connection.is_unread() {
            let _ = self.stream.set_zero_linger();
        }
    }
}
