//! Serves all items except images from a registry (`--from`), under their URLs: for a site that
//! keeps everything in its registry.

use crate::ServedBundle;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use landfall_content::registry::{RegistrySession, RegistrySessions};
use landfall_content::upstream::RegistryParts;
use landfall_content::{
    BlobRead, ContentError, EntryPart, FileStamp, LockEntry, PartOrigin, VerifiedRead,
    resuming_stream,
};
use landfall_http::{ByteStream, ErrorKind, HttpError};
use landfall_item::lockfile::{Lock, delivered as delivered_locks};
use landfall_model::{
    Descriptor, DestinationMap, Digest, Failure, Hasher, Limits, TransferSide, locked,
};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;

/// Size of a frame in bytes; the last one of a blob may be shorter.
const FRAME: u64 = 1 << 20;

/// The number of [`RegistryBlobs`] that were created.
static CREATED: AtomicU64 = AtomicU64::new(0);

/// The blobs of a registry.
struct RegistryBlobs {
    registry: Arc<RegistryParts>,
    limits: Limits,
    blobs: HashMap<Digest, EntryPart>,
    /// The frame hashes of each blob that was read completely and has its digest.
    frame_hashes: Mutex<HashMap<Digest, Arc<[Digest]>>>,
    runtime: Handle,
    /// Distinguishes these blobs from those that were found before a reload.
    number: u64,
}

impl RegistryBlobs {
    /// The `blobs` at the session's registry. They are read with the caller's runtime.
    fn new(
        session: Arc<RegistrySession>,
        limits: Limits,
        blobs: HashMap<Digest, EntryPart>,
    ) -> RegistryBlobs {
        RegistryBlobs {
            registry: Arc::new(RegistryParts(session)),
            limits,
            blobs,
            frame_hashes: Mutex::default(),
            runtime: Handle::current(),
            number: CREATED.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Returns a reader that starts at frame number `frame` of the blob.
    fn frames(&self, digest: &Digest, frame: u64) -> Result<FrameReader, ContentError> {
        let Some(part) = self.blobs.get(digest) else {
            return Err(ContentError::missing(digest));
        };
        let offset = frame * FRAME;
        Ok(FrameReader {
            runtime: self.runtime.clone(),
            stream: resuming_stream(self.registry.clone(), part, offset, &self.limits),
            next: frame,
            rest: Bytes::new(),
            left: part.descriptor.size.saturating_sub(offset),
        })
    }
}

impl BlobRead for RegistryBlobs {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.blobs.get(digest).map(|blob| blob.descriptor.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let mut reader = CheckedFrameReader {
            // from the beginning of a frame, because hashes are compared frame by frame
            frames: self.frames(digest, offset / FRAME)?,
            hashes: locked(&self.frame_hashes).get(digest).cloned(),
            frame: Vec::new(),
            taken: 0,
        };
        reader.fill().map_err(|source| ContentError::Read {
            digest: digest.clone(),
            source,
        })?;
        reader.taken = reader.frame.len().min((offset % FRAME) as usize);
        Ok(Box::new(reader))
    }
}

impl VerifiedRead for RegistryBlobs {
    /// No file holds the content, so the stamp contains `number` in place of an inode. After a
    /// reload, the number is different, so the blobs are hashed again.
    fn file_stamps(&self, _digest: &Digest) -> Result<Vec<FileStamp>, ContentError> {
        Ok(vec![FileStamp {
            inode: self.number,
            mtime: (0, 0),
            size: 0,
        }])
    }

    fn verify(&self, digest: &Digest) -> io::Result<bool> {
        let mut frames = self.frames(digest, 0).map_err(io::Error::other)?;
        let mut hasher = Hasher::new(digest.algorithm());
        let mut hashes = Vec::new();
        let mut frame = Vec::new();
        while frames.read_frame(&mut frame)? {
            hasher.update(&frame);
            hashes.push(Digest::sha256(&frame));
        }
        let is_sound = hasher.finish() == *digest;
        if is_sound {
            // only after the digest of the whole blob matched
            locked(&self.frame_hashes).insert(digest.clone(), hashes.into());
        }
        Ok(is_sound)
    }
}

/// Reads a blob of the registry frame by frame.
struct FrameReader {
    runtime: Handle,
    stream: ByteStream,
    /// The number of the next frame.
    next: u64,
    /// Bytes that arrived and belong to the next frame.
    rest: Bytes,
    /// The number of bytes after the last frame that was read.
    left: u64,
}

impl FrameReader {
    /// Replaces the content of `frame` with the next frame. Returns `false` at the end.
    fn read_frame(&mut self, frame: &mut Vec<u8>) -> io::Result<bool> {
        frame.clear();
        let length = self.left.min(FRAME) as usize;
        while frame.len() < length {
            if self.rest.is_empty() {
                // readers of blobs are synchronous: they run on the server's threads for blocking
                // work
                let piece = self.runtime.block_on(self.stream.next());
                self.rest = piece
                    .ok_or(io::ErrorKind::UnexpectedEof)?
                    .map_err(io::Error::other)?;
            }
            let piece = self
                .rest
                .split_to(self.rest.len().min(length - frame.len()));
            frame.extend_from_slice(&piece);
        }
        self.next += 1;
        self.left -= length as u64;
        Ok(length > 0)
    }
}

/// Returns the bytes of frames whose hashes were compared.
struct CheckedFrameReader {
    frames: FrameReader,
    /// `None` if the blob was not verified yet: then nothing is compared.
    hashes: Option<Arc<[Digest]>>,
    frame: Vec<u8>,
    /// The number of bytes of the frame that were returned.
    taken: usize,
}

impl CheckedFrameReader {
    fn fill(&mut self) -> io::Result<()> {
        let number = self.frames.next as usize;
        self.taken = 0;
        if !self.frames.read_frame(&mut self.frame)? {
            return Ok(());
        }
        let Some(hashes) = &self.hashes else {
            return Ok(());
        };
        if hashes
            .get(number)
            .is_none_or(|hash| !hash.matches(&self.frame))
        {
            self.frame.clear();
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the registry sent other bytes than before",
            ));
        }
        Ok(())
    }
}

