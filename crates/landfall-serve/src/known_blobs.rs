//! Which blobs are known to be right. A blob is hashed once in this process before a byte of it
//! leaves, and again only when its file looks different. Whoever asks for it meanwhile waits for
//! that one hashing.

use landfall_content::{ContentError, FileStamp, VerifiedRead};
use landfall_model::Digest;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

/// Most files of one digest that are remembered: of each bundle that holds it, and of the folder
/// for pushes.
const MOST_FILES: usize = 16;

/// Which blobs are known to be right.
pub(super) struct KnownBlobs {
    checks: Mutex<HashMap<Digest, Vec<Check>>>,
    /// How many blobs are hashed at one time.
    turns: Arc<Semaphore>,
    /// How many blobs were hashed, and how many of them were damaged.
    pub(super) hashed: AtomicU64,
    pub(super) damaged: Arc<AtomicU64>,
}

/// One hashing, under way or done.
struct Check {
    file_stamps: Vec<FileStamp>,
    verdict: watch::Receiver<Verdict>,
}

#[derive(Clone)]
enum Verdict {
    Pending,
    Right,
    Wrong,
    /// It could not be read. That may pass.
    Unread(Arc<io::Error>),
}

/// Who has a blob.
#[derive(Clone)]
pub(super) struct Holder {
    pub(super) blobs: Arc<dyn VerifiedRead>,
    pub(super) size: u64,
    file_stamps: Vec<FileStamp>,
}

/// Who has the blob, in the order in which they are asked.
///
/// # Errors
/// When nobody has it, or that cannot be found out.
pub(super) fn holders(
    sources: &[Arc<dyn VerifiedRead>],
    digest: &Digest,
) -> Result<Vec<Holder>, ContentError> {
    let mut holders = Vec::new();
    for blobs in sources {
        if let Some(size) = blobs.stat(digest)? {
            holders.push(Holder {
                blobs: blobs.clone(),
                size,
                file_stamps: blobs.file_stamps(digest)?,
            });
        }
    }
    if holders.is_empty() {
        Err(ContentError::Missing {
            digest: digest.clone(),
        })
    } else {
        Ok(holders)
    }
}

impl KnownBlobs {
    /// Nothing is known; `at_once` blobs may be hashed at one time.
    pub(super) fn new(at_once: usize) -> KnownBlobs {
        KnownBlobs {
            checks: Mutex::default(),
            turns: Arc::new(Semaphore::new(at_once)),
            hashed: AtomicU64::new(0),
            damaged: Arc::default(),
        }
    }

    /// The first of `holders` that has the right bytes. Waits until they are hashed.
    ///
    /// # Errors
    /// When nobody has the right bytes, or they cannot be read.
    pub(super) async fn right(
        &self,
        holders: &[Holder],
        digest: &Digest,
    ) -> Result<Holder, ContentError> {
        let mut error = ContentError::Missing {
            digest: digest.clone(),
        };
        for holder in holders {
            match self.verdict(holder, digest).await {
                Verdict::Right => return Ok(holder.clone()),
                Verdict::Wrong => {
                    error = ContentError::Damaged {
                        digest: digest.clone(),
                    }
                }
                Verdict::Pending => {}
                Verdict::Unread(why) => {
                    let source = io::Error::new(why.kind(), why.to_string());
                    error = ContentError::Read {
                        digest: digest.clone(),
                        source,
                    };
                }
            }
        }
        Err(error)
    }

    /// Whether what the holder has was hashed before and is right.
    pub(super) fn is_known(&self, holder: &Holder, digest: &Digest) -> bool {
        let checks = self.checks();
        let mut known = checks
            .get(digest)
            .into_iter()
            .flatten()
            .filter(|check| check.file_stamps == holder.file_stamps);
        known.any(|check| matches!(*check.verdict.borrow(), Verdict::Right))
    }

    /// Remembers that what the holder had when it was asked was hashed while it was sent.
    pub(super) fn was_sent(&self, holder: &Holder, digest: &Digest) {
        let check = Check {
            file_stamps: holder.file_stamps.clone(),
            verdict: watch::channel(Verdict::Right).1,
        };
        add(self.checks().entry(digest.clone()).or_default(), check);
    }

    /// Remembers that what `blobs` holds now was hashed while it came in.
    pub(super) fn came_in(
        &self,
        blobs: &dyn VerifiedRead,
        digest: &Digest,
    ) -> Result<(), ContentError> {
        let check = Check {
            file_stamps: blobs.file_stamps(digest)?,
            verdict: watch::channel(Verdict::Right).1,
        };
        add(self.checks().entry(digest.clone()).or_default(), check);
        Ok(())
    }

    /// Forgets a blob that is removed.
    pub(super) fn forget(&self, digest: &Digest) {
        self.checks().remove(digest);
    }

