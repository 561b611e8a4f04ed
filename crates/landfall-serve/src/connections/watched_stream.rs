//! A TCP stream that tells its seat when bytes come and go, and when the client takes none; and
//! sends files where blank bytes stand for them.

use super::file_pieces::FilePieces;
use super::seats::Seat;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream and its seat.
pub(super) struct WatchedStream {
    pub(super) stream: TcpStream,
    pub(super) seat: Arc<Seat>,
    pub(super) pieces: FilePieces,
}

impl WatchedStream {
    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Pending => self.seat.is_not_read(),
            Poll::Ready(_) => self.seat.sent(),
        }
        result
    }

    fn poll_send(&mut self, context: &mut Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(context))?;
            match self
                .stream
                .try_io(Interest::WRITABLE, || self.pieces.send(&self.stream, most))
            {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.seat.received();
        }
        result
    }
}

impl AsyncWrite for WatchedStream {
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
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = match pieces.iter().position(|piece| FilePieces::is_meant(piece)) {
            Some(0) => self.poll_send(context, pieces[0].len()),
            at => {
                let before = &pieces[..at.unwrap_or(pieces.len())];
                Pin::new(&mut self.stream).poll_write_vectored(context, before)
            }
        };
        self.wrote(result)
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

impl Drop for WatchedStream {
    fn drop(&mut self) {
        // what a client has not read would stay in the system's buffers
        if self.seat.leaves() && self.seat.is_unread() {
            let _ = self.stream.set_zero_linger();
        }
    }
}
