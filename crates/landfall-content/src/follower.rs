//! Reads a blob while it is being written, so that an upload need not wait for the end of a
//! download.

use super::{PartialBlob, TransferError, TransferOutcome};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// The largest piece of the stream in bytes.
const PIECE_SIZE: u64 = 256 << 10;

/// How much of a blob a writer has written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WriteProgress {
    /// The number of bytes that are written without a gap, counted from the first byte.
    pub(super) bytes: u64,
    /// Whether the blob is complete and has its digest.
    pub(super) is_verified: bool,
    /// How often the writer started over. Bytes from before a restart must not be followed by bytes
    /// from after it.
    pub(super) restarts: u32,
}

/// Gives a reader access to a blob while a writer writes it.
#[derive(Debug)]
pub struct Follower {
    pub(super) partial: Arc<dyn PartialBlob>,
    pub(super) progress: watch::Receiver<WriteProgress>,
}

/// Receives the follower of a write, if there is one.
pub type FollowerSender = oneshot::Sender<Follower>;

/// The task that transfers the followed blob. It is aborted when the reader is dropped.
pub(super) struct BackgroundTransfer(pub(super) JoinHandle<Result<TransferOutcome, TransferError>>);

impl BackgroundTransfer {
    /// Waits for the end of the transfer.
    ///
    /// A network error, or the error for wrong bytes, becomes `GivenUp`: the transfer has made all
    /// its attempts, so the upload that reads the blob must not add its own.
    pub(super) async fn finish(&mut self) -> Result<(), HttpError> {
        let Err(failed) = (&mut self.0).await? else {
            return Ok(());
        };
        let mut error = *failed.why;
        if matches!(error.kind, ErrorKind::Network | ErrorKind::Invalid) {
            error.kind = ErrorKind::GivenUp;
        }
        Err(error)
    }
}

impl Drop for BackgroundTransfer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Streams `range` of the blob that `follower` reads. The range must end at the end of the blob.
/// The last byte is held back until the digest was verified. Returns an error if the transfer fails
/// before the first byte of the range is written.
pub(super) async fn follow(
    mut follower: Follower,
    transfer: BackgroundTransfer,
    range: Range<u64>,
) -> Result<ByteStream, HttpError> {
    let begun = follower
        .progress
        // the upload begins after this function returns, so no upload begins without a first byte
        .wait_for(|progress| progress.is_verified || progress.bytes > range.start)
        .await
        .map(|progress| progress.restarts);
    let mut stream = FollowingStream {
        follower,
        transfer,
        at: range.start,
        size: range.end,
        restarts: 0,
    };
    match begun {
        Ok(restarts) => stream.restarts = restarts,
        Err(_) => return Err(stream.failure().await),
    }
    let next = async |stream: Option<FollowingStream>| stream?.next().await;
    Ok(futures_util::stream::unfold(Some(stream), next).boxed())
}

/// A stream of a blob that is still being written.
struct FollowingStream {
    follower: Follower,
    transfer: BackgroundTransfer,
    /// The offset of the next byte.
    at: u64,
    /// The size of the blob.
    size: u64,
    /// The number of restarts when the stream began.
    restarts: u32,
}

