//! Stores whose blobs are local files, and the sink that writes to them.

use crate::parallel::fetch_parallel;
use crate::verified_writer::blocking;
use crate::{
    BlobRead, BlobSink, BlobStore, ByteRange, EntryPart, FailedAttempt, FollowerSender, IdleSlots,
    OpenedPart, PartOpener, PartOrigin, PartSource, VerifiedWriter, WriteError, read_blocking,
};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Descriptor, Digest, Limits, locked};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tracing::{debug, info};

/// A store whose blobs are local files.
pub trait LocalStore: BlobStore {
    /// Begins to write a blob, or resumes the write of an earlier run. Returns `None` if the blob
    /// is already present.
    ///
    /// With `keep_ranges`, the ranges that parallel connections wrote after the contiguous
    /// beginning are kept and returned; otherwise they are discarded.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn begin(
        &self,
        descriptor: &Descriptor,
        keep_ranges: bool,
    ) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError>;
}

/// A [`LocalStore`] as a [`BlobSink`]. Big blobs are written over several connections if slots are
/// idle.
pub struct LocalSink {
    store: Arc<dyn LocalStore>,
    limits: Limits,
    /// `None` if every blob is written over one connection.
    slots: Option<IdleSlots>,
    /// Receives a follower of the first write.
    follower: Mutex<Option<FollowerSender>>,
}

impl LocalSink {
    /// Returns a sink for `store`. A big blob is written over several connections if `slots` are
    /// idle. A follower of the first write is sent to `follower`.
    pub fn new(
        store: Arc<dyn LocalStore>,
        limits: Limits,
        slots: Option<IdleSlots>,
        follower: Option<FollowerSender>,
    ) -> LocalSink {
        LocalSink {
            store,
            limits,
            slots,
            follower: Mutex::new(follower),
        }
    }
}

impl BlobSink for LocalSink {
    fn write<'a>(
        &'a self,
        opener: &'a Arc<PartOpener>,
        in_order: bool,
    ) -> BoxFuture<'a, Result<bool, FailedAttempt>> {
        Box::pin(async move {
            let blob = &opener.part().descriptor;
            let slots = self
                .slots
                .as_ref()
                // small blobs end before a second connection would have opened
                .filter(|_| !in_order && blob.size >= self.limits.parallel_from);
            // only a parallel write can use ranges after the contiguous beginning
            let Some((mut writer, ranges)) = self.begin(opener, slots.is_some()).await? else {
                return Ok(false);
            };
            if let Some(follower) = locked(&self.follower).take() {
                // the receiver may be gone
                let _ = follower.send(writer.follower());
            }
            if let Some(slots) = slots {
                fetch_parallel(opener, writer, ranges, &self.limits, slots).await?;
                return Ok(true);
            }
            write_rest(&mut writer, opener).await?;
            // a slow disk may take long to sync a big blob
            let _busy = opener.activity.busy();
            blocking(move || writer.commit()).await?;
            Ok(true)
        })
    }
}

impl LocalSink {
    /// Begins to write the blob of `opener`; see [`LocalStore::begin`].
    async fn begin(
        &self,
        opener: &PartOpener,
        keep_ranges: bool,
    ) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, FailedAttempt> {
        let store = self.store.clone();
        let blob = opener.part().descriptor.clone();
        // it hashes what an earlier run wrote, and waits while another process writes the blob
        let busy = opener.activity.busy();
        let begun = blocking(move || store.begin(&blob, keep_ranges)).await?;
        drop(busy);
        let Descriptor { digest, size, .. } = &opener.part().descriptor;
        match &begun {
            None => info!(%digest, "already in the store"),
            Some((writer, ranges)) if writer.offset() > 0 || !ranges.is_empty() => info!(
                %digest,
                offset = writer.offset(),
                ranges = ranges.len(),
                "resuming a partial blob"
            ),
            Some(_) => debug!(%digest, size, "receiving a blob"),
        }
        Ok(begun)
    }
}