impl Read for CheckedFrameReader {
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

/// The content that earlier deliveries put into a registry.
pub struct DeliveredContent {
    /// The delivered locks, the oldest first.
    pub bundles: Vec<ServedBundle>,
    /// The content of all delivered locks.
    pub content: Arc<dyn VerifiedRead>,
}

/// The locks that were delivered to the target of `mapping`, the oldest first, and the content of
/// their items, as far as the registry has it now. Images are listed but not looked up: clients
/// pull them from the registry itself.
///
/// # Errors
/// When the list of deliveries is missing or damaged, or the registry cannot be read.
pub async fn find_delivered(
    sessions: &RegistrySessions,
    mapping: &DestinationMap,
) -> Result<DeliveredContent, Failure> {
    let destination = mapping.own_destination(delivered_locks::REPOSITORY);
    let list = format!("{destination}:{}", delivered_locks::TAG);
    let repository = destination.repository;
    let failed = |message: String| Failure::failed(message).on(TransferSide::Source);
    let unreadable = |error: HttpError| failed(format!("cannot read {list}: {error}"));
    let target = mapping.target();
    let session = sessions
        .destination(&target.registry)
        .await
        .map_err(unreadable)?;
    let newest = delivered_locks::fetch_newest(&session, &repository).await;
    let Some((_, newest)) = newest.map_err(unreadable)? else {
        return Err(failed(format!(
            "nothing to serve: the registry has no list of deliveries at {list}; deliver files or \
             charts to it with `landfall push`"
        )));
    };
    let deliveries = delivered_locks::DeliveredLocks::parse(&newest);
    let deliveries =
        deliveries.map_err(|why| failed(format!("{list} is not a list of deliveries: {why}")))?;
    let limits = *sessions.transport().limits();
    let max_lock = limits.contents_bytes as u64;
    let mut locks = Vec::new();
    for delivery in deliveries.locks() {
        // the list is untrusted, so each lock is limited in size and compared with its digest
        let text = read_small_blob(&session, &repository, &delivery.descriptor, max_lock)
            .await
            .map_err(unreadable)?
            .ok_or_else(|| {
                failed(format!(
                    "a lock in {list} is damaged at the registry; deliver it again with \
                     `landfall push --recheck`"
                ))
            })?;
        let lock = Lock::parse(&list, &String::from_utf8_lossy(&text));
        let lock = lock.map_err(|error| failed(format!("cannot use a lock in {list}: {error}")))?;
        locks.push((delivery, lock));
    }
    let blobs = find_blobs(&session, &locks, mapping, limits.jobs)
        .await
        .map_err(unreadable)?;
    let content = Arc::new(RegistryBlobs::new(session, limits, blobs));
    let served = locks.into_iter().map(|(delivery, lock)| ServedBundle {
        name: match delivery.name.as_str() {
            "" => target.to_string(),
            name => format!("{name} at {target}"),
        },
        digest: Some(delivery.descriptor.digest.clone()),
        missing: Vec::new(),
        signatures: Vec::new(),
        lock,
        changes: None,
        blobs: content.clone(),
        registry: Some(mapping.clone()),
    });
    Ok(DeliveredContent {
        bundles: served.collect(),
        content,
    })
}

/// Reads a blob of at most `max` bytes; `None` if it is larger or does not have its digest.
async fn read_small_blob(
    session: &RegistrySession,
    repository: &str,
    blob: &Descriptor,
    max: u64,
) -> Result<Option<Vec<u8>>, HttpError> {
    if blob.size > max {
        return Ok(None);
    }
    let mut stream = session.blob(repository, blob, 0).await?.stream;
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
    }
    if !blob.digest.matches(&bytes) {
        return Ok(None);
    }
    Ok(Some(bytes))
}