impl FollowingStream {
    /// Returns the next bytes and the stream after them, or an error that ends the stream, or
    /// `None` at the end of the blob.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<FollowingStream>)> {
        loop {
            let progress = *self.follower.progress.borrow_and_update();
            if progress.restarts != self.restarts {
                return Some((Err(self.failure().await), None));
            }
            let end = if progress.is_verified {
                self.size
            } else {
                // a receiver that counts bytes accepts the blob when it has the last byte, so that
                // byte must wait
                progress.bytes.min(self.size.saturating_sub(1))
            };
            if self.at < end {
                let mut piece = vec![0; (end - self.at).min(PIECE_SIZE) as usize];
                // not on a blocking thread: the bytes were just written, and a read from the page
                // cache is shorter than a switch to another thread
                let read = self.follower.partial.read(&mut piece, self.at);
                // bytes that are read during a restart may be missing or belong to the new
                // beginning
                if self.follower.progress.borrow().restarts != self.restarts {
                    continue;
                }
                if let Err(error) = read {
                    let error = HttpError::new(ErrorKind::Local, error.to_string());
                    return Some((Err(error), None));
                }
                self.at += piece.len() as u64;
                return Some((Ok(Bytes::from(piece)), Some(self)));
            }
            if progress.is_verified {
                return None;
            }
            if self.follower.progress.changed().await.is_err() {
                return Some((Err(self.failure().await), None));
            }
        }
    }

    /// Returns why the stream cannot continue: the transfer failed, or the write started over.
    async fn failure(mut self) -> HttpError {
        // the follower holds the lock of the file, which a restarted write waits for
        drop(self.follower);
        match self.transfer.finish().await {
            Ok(()) => HttpError::new(
                ErrorKind::Invalid,
                "its first bytes were wrong, and it was fetched again",
            ),
            Err(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;
    use crate::{ByteRange, LocalStore, VerifiedWriter, WriteError};
    use landfall_model::{Descriptor, Digest};
    use std::sync::atomic::{AtomicBool, Ordering};

    const CONTENT: &[u8] = b"hello world";

    /// Begins to write [`CONTENT`] to a store in `dir`, with a follower.
    fn begun(dir: &std::path::Path) -> (VerifiedWriter, Follower) {
        let digest = Digest::sha256(CONTENT);
        let size = CONTENT.len() as u64;
        let blob = Descriptor::new(digest, size, "x/y");
        let disk = DiskStore::open(dir).unwrap();
        let (writer, _) = LocalStore::begin(&disk, &blob, false).unwrap().unwrap();
        let follower = writer.follower();
        (writer, follower)
    }

    /// Follows a write to a store from `at` on and returns what the stream yields.
    async fn followed(
        at: u64,
        write: impl FnOnce(VerifiedWriter) -> Result<(), TransferError> + Send + 'static,
    ) -> Vec<Result<Bytes, ErrorKind>> {
        let dir = tempfile::tempdir().unwrap();
        let (writer, follower) = begun(dir.path());
        let transfer = tokio::task::spawn_blocking(move || {
            write(writer).map(|()| TransferOutcome::AlreadyPresent)
        });
        match follow(
            follower,
            BackgroundTransfer(transfer),
            at..CONTENT.len() as u64,
        )
        .await
        {
            Ok(stream) => {
                stream
                    .map(|next| next.map_err(|error| error.kind))
                    .collect()
                    .await
            }
            Err(error) => vec![Err(error.kind)],
        }
    }

    #[tokio::test]
    async fn the_last_byte_waits_until_the_digest_is_right() {
        let (done, rest) = std::sync::mpsc::channel();
        let dir = tempfile::tempdir().unwrap();
        let size = CONTENT.len() as u64;
        let (mut writer, follower) = begun(dir.path());
        let transfer = tokio::task::spawn_blocking(move || {
            writer.write(&CONTENT[..5])?;
            writer.write(&CONTENT[5..])?;
            let () = rest.recv().unwrap();
            writer.commit()?;
            Ok(TransferOutcome::Received(size))
        });
        let mut stream = follow(follower, BackgroundTransfer(transfer), 0..size)
            .await
            .unwrap();
        let mut all = Vec::new();
        while all.len() < CONTENT.len() - 1 {
            all.extend_from_slice(&stream.next().await.unwrap().unwrap());
        }
        assert_eq!(all, CONTENT[..CONTENT.len() - 1]);
        done.send(()).unwrap();
        all.extend_from_slice(&stream.next().await.unwrap().unwrap());
        assert!(all == CONTENT && stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_stream_ends_when_the_write_starts_over() {
        let dir = tempfile::tempdir().unwrap();
        let size = CONTENT.len() as u64;
        let (mut writer, follower) = begun(dir.path());
        let transfer = tokio::spawn(async { Ok(TransferOutcome::AlreadyPresent) });
        writer.write(b"HELLO").unwrap();
        let mut stream = follow(follower, BackgroundTransfer(transfer), 0..size)
            .await
            .unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), &b"HELLO"[..]);
        writer.restart().unwrap();
        writer.write(CONTENT).unwrap();
        writer.commit().unwrap();
        assert_eq!(
            stream.next().await.unwrap().unwrap_err().kind,
            ErrorKind::Invalid,
            "the read must start from the beginning"
        );
        assert!(stream.next().await.is_none());
    }

    /// A blob whose first read fails.
    #[derive(Debug, Default)]
    struct OnceUnreadable(AtomicBool);

    impl PartialBlob for OnceUnreadable {
        fn read(&self, buffer: &mut [u8], _offset: u64) -> Result<(), WriteError> {
            if !self.0.swap(true, Ordering::Relaxed) {
                return Err(WriteError::Refused("unreadable".into()));
            }
            buffer.fill(b'x');
            Ok(())
        }

        fn write(&self, _bytes: &[u8], _offset: u64) -> Result<(), WriteError> {
            Ok(())
        }

        fn record(&self, _range: ByteRange) -> std::io::Result<()> {
            Ok(())
        }

        fn clear(&self) -> Result<(), WriteError> {
            Ok(())
        }

        fn publish(&self) -> Result<(), WriteError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_unreadable_piece_ends_the_stream() {
        let size = 2 * PIECE_SIZE;
        let (_writer, progress) = watch::channel(WriteProgress {
            bytes: size,
            is_verified: true,
            restarts: 0,
        });
        let partial = Arc::new(OnceUnreadable::default());
        let follower = Follower { partial, progress };
        let transfer = BackgroundTransfer(tokio::spawn(std::future::pending()));
        let stream = follow(follower, transfer, 0..size).await.unwrap();
        let read: Vec<Result<Bytes, ErrorKind>> = stream
            .map(|next| next.map_err(|error| error.kind))
            .collect()
            .await;
        assert_eq!(read, [Err(ErrorKind::Local)]);
    }

    #[tokio::test]
    async fn a_failed_write_ends_the_stream() {
        let right = followed(6, |mut writer| {
            writer.write(CONTENT)?;
            Ok(writer.commit()?)
        });
        let right: Result<Vec<Bytes>, ErrorKind> = right.await.into_iter().collect();
        assert_eq!(right.unwrap().concat(), &CONTENT[6..]);
        let wrong = followed(0, |mut writer| {
            writer.write(b"hello wOrld")?;
            Ok(writer.commit()?)
        });
        assert_eq!(
            wrong.await.last(),
            Some(&Err(ErrorKind::GivenUp)),
            "all attempts were made"
        );
        let anew = followed(0, |mut writer| {
            writer.write(b"hello")?;
            drop(writer);
            Ok(())
        });
        assert_eq!(
            anew.await.last(),
            Some(&Err(ErrorKind::Invalid)),
            "the read must start from the beginning"
        );
        let nothing = followed(0, |_| {
            Err(TransferError::new(
                landfall_model::report::TransferSide::Source,
                ErrorKind::Denied,
                "",
            ))
        });
        assert_eq!(nothing.await, [Err(ErrorKind::Denied)]);
    }
}
