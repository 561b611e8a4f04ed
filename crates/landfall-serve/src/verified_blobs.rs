//! Verifies blobs before they are sent. The server hashes each blob once before it sends any byte
//! of it, and again only when its file looks different. Requests for a blob that is being hashed
//! wait until the hashing ends. Two kinds of blobs are hashed at another time. A pushed blob is
//! hashed while it is received. If a whole blob of an object store is requested, it is hashed while
//! it is sent.

use landfall_content::{ContentError, FileStamp, VerifiedRead};
use landfall_model::{Digest, locked};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

/// The maximum number of files that are remembered for one digest. A blob may be in several
/// bundles and in the folder for pushes.
const MAX_FILES: usize = 16;

/// The outcomes of hashing blobs.
pub(crate) struct VerifiedBlobs {
    checks: Mutex<HashMap<Digest, Vec<BlobCheck>>>,
    /// Limits how many blobs are hashed at the same time.
    hashing: Arc<Semaphore>,
    /// The number of hashings that requests started.
    pub(crate) hashed: AtomicU64,
    /// The number of hashed blobs that were damaged.
    pub(crate) damaged: Arc<AtomicU64>,
}

/// One verification of a blob by hashing, in progress or done.
struct BlobCheck {
    file_stamps: Vec<FileStamp>,
    verdict: watch::Receiver<BlobVerdict>,
}

#[derive(Clone)]
enum BlobVerdict {
    Pending,
    Intact,
    Damaged,
    /// The blob could not be read, which may be temporary: the next request tries again.
    Unreadable(Arc<io::Error>),
}

/// A source that holds a blob, and how the blob's files looked when it was found.
#[derive(Clone)]
pub(crate) struct BlobHolder {
    pub(crate) blobs: Arc<dyn VerifiedRead>,
    pub(crate) size: u64,
    file_stamps: Vec<FileStamp>,
}

/// The holders of the blob, in the order of `sources`. Fails if no source holds it.
pub(crate) fn blob_holders(
    sources: &[Arc<dyn VerifiedRead>],
    digest: &Digest,
) -> Result<Vec<BlobHolder>, ContentError> {
    let mut holders = Vec::new();
    for blobs in sources {
        if let Some(size) = blobs.stat(digest)? {
            holders.push(BlobHolder {
                blobs: blobs.clone(),
                size,
                // taken before the content is read, so that a file that is replaced meanwhile is
                // noticed
                file_stamps: blobs.file_stamps(digest)?,
            });
        }
    }
    if holders.is_empty() {
        return Err(ContentError::missing(digest));
    }
    Ok(holders)
}

impl VerifiedBlobs {
    /// A record in which nothing is verified yet. At most `at_once` blobs are hashed at the same
    /// time.
    pub(crate) fn new(at_once: usize) -> VerifiedBlobs {
        VerifiedBlobs {
            checks: Mutex::default(),
            hashing: Arc::new(Semaphore::new(at_once)),
            hashed: AtomicU64::new(0),
            damaged: Arc::default(),
        }
    }

    /// The first of `holders` whose bytes have the digest. Waits until the bytes of that holder and
    /// of all holders before it are hashed. Fails if every holder's bytes are damaged or
    /// unreadable.
    pub(crate) async fn intact_holder(
        &self,
        holders: &[BlobHolder],
        digest: &Digest,
    ) -> Result<BlobHolder, ContentError> {
        let mut error = ContentError::missing(digest);
        for holder in holders {
            match self.verdict(holder, digest).await {
                BlobVerdict::Intact => return Ok(holder.clone()),
                BlobVerdict::Damaged => error = ContentError::damaged(digest),
                BlobVerdict::Pending => {}
                BlobVerdict::Unreadable(why) => {
                    error = ContentError::Read {
                        digest: digest.clone(),
                        // an io::Error cannot be cloned
                        source: io::Error::new(why.kind(), why.to_string()),
                    };
                }
            }
        }
        Err(error)
    }