    async fn verdict(&self, holder: &Holder, digest: &Digest) -> Verdict {
        let mut verdict = self.check(holder, digest);
        let verdict = verdict
            .wait_for(|verdict| !matches!(verdict, Verdict::Pending))
            .await;
        let stopped = |_| Verdict::Unread(Arc::new(io::Error::other("its hashing was broken off")));
        verdict.map_or_else(stopped, |verdict| verdict.clone())
    }

    /// The hashing of what the holder has, which begins now where there was none.
    fn check(&self, holder: &Holder, digest: &Digest) -> watch::Receiver<Verdict> {
        let mut checks = self.checks();
        let of_digest = checks.entry(digest.clone()).or_default();
        let known = of_digest
            .iter()
            .find(|check| check.file_stamps == holder.file_stamps);
        if let Some(known) =
            known.filter(|known| !matches!(*known.verdict.borrow(), Verdict::Unread(_)))
        {
            return known.verdict.clone();
        }
        let (tell, verdict) = watch::channel(Verdict::Pending);
        add(
            of_digest,
            Check {
                file_stamps: holder.file_stamps.clone(),
                verdict: verdict.clone(),
            },
        );
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let (turns, holder, digest) = (self.turns.clone(), holder.clone(), digest.clone());
        let damaged = self.damaged.clone();
        // a task of its own: it goes on when the client that asked first hangs up
        tokio::spawn(async move {
            let _turn = turns.acquire_owned().await;
            let hashed = spawn_blocking(move || hash(&holder, &digest)).await;
            let verdict =
                hashed.unwrap_or_else(|stopped| Verdict::Unread(Arc::new(stopped.into())));
            damaged.fetch_add(
                u64::from(matches!(verdict, Verdict::Wrong)),
                Ordering::Relaxed,
            );
            let _ = tell.send(verdict);
        });
        verdict
    }

    fn checks(&self) -> MutexGuard<'_, HashMap<Digest, Vec<Check>>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a check, in place of one of a file that looked the same, or of the oldest.
fn add(checks: &mut Vec<Check>, check: Check) {
    checks.retain(|known| known.file_stamps != check.file_stamps);
    if checks.len() == MOST_FILES {
        checks.remove(0);
    }
    checks.push(check);
}

fn hash(holder: &Holder, digest: &Digest) -> Verdict {
    match (
        holder.blobs.verify(digest),
        holder.blobs.file_stamps(digest),
    ) {
        (_, Ok(file_stamps)) if file_stamps != holder.file_stamps => {
            Verdict::Unread(Arc::new(io::Error::other("it changed while it was hashed")))
        }
        (Ok(true), Ok(_)) => Verdict::Right,
        (Ok(false), Ok(_)) => Verdict::Wrong,
        (Err(error), _) if error.kind() == io::ErrorKind::InvalidData => Verdict::Wrong,
        (Err(error), _) => Verdict::Unread(Arc::new(error)),
        (Ok(_), Err(error)) => Verdict::Unread(Arc::new(io::Error::other(error))),
    }
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
        known: &KnownBlobs,
        blobs: &[Arc<Counted>],
        digest: &Digest,
    ) -> Result<u64, ContentError> {
        let sources: Vec<Arc<dyn VerifiedRead>> =
            blobs.iter().map(|one| one.clone() as _).collect();
        Ok(known.right(&holders(&sources, digest)?, digest).await?.size)
    }

    #[tokio::test]
    async fn a_blob_is_hashed_once_however_many_ask_for_it_and_again_when_its_file_looks_different()
    {
        let (blob, digest, known) = (
            Arc::new(Counted::of(1, b"abc")),
            Digest::sha256(b"abc"),
            KnownBlobs::new(2),
        );
        let sources = [blob.clone()];
        let asked = (0..100).map(|_| right(&known, &sources, &digest));
        assert!(
            futures_util::future::join_all(asked)
                .await
                .iter()
                .all(Result::is_ok)
        );
        assert_eq!(blob.opened(), 1, "a hundred at one time");
        assert!(right(&known, &sources, &digest).await.is_ok());
        assert_eq!(blob.opened(), 1);
        *blob.bytes.lock().unwrap() = (file_stamp(2), b"abX".to_vec());
        for _ in 0..2 {
            let damaged = right(&known, &sources, &digest).await;
            assert!(matches!(damaged, Err(ContentError::Damaged { .. })));
            assert_eq!(blob.opened(), 2, "what is wrong is not hashed again either");
        }
        *blob.bytes.lock().unwrap() = (file_stamp(3), b"abc".to_vec());
        assert!(right(&known, &sources, &digest).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_damaged_in_one_place_is_looked_for_in_the_next() {
        let digest = Digest::sha256(b"abcd");
        let sources = [
            Arc::new(Counted::of(1, b"abX")),
            Arc::new(Counted::of(2, b"abcd")),
        ];
        assert_eq!(
            right(&KnownBlobs::new(1), &sources, &digest).await.unwrap(),
            4
        );
    }
}