/// Reads the bytes that the writer lacks and writes them.
async fn write_rest(
    writer: &mut VerifiedWriter,
    opener: &Arc<PartOpener>,
) -> Result<(), FailedAttempt> {
    let offset = writer.offset();
    let size = opener.part().descriptor.size;
    // an empty blob is opened too: the source may not have it
    if offset == size && size > 0 {
        return Ok(());
    }
    let mut stream = opener.unchecked_stream(offset).await?;
    while let Some(bytes) = stream.next().await {
        // not on a blocking thread: a write to the page cache is shorter than a switch to another
        // thread
        let bytes = bytes.map_err(|error| opener.failed(error))?;
        writer.write(&bytes)?;
        opener.count_received(bytes.len());
    }
    Ok(())
}

// A store or a bundle as a source of parts.

/// A store or a bundle as a [`PartSource`]. A damaged blob shows in the stream: it ends early or
/// with an error, and the receiver must not accept such a blob.
pub struct LocalSource(pub Arc<dyn BlobRead>);

impl PartSource for LocalSource {
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        let blobs = self.0.clone();
        let part = part.clone();
        Box::pin(async move {
            if let PartOrigin::Computed(bytes) = part.origin {
                return Ok(OpenedPart {
                    // computed from the lock, whose digest was verified
                    is_checked: true,
                    ..OpenedPart::whole(bytes.into())
                });
            }
            let digest = part.descriptor.digest;
            let opening = tokio::task::spawn_blocking(move || {
                // a read of the whole blob can verify the digest, a read from the middle cannot
                if offset == 0 {
                    blobs.open_whole(&digest)
                } else {
                    blobs.open(&digest, offset)
                }
            });
            let reader = opening
                .await?
                .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
            Ok(OpenedPart::checked(offset, read_blocking(reader)))
        })
    }
}

/// How many local blobs are read at the same time. More would need memory, but would not be faster.
const MAX_LOCAL_STREAMS: usize = 4;

/// An upstream source with local copies in front of it.
pub struct LocalFirst {
    local: LocalSource,
    upstream: Arc<dyn PartSource>,
    local_streams: Arc<Semaphore>,
    /// Local copies that turned out wrong.
    corrupt: Arc<Mutex<HashSet<Digest>>>,
}

impl LocalFirst {
    /// Puts the local copies in `blobs` in front of `upstream`.
    pub fn new(blobs: Arc<dyn BlobRead>, upstream: Arc<dyn PartSource>) -> LocalFirst {
        LocalFirst {
            local: LocalSource(blobs),
            upstream,
            local_streams: Arc::new(Semaphore::new(MAX_LOCAL_STREAMS)),
            corrupt: Arc::default(),
        }
    }

    /// Whether there is a local copy of the right size that has not turned out wrong.
    fn has_local_copy(&self, part: &EntryPart) -> bool {
        let blob = &part.descriptor;
        !locked(&self.corrupt).contains(&blob.digest) && self.local.0.holds(blob).unwrap_or(false)
    }

    async fn open_local_copy(
        &self,
        part: &EntryPart,
        offset: u64,
    ) -> Result<OpenedPart, HttpError> {
        let slot = self
            .local_streams
            .clone()
            .acquire_owned()
            .await
            .map_err(|error| HttpError::new(ErrorKind::Local, error.to_string()))?;
        let opened = self.local.open(part, offset).await?;
        let stream = opened.stream.map(move |piece| {
            // captured by the closure, so the slot is released when the stream is dropped
            let _held_until_the_end = &slot;
            // `Invalid` leads to another attempt, which reads from upstream
            piece.map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))
        });
        let corrupt = self.corrupt.clone();
        let digest = part.descriptor.digest.clone();
        let opened = OpenedPart::unchecked(opened.start, stream.boxed());
        Ok(opened.on_corrupt(move || {
            locked(&corrupt).insert(digest);
        }))
    }
}

impl PartSource for LocalFirst {
    fn host<'a>(&self, part: &'a EntryPart) -> &'a str {
        self.upstream.host(part)
    }

    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        Box::pin(async move {
            if self.has_local_copy(part)
                // not an error: the part can be fetched from upstream
                && let Ok(opened) = self.open_local_copy(part, offset).await
            {
                debug!(digest = %part.descriptor.digest, offset, "read from local content");
                return Ok(opened);
            }
            self.upstream.open(part, offset).await
        })
    }
}