    /// Whether the holder's bytes were hashed before and have the digest.
    pub(crate) fn is_verified(&self, holder: &BlobHolder, digest: &Digest) -> bool {
        locked(&self.checks)
            .get(digest)
            .into_iter()
            .flatten()
            .filter(|check| check.file_stamps == holder.file_stamps)
            .any(|check| matches!(*check.verdict.borrow(), BlobVerdict::Intact))
    }

    /// Remembers that the bytes of `holder` were hashed while they were sent, and are intact.
    pub(crate) fn mark_sent(&self, holder: &BlobHolder, digest: &Digest) {
        self.mark_intact(holder.file_stamps.clone(), digest);
    }

    /// Remembers that the current bytes in `blobs` were hashed while they were received.
    pub(crate) fn mark_received(
        &self,
        blobs: &dyn VerifiedRead,
        digest: &Digest,
    ) -> Result<(), ContentError> {
        self.mark_intact(blobs.file_stamps(digest)?, digest);
        Ok(())
    }

    fn mark_intact(&self, file_stamps: Vec<FileStamp>, digest: &Digest) {
        let (_, verdict) = watch::channel(BlobVerdict::Intact);
        let check = BlobCheck {
            file_stamps,
            verdict,
        };
        remember(
            locked(&self.checks).entry(digest.clone()).or_default(),
            check,
        );
    }

    /// Forgets a blob that was removed.
    pub(crate) fn forget(&self, digest: &Digest) {
        locked(&self.checks).remove(digest);
    }

    async fn verdict(&self, holder: &BlobHolder, digest: &Digest) -> BlobVerdict {
        let mut verdict = self.check(holder, digest);
        let outcome = verdict
            .wait_for(|verdict| !matches!(verdict, BlobVerdict::Pending))
            .await;
        match outcome {
            Ok(verdict) => verdict.clone(),
            Err(_) => unreadable(io::Error::other("its hashing was aborted")),
        }
    }

    /// The check of the holder's bytes; starts one if there is none, or if the last one could not
    /// read the blob.
    fn check(&self, holder: &BlobHolder, digest: &Digest) -> watch::Receiver<BlobVerdict> {
        let mut checks = locked(&self.checks);
        let of_digest = checks.entry(digest.clone()).or_default();
        if let Some(check) = of_digest
            .iter()
            .find(|check| check.file_stamps == holder.file_stamps)
            && !matches!(*check.verdict.borrow(), BlobVerdict::Unreadable(_))
        {
            return check.verdict.clone();
        }
        let (sender, verdict) = watch::channel(BlobVerdict::Pending);
        let check = BlobCheck {
            file_stamps: holder.file_stamps.clone(),
            verdict: verdict.clone(),
        };
        // entered before the hashing begins, so that all other requests wait for its result
        remember(of_digest, check);
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let hashing = self.hashing.clone();
        let damaged = self.damaged.clone();
        let holder = holder.clone();
        let digest = digest.clone();
        // in its own task, which continues if the client of the first request disconnects
        tokio::spawn(async move {
            let _permit = hashing.acquire_owned().await;
            let verdict = spawn_blocking(move || hash(&holder, &digest))
                .await
                .unwrap_or_else(|stopped| unreadable(stopped.into()));
            if matches!(verdict, BlobVerdict::Damaged) {
                damaged.fetch_add(1, Ordering::Relaxed);
            }
            let _ = sender.send(verdict);
        });
        verdict
    }
}

/// Adds a check. It replaces the check of a file with the same stamp, or the oldest check if there
/// are [`MAX_FILES`] already.
fn remember(checks: &mut Vec<BlobCheck>, check: BlobCheck) {
    checks.retain(|known| known.file_stamps != check.file_stamps);
    if checks.len() == MAX_FILES {
        // the oldest: its file was most likely replaced or removed
        checks.remove(0);
    }
    checks.push(check);
}

