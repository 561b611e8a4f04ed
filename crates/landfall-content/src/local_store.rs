//! Stores whose blobs are local files, and the sink that writes to them.

use super::blocking::blocking;
use super::follower::Follower;
use super::parallel::fetch_parallel;
use super::{
    BlobSink, BlobStore, BlobWrite, ByteRange, FailedAttempt, IdleSlots, PartOpener, TransferError,
    VerifiedWriter, WriteError,
};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_model::{Descriptor, Limits, locked};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
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
    follower: Mutex<Option<oneshot::Sender<Follower>>>,
}

impl LocalSink {
    /// Returns a sink for `store`. A big blob is written over several connections if `slots` are
    /// idle.
    pub fn new(store: Arc<dyn LocalStore>, limits: Limits, slots: Option<IdleSlots>) -> LocalSink {
        LocalSink {
            store,
            limits,
            slots,
            follower: Mutex::default(),
        }
    }

    /// Sends a follower of the first write to `follower`, for a sink of a single blob.
    #[must_use]
    pub fn with_follower(self, follower: oneshot::Sender<Follower>) -> LocalSink {
        LocalSink {
            follower: Mutex::new(Some(follower)),
            ..self
        }
    }
}

impl BlobSink for LocalSink {
    fn begins_locally(&self) -> bool {
        true
    }

    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>> {
        let slots = self
            .slots
            .clone()
            // small blobs end before a second connection would have opened
            .filter(|_| !in_order && blob.size >= self.limits.parallel_from);
        let store = self.store.clone();
        let descriptor = blob.clone();
        let limits = self.limits;
        Box::pin(async move {
            // only a parallel write can use ranges after the contiguous beginning
            let keep_ranges = slots.is_some();
            let begun = blocking(move || store.begin(&descriptor, keep_ranges)).await?;
            match &begun {
                None => info!(digest = %blob.digest, "already in the store"),
                Some((writer, ranges)) if writer.offset() > 0 || !ranges.is_empty() => info!(
                    digest = %blob.digest,
                    offset = writer.offset(),
                    ranges = ranges.len(),
                    "resuming a partial blob"
                ),
                Some(_) => debug!(digest = %blob.digest, size = blob.size, "receiving a blob"),
            }
            let follower = locked(&self.follower).take();
            let Some((writer, ranges)) = begun else {
                return Ok(None);
            };
            if let Some(follower) = follower {
                // the receiver may be gone
                let _ = follower.send(writer.follower());
            }
            Ok(Some(match slots {
                Some(slots) => Box::new(ParallelWrite {
                    writer,
                    ranges,
                    limits,
                    slots,
                }) as Box<dyn BlobWrite>,
                None => Box::new(SequentialWrite(writer)),
            }))
        })
    }
}

/// A write over one connection.
struct SequentialWrite(VerifiedWriter);

impl BlobWrite for SequentialWrite {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let mut writer = self.0;
            write_rest(&mut writer, opener).await?;
            // a slow disk may take long to sync a big blob
            let _busy = opener.activity().busy();
            Ok(blocking(move || writer.commit()).await?)
        })
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

/// A write over several connections.
struct ParallelWrite {
    writer: VerifiedWriter,
    /// The ranges that an earlier run wrote after the writer's offset.
    ranges: Vec<ByteRange>,
    limits: Limits,
    slots: IdleSlots,
}

impl BlobWrite for ParallelWrite {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let ParallelWrite {
                writer,
                ranges,
                limits,
                slots,
            } = *self;
            fetch_parallel(opener, writer, ranges, &limits, &slots).await
        })
    }
}