/// The blobs of the items that the registry has, except images. Each blob has its repository.
async fn find_blobs(
    session: &RegistrySession,
    locks: &[(&delivered_locks::DeliveredLock, Lock)],
    mapping: &DestinationMap,
    jobs: usize,
) -> Result<HashMap<Digest, EntryPart>, HttpError> {
    // several locks may contain an item: it is looked up once
    let mut wanted: BTreeMap<(String, Digest), LockEntry> = BTreeMap::new();
    for item in locks.iter().flat_map(|(_, lock)| lock.items()) {
        // images are pulled from the registry itself
        if !item.is_served_from_registry() {
            continue;
        }
        let entry = item.entry();
        if let Some(destination) = item.destinations(mapping).into_iter().next() {
            let key = (destination.repository, entry.top.digest.clone());
            wanted.insert(key, entry);
        }
    }
    let lookups = futures_util::stream::iter(wanted).map(async |((repository, digest), entry)| {
        let head = session
            .head_manifest(&repository, &digest.to_string(), false)
            .await;
        match head {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            head => Ok::<_, HttpError>(head?.map(|_| (repository, entry))),
        }
    });
    let found: Vec<Option<(String, LockEntry)>> =
        lookups.buffer_unordered(jobs).try_collect().await?;
    let registry: Arc<str> = session.host().into();
    let mut blobs = HashMap::new();
    for (repository, entry) in found.into_iter().flatten() {
        let repository: Arc<str> = repository.into();
        for part in entry.parts {
            let repository = repository.clone();
            let registry = registry.clone();
            let origin = if part.is_manifest() {
                PartOrigin::Manifest {
                    registry,
                    repository,
                }
            } else {
                PartOrigin::Blob {
                    registry,
                    repository,
                }
            };
            let descriptor = part.descriptor;
            blobs.insert(descriptor.digest.clone(), EntryPart { descriptor, origin });
        }
    }
    Ok(blobs)
}