fn hash(holder: &BlobHolder, digest: &Digest) -> BlobVerdict {
    // the stamps are compared after the hashing, because the file may be replaced during it
    let is_intact = holder.blobs.verify(digest);
    match holder.blobs.file_stamps(digest) {
        // the result is about another file if the file was replaced meanwhile
        Ok(file_stamps) if file_stamps != holder.file_stamps => {
            return unreadable(io::Error::other("it changed while it was hashed"));
        }
        Err(error) if is_intact.is_ok() => return unreadable(io::Error::other(error)),
        _ => {}
    }
    match is_intact {
        Ok(true) => BlobVerdict::Intact,
        Ok(false) => BlobVerdict::Damaged,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => BlobVerdict::Damaged,
        Err(error) => unreadable(error),
    }
}

fn unreadable(error: io::Error) -> BlobVerdict {
    BlobVerdict::Unreadable(Arc::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_content::BlobRead;
    use std::io::Read;

    /// A blob that counts how often it is opened, and may be replaced.
    struct Counted {
        opened: AtomicU64,
        bytes: Mutex<(FileStamp, Vec<u8>)>,
    }

    impl Counted {
        fn of(inode: u64, bytes: &[u8]) -> Counted {
            Counted {
                opened: AtomicU64::new(0),
                bytes: Mutex::new((file_stamp(inode), bytes.to_vec())),
            }
        }

        fn opened(&self) -> u64 {
            self.opened.load(Ordering::SeqCst)
        }
    }

    fn file_stamp(inode: u64) -> FileStamp {
        FileStamp {
            inode,
            mtime: (0, 0),
            size: 0,
        }
    }

    impl BlobRead for Counted {
        fn stat(&self, _: &Digest) -> Result<Option<u64>, ContentError> {
            Ok(Some(self.bytes.lock().unwrap().1.len() as u64))
        }

        fn open(&self, _: &Digest, _: u64) -> Result<Box<dyn Read + Send>, ContentError> {
            self.opened.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(io::Cursor::new(
                self.bytes.lock().unwrap().1.clone(),
            )))
        }
    }

    impl VerifiedRead for Counted {
        fn file_stamps(&self, _: &Digest) -> Result<Vec<FileStamp>, ContentError> {
            Ok(vec![self.bytes.lock().unwrap().0])
        }
    }

    async fn right(
        verified: &VerifiedBlobs,
        blobs: &[Arc<Counted>],
        digest: &Digest,
    ) -> Result<u64, ContentError> {
        let sources: Vec<Arc<dyn VerifiedRead>> =
            blobs.iter().map(|one| one.clone() as _).collect();
        Ok(verified
            .intact_holder(&blob_holders(&sources, digest)?, digest)
            .await?
            .size)
    }

    #[tokio::test]
    async fn a_blob_is_hashed_once_for_concurrent_requests_and_again_after_its_file_changed() {
        let blob = Arc::new(Counted::of(1, b"abc"));
        let digest = Digest::sha256(b"abc");
        let known = VerifiedBlobs::new(2);
        let sources = [blob.clone()];
        let requests = (0..100).map(|_| right(&known, &sources, &digest));
        assert!(
            futures_util::future::join_all(requests)
                .await
                .iter()
                .all(Result::is_ok)
        );
        assert_eq!(blob.opened(), 1, "a hundred concurrent requests");
        assert!(right(&known, &sources, &digest).await.is_ok());
        assert_eq!(blob.opened(), 1);
        *blob.bytes.lock().unwrap() = (file_stamp(2), b"abX".to_vec());
        for _ in 0..2 {
            let damaged = right(&known, &sources, &digest).await;
            assert!(matches!(damaged, Err(ContentError::Damaged { .. })));
            assert_eq!(
                blob.opened(),
                2,
                "a damaged blob is not hashed again either"
            );
        }
        *blob.bytes.lock().unwrap() = (file_stamp(3), b"abc".to_vec());
        assert!(right(&known, &sources, &digest).await.is_ok());
    }

    #[tokio::test]
    async fn a_blob_damaged_in_one_source_is_read_from_the_next() {
        let digest = Digest::sha256(b"abcd");
        let sources = [
            Arc::new(Counted::of(1, b"abX")),
            Arc::new(Counted::of(2, b"abcd")),
        ];
        assert_eq!(
            right(&VerifiedBlobs::new(1), &sources, &digest)
                .await
                .unwrap(),
            4
        );
    }
}
