//! A TCP stream that records the progress of its client, and sends files in place of placeholder
//! bytes.

use super::TrackedConnection;
use bytes::Bytes;
use landfall_content::FileRun;
use landfall_model::locked;
use landfall_os::send_file;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How long a client may go on sending a body that nobody reads, after the last answer.
const LINGER: Duration = Duration::from_secs(2);

/// A TCP stream with its entry in the connection table and the files to send.
pub(crate) struct TrackedStream {
    stream: TcpStream,
    connection: Arc<TrackedConnection>,
    files: SendfileQueue,
    /// The end of [`LINGER`], once the last answer is sent.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl TrackedStream {
    /// The stream of `connection`, on which `files` are sent in place of placeholder bytes.
    pub(crate) fn new(
        stream: TcpStream,
        connection: Arc<TrackedConnection>,
        files: SendfileQueue,
    ) -> TrackedStream {
        TrackedStream {
            stream,
            connection,
            files,
            lingering: None,
        }
    }

    /// Reads and drops what the client sends of a body that nobody reads, until the client closes
    /// its side or [`LINGER`] has passed. A socket that is closed before resets the connection, and
    /// many clients then report the broken connection in place of the answer, which says why the
    /// body was refused.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.connection.has_ignored_body() || self.connection.must_close() {
            return Poll::Ready(());
        }
        let end = self
            .lingering
            .get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut bytes = [0; 8 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }

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
        ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        self.poll_linger(context).map(Ok)
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

// Response bodies that the system sends from files (`sendfile`), without copying their bytes
// through the process.

/// The placeholder bytes. They are recognized by their address and never read. A constant array
/// would add a megabyte to the program's file; memory that is never touched costs nothing.
static PLACEHOLDER: LazyLock<Box<[u8]>> =
    LazyLock::new(|| vec![0; SendfileQueue::MAX_PIECE].into_boxed_slice());

/// The runs of files that a connection must send, in order.
#[derive(Clone, Default)]
pub(crate) struct SendfileQueue(Arc<Mutex<VecDeque<FileRun>>>);

impl SendfileQueue {
    /// The maximum length of a piece in bytes.
    pub(crate) const MAX_PIECE: usize = 1 << 20;

    /// Queues `runs`, which have at most [`SendfileQueue::MAX_PIECE`] bytes together, and returns
    /// the placeholder bytes for them.
    pub(crate) fn placeholder(&self, runs: Vec<FileRun>) -> Bytes {
        let length = runs.iter().map(|run| run.length).sum::<u64>() as usize;
        // queued before the placeholder reaches the stream, which takes the runs from here
        locked(&self.0).extend(runs);
        Bytes::from_static(&PLACEHOLDER[..length])
    }

    /// Whether `bytes` are placeholder bytes.
    pub(super) fn is_placeholder(bytes: &[u8]) -> bool {
        !bytes.is_empty() && PLACEHOLDER.as_ptr_range().contains(&bytes.as_ptr())
    }

    /// Sends at most `max` bytes of the queued runs, as many as `stream` accepts now.
    ///
    /// Fails with `WouldBlock` if the stream accepts none, and with `UnexpectedEof` if a file ends
    /// early.
    pub(super) fn send(&self, stream: &TcpStream, max: usize) -> io::Result<usize> {
        let mut runs = locked(&self.0);
        let mut sent = 0;
        while sent < max {
            let run = runs
                .front_mut()
                .ok_or_else(|| io::Error::other("no file is queued for these bytes"))?;
            let count = run.length.min((max - sent) as u64) as usize;
            match send_file(stream, &run.file, &mut run.at, count) {
                // the file became shorter after its checksum was compared
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(now) => {
                    sent += now;
                    run.length -= now as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // returns the number of bytes sent so far; the rest is sent when the stream is
                // writable again
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && sent > 0 => break,
                Err(error) => return Err(error),
            }
            if run.length == 0 {
                runs.pop_front();
            }
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::ConnectionTable;
    use std::fs::File;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A client, and the stream of the server that it is connected to.
    async fn connected() -> (TcpStream, TrackedStream) {
        let table = ConnectionTable::new(1, Duration::from_secs(9), Duration::from_secs(9));
        let connection = table.add().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) = tokio::join!(
            TcpStream::connect(listener.local_addr().unwrap()),
            listener.accept()
        );
        let (client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        let server = TrackedStream::new(stream, connection, SendfileQueue::default());
        (client, server)
    }

    #[tokio::test]
    async fn a_client_that_is_still_sending_a_refused_body_gets_the_answer() {
        let (mut client, mut server) = connected().await;
        server.connection.ignores_body();
        let answering = async move {
            server.write_all(b"refused").await.unwrap();
            server.shutdown().await.unwrap();
        };
        let sending = async move {
            client.write_all(&vec![0; 4 << 20]).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let ((), answer) = tokio::join!(answering, sending);
        assert_eq!(answer, "refused");
    }

    #[tokio::test]
    async fn a_connection_whose_bodies_were_read_closes_at_once() {
        let (_client, mut server) = connected().await;
        server.connection.ignores_body();
        drop(server.connection.begin_request());
        let closed = tokio::time::timeout(LINGER / 4, server.shutdown()).await;
        closed.unwrap().unwrap();
    }

    #[tokio::test]
    async fn runs_are_sent_in_order_and_a_file_that_ends_early_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"abcdefghij").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let run = |at, length| FileRun {
            file: file.clone(),
            at,
            length,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (stream, peer) = tokio::join!(
            TcpStream::connect(listener.local_addr().unwrap()),
            listener.accept()
        );
        let (stream, (mut peer, _)) = (stream.unwrap(), peer.unwrap());
        let pieces = SendfileQueue::default();
        let bytes = pieces.placeholder(vec![run(2, 3), run(7, 2)]);
        assert!(
            bytes.len() == 5
                && SendfileQueue::is_placeholder(&bytes)
                && SendfileQueue::is_placeholder(&bytes[4..])
        );
        assert!(
            !SendfileQueue::is_placeholder(b"abc") && !SendfileQueue::is_placeholder(&bytes[5..])
        );
        stream.writable().await.unwrap();
        assert_eq!(pieces.send(&stream, 4).unwrap(), 4);
        assert_eq!(pieces.send(&stream, 1).unwrap(), 1);
        let mut got = [0; 5];
        peer.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"cdehi");
        assert!(pieces.send(&stream, 1).is_err(), "no more bytes are queued");
        pieces.placeholder(vec![run(8, 5)]);
        assert_eq!(pieces.send(&stream, 2).unwrap(), 2);
        let ended = pieces.send(&stream, 3).unwrap_err().kind();
        assert_eq!(ended, io::ErrorKind::UnexpectedEof);
    }
}
