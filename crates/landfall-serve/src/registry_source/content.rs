//! Content of a registry, by digest. A blob is read once as a whole before a byte of it leaves, and
//! the hash of each MiB is kept; later, each MiB is compared with its hash before it leaves. So no
//! wrong byte leaves, and no disk is needed.

use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use landfall_content::registry::RegistrySession;
use landfall_content::{BlobRead, ContentError, FileStamp, VerifiedRead};
use landfall_http::{ByteStream, ErrorKind, HttpError};
use landfall_model::{Descriptor, Digest, Hasher};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// Size of a frame in bytes; the last one of a blob may be shorter.
const FRAME: u64 = 1 << 20;
/// How often a frame is asked for.
const ATTEMPTS: u32 = 3;
/// How often content was made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A blob or manifest that stands at the registry.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) repository: Arc<str>,
    pub(super) descriptor: Descriptor,
    pub(super) is_manifest: bool,
}

/// What stands at a registry.
pub(super) struct RegistryContent {
    session: Arc<RegistrySession>,
    held: HashMap<Digest, Held>,
    /// The hashes of the frames of each blob that was read as a whole.
    sums: Mutex<HashMap<Digest, Arc<[Digest]>>>,
    runtime: Handle,
    /// Tells it from what was found there before a reload.
    number: u64,
}

impl RegistryContent {
    /// What `held` says to stand at the session's registry. It is read on threads of the runtime of
    /// the caller.
    pub(super) fn new(
        session: Arc<RegistrySession>,
        held: HashMap<Digest, Held>,
    ) -> RegistryContent {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        RegistryContent {
            session,
            held,
            sums: Mutex::default(),
            runtime: Handle::current(),
            number,
        }
    }

    fn held(&self, digest: &Digest) -> Result<&Held, ContentError> {
        self.held.get(digest).ok_or_else(|| ContentError::Missing {
            digest: digest.clone(),
        })
    }

    fn sums(&self, digest: &Digest) -> Option<Arc<[Digest]>> {
        self.sums
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(digest)
            .cloned()
    }

    fn frames(&self, digest: &Digest, frame: u64) -> Result<Frames, ContentError> {
        let (session, held, runtime) = (
            self.session.clone(),
            self.held(digest)?.clone(),
            self.runtime.clone(),
        );
        Ok(Frames {
            session,
            held,
            runtime,
            at: frame * FRAME,
            open: None,
        })
    }
}

impl BlobRead for RegistryContent {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.held.get(digest).map(|held| held.descriptor.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let frames = self.frames(digest, offset / FRAME)?;
        let reader = Checked {
            frames,
            sums: self.sums(digest),
            frame: Vec::new(),
            taken: 0,
        };
        let mut reader = Box::new(reader);
        let failed = |source| ContentError::Read {
            digest: digest.clone(),
            source,
        };
        reader.fill().map_err(failed)?;
        reader.taken = reader.frame.len().min((offset % FRAME) as usize);
        Ok(reader)
    }
}

impl VerifiedRead for RegistryContent {
    /// No file holds it. A reload makes new content, which is hashed anew.
    fn file_stamps(&self, _digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        Ok(vec![FileStamp {
            inode: self.number,
            mtime: (0, 0),
            size: 0,
        }])
    }

    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        let mut frames = self.frames(digest, 0).map_err(io::Error::other)?;
        let (mut whole, mut sums, mut frame) =
            (Hasher::new(digest.algorithm()), Vec::new(), Vec::new());
        while frames.next(&mut frame)? {
            whole.update(&frame);
            sums.push(Digest::sha256(&frame));
        }
        let is_sound = whole.finish() == *digest;
        if is_sound {
            let mut known = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(digest.clone(), sums.into());
        }
        Ok(is_sound)
    }
}

/// Reads what stands at the registry, frame by frame.
struct Frames {
    session: Arc<RegistrySession>,
    held: Held,
    runtime: Handle,
    /// Where the next frame begins.
    at: u64,
    /// The answer under way, and what came of it and is not taken yet.
    open: Option<(ByteStream, Bytes)>,
}

impl Frames {
    /// Puts the next frame in place of what is in `frame`; `false` at the end.
    fn next(&mut self, frame: &mut Vec<u8>) -> io::Result<bool> {
        frame.clear();
        let size = self.held.descriptor.size;
        let want = size.saturating_sub(self.at).min(FRAME) as usize;
        let mut attempts = ATTEMPTS;
        while frame.len() < want {
            let runtime = self.runtime.clone();
            match runtime.block_on(self.more(frame, want)) {
                Ok(()) => {}
                Err(error) => {
                    self.open = None;
                    attempts -= 1;
                    if attempts == 0 {
                        return Err(io::Error::other(error));
                    }
                }
            }
        }
        self.at += want as u64;
        Ok(want > 0)
    }

    /// Appends what comes next, and no more than `want` bytes in all.
    async fn more(&mut self, frame: &mut Vec<u8>, want: usize) -> Result<(), HttpError> {
        if self.open.is_none() {
            self.open = Some(self.begin(self.at + frame.len() as u64).await?);
        }
        let Some((stream, rest)) = &mut self.open else {
            return Ok(());
        };
        if rest.is_empty() {
            let ended = || HttpError::new(ErrorKind::Network, "the answer ended too early");
            *rest = stream.next().await.ok_or_else(ended)??;
        }
        frame.extend_from_slice(&rest.split_to(rest.len().min(want - frame.len())));
        Ok(())
    }

    async fn begin(&self, offset: u64) -> Result<(ByteStream, Bytes), HttpError> {
        let Held {
            repository,
            descriptor,
            is_manifest,
        } = &self.held;
        if *is_manifest {
            let mut bytes = self
                .session
                .manifest_of(repository, descriptor)
                .await?
                .bytes;
            bytes.advance(bytes.len().min(offset as usize));
            return Ok((futures_util::stream::empty().boxed(), bytes));
        }
        let (mut at, mut stream) = self.session.blob(repository, descriptor, offset).await?;
        let mut rest = Bytes::new();
        // a registry may ignore ranges
        while at < offset {
            let Some(piece) = stream.next().await else {
                break;
            };
            rest = piece?;
            let over = rest.len().min((offset - at) as usize);
            at += over as u64;
            rest.advance(over);
        }
        Ok((stream, rest))
    }
}

/// Hands out frames that have their hash.
struct Checked {
    frames: Frames,
    /// `None` where it was never read as a whole: then nothing is compared.
    sums: Option<Arc<[Digest]>>,
    frame: Vec<u8>,
    /// How much of the frame is handed out.
    taken: usize,
}

impl Checked {
    fn fill(&mut self) -> io::Result<()> {
        let number = (self.frames.at / FRAME) as usize;
        self.taken = 0;
        if self.frames.next(&mut self.frame)?
            && let Some(sums) = &self.sums
            && sums.get(number).is_none_or(|sum| !sum.matches(&self.frame))
        {
            self.frame.clear();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the registry gave other bytes than before",
            ));
        }
        Ok(())
    }
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.frame.len() {
            self.fill()?;
        }
        let count = buffer.len().min(self.frame.len() - self.taken);
        buffer[..count].copy_from_slice(&self.frame[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}
