//! Content that is read while it is being written: an upload need not wait for the end of a
//! download.

use super::{PartialBlob, TransferError, TransferOutcome};
use bytes::Bytes;
use futures_util::StreamExt;
use landfall_http::{ByteStream, ErrorKind, HttpError};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The longest piece, in bytes.
const PIECE: u64 = 256 << 10;

/// How far a writer came.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    /// So many bytes are there, from the first on.
    pub(super) bytes: u64,
    /// All are there, and have the digest.
    pub(super) is_right: bool,
    /// How often it began anew. What was read before that is not the beginning of what comes after.
    pub(super) restarts: u32,
}

/// What a writer writes, for a reader beside it.
#[derive(Debug)]
pub struct Follower {
    pub(super) partial: Arc<dyn PartialBlob>,
    pub(super) written: watch::Receiver<Written>,
}

/// The task that brings the content. It ends with whoever follows it.
pub(super) struct Bringing(pub(super) JoinHandle<Result<TransferOutcome, TransferError>>);

impl Bringing {
    /// What came of it.
    ///
    /// # Errors
    /// Why the content is not there. It was tried as often as that may help, and is not tried again
    /// for this error.
    pub(super) async fn end(&mut self) -> Result<(), HttpError> {
        let local =
            |error: tokio::task::JoinError| HttpError::new(ErrorKind::Local, error.to_string());
        let brought = (&mut self.0).await.map_err(local)?;
        brought.map(drop).map_err(|failed| {
            let mut error = *failed.why;
            if matches!(error.kind, ErrorKind::Network | ErrorKind::Invalid) {
                error.kind = ErrorKind::GivenUp;
            }
            error
        })
    }
}

impl Drop for Bringing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The content of `size` bytes that `follower` sees, from `at` on. The last byte is held back until
/// the digest is known to be right.
///
/// # Errors
/// As [`Bringing::end`], before the first byte.
pub(super) async fn follow(
    mut follower: Follower,
    mut bringing: Bringing,
    (at, size): (u64, u64),
) -> Result<ByteStream, HttpError> {
    let begun = follower
        .written
        .wait_for(|written| written.is_right || written.bytes > at)
        .await;
    let Ok(restarts) = begun.map(|written| written.restarts) else {
        return Err(ended(follower, &mut bringing).await);
    };
    let stream =
        futures_util::stream::unfold(Some((follower, bringing, at)), move |state| async move {
            let (mut follower, mut bringing, at) = state?;
            loop {
                let written = *follower.written.borrow_and_update();
                if written.restarts != restarts {
                    return Some((Err(ended(follower, &mut bringing).await), None));
                }
                let end = if written.is_right {
                    size
                } else {
                    written.bytes.min(size.saturating_sub(1))
                };
                if at < end {
                    let mut piece = vec![0; (end - at).min(PIECE) as usize];
                    // just written: a read from the page cache is shorter than a switch to another
                    // thread
                    let read = follower.partial.read(&mut piece, at);
                    // what is read while it begins anew is no more, or of the new beginning
                    if follower.written.borrow().restarts != restarts {
                        continue;
                    }
                    let local = |error: super::WriteError| {
                        HttpError::new(ErrorKind::Local, error.to_string())
                    };
                    let next = at + piece.len() as u64;
                    return Some((
                        read.map(|()| Bytes::from(piece)).map_err(local),
                        Some((follower, bringing, next)),
                    ));
                }
                if written.is_right {
                    return None;
                }
                if follower.written.changed().await.is_err() {
                    return Some((Err(ended(follower, &mut bringing).await), None));
                }
            }
        });
    Ok(stream.boxed())
}

/// Why the write that was followed came to no good end. It may have begun anew, which waits for the
/// file.
async fn ended(follower: Follower, bringing: &mut Bringing) -> HttpError {
    drop(follower);
    match bringing.end().await {
        Ok(()) => HttpError::new(
            ErrorKind::Invalid,
            "its first bytes were wrong, and it was fetched again",
        ),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;
    use crate::{LocalStore, VerifiedWriter};
    use landfall_model::{Descriptor, Digest};

    const CONTENT: &[u8] = b"hello world";

    /// A write of [`CONTENT`] into a store in `dir`, and who follows it.
    fn begun(dir: &std::path::Path) -> (VerifiedWriter, Follower) {
        let (digest, size) = (Digest::sha256(CONTENT), CONTENT.len() as u64);
        let blob = Descriptor {
            digest,
            size,
            media_type: "x/y".into(),
        };
        let disk = DiskStore::open(dir).unwrap();
        let (writer, _) = LocalStore::begin(&disk, &blob, false).unwrap().unwrap();
        let follower = writer.follower();
        (writer, follower)
    }

    /// A write into a store, and a stream that follows it from `at` on. The bringing ends as the
    /// write did.
    async fn followed(
        at: u64,
        write: impl FnOnce(VerifiedWriter) -> Result<(), TransferError> + Send + 'static,
    ) -> Vec<Result<Bytes, ErrorKind>> {
        let dir = tempfile::tempdir().unwrap();
        let (writer, follower) = begun(dir.path());
        let bringing =
            tokio::task::spawn_blocking(move || write(writer).map(|()| TransferOutcome::There));
        match follow(follower, Bringing(bringing), (at, CONTENT.len() as u64)).await {
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
        let (told, rest) = std::sync::mpsc::channel();
        let (dir, size) = (tempfile::tempdir().unwrap(), CONTENT.len() as u64);
        let (mut writer, follower) = begun(dir.path());
        let bringing = tokio::task::spawn_blocking(move || {
            writer.write(&CONTENT[..5])?;
            writer.write(&CONTENT[5..])?;
            let () = rest.recv().unwrap();
            writer.commit()?;
            Ok(TransferOutcome::Received(size))
        });
        let mut stream = follow(follower, Bringing(bringing), (0, size))
            .await
            .unwrap();
        let mut all = Vec::new();
        while all.len() < CONTENT.len() - 1 {
            all.extend_from_slice(&stream.next().await.unwrap().unwrap());
        }
        assert_eq!(all, CONTENT[..CONTENT.len() - 1]);
        told.send(()).unwrap();
        all.extend_from_slice(&stream.next().await.unwrap().unwrap());
        assert!(all == CONTENT && stream.next().await.is_none());
    }

    #[tokio::test]
    async fn what_was_read_before_a_write_began_anew_is_not_continued() {
        let (dir, size) = (tempfile::tempdir().unwrap(), CONTENT.len() as u64);
        let (mut writer, follower) = begun(dir.path());
        let bringing = tokio::spawn(async { Ok(TransferOutcome::There) });
        writer.write(b"HELLO").unwrap();
        let mut stream = follow(follower, Bringing(bringing), (0, size))
            .await
            .unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), &b"HELLO"[..]);
        writer.restart().unwrap();
        writer.write(CONTENT).unwrap();
        writer.commit().unwrap();
        assert_eq!(
            stream.next().await.unwrap().unwrap_err().kind,
            ErrorKind::Invalid,
            "from its beginning"
        );
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn what_goes_wrong_with_the_write_ends_the_stream() {
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
            "as often as it may help"
        );
        let anew = followed(0, |mut writer| {
            writer.write(b"hello")?;
            drop(writer);
            Ok(())
        });
        assert_eq!(
            anew.await.last(),
            Some(&Err(ErrorKind::Invalid)),
            "it is there now: from its beginning"
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
