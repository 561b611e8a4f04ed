//! Sinks whose content lies in files here, and the way of one part into them.

use super::blocking::blocking;
use super::follower::Follower;
use super::parallel::fetch_parallel;
use super::{
    BlobSink, BlobStore, BlobWrite, ByteRange, FailedAttempt, IdleSlots, PartOpener, TransferError,
    VerifiedWriter, WriteError,
};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use landfall_model::{Descriptor, Limits};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// A store whose content lies in files here.
pub trait LocalStore: BlobStore {
    /// Begins to write content, or resumes what an earlier run left. `None` means that it is there
    /// by now. With `apart` the ranges that lie apart from the beginning are kept and returned:
    /// content that several connections brought.
    ///
    /// # Errors
    /// When it cannot be written.
    fn begin(
        &self,
        descriptor: &Descriptor,
        apart: bool,
    ) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError>;
}

/// A [`LocalStore`] as a [`BlobSink`]. Big content is written over several connections where slots
/// stand idle.
pub struct LocalSink {
    sink: Arc<dyn LocalStore>,
    limits: Limits,
    /// Without slots everything comes in order.
    slots: Option<IdleSlots>,
    /// Who wants to follow the first write.
    follows: Mutex<Option<oneshot::Sender<Follower>>>,
}

impl LocalSink {
    /// `sink`, with `slots` that may help while they stand idle.
    pub fn new(sink: Arc<dyn LocalStore>, limits: Limits, slots: Option<IdleSlots>) -> LocalSink {
        LocalSink {
            sink,
            limits,
            slots,
            follows: Mutex::default(),
        }
    }

    /// The same for one piece of content, whose first write can be followed.
    #[must_use]
    pub fn followed(self, by: oneshot::Sender<Follower>) -> LocalSink {
        LocalSink {
            follows: Mutex::new(Some(by)),
            ..self
        }
    }
}

impl BlobSink for LocalSink {
    fn begin<'a>(
        &'a self,
        blob: &'a Descriptor,
        in_order: bool,
    ) -> BoxFuture<'a, Result<Option<Box<dyn BlobWrite>>, TransferError>> {
        let slots = self
            .slots
            .clone()
            .filter(|_| !in_order && blob.size >= self.limits.parallel_from);
        let (sink, descriptor, limits) = (self.sink.clone(), blob.clone(), self.limits);
        Box::pin(async move {
            let apart = slots.is_some();
            let begun = blocking(move || sink.begin(&descriptor, apart)).await?;
            let follows = self
                .follows
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let (Some(by), Some((writer, _))) = (follows, &begun) {
                // whoever wanted it may have gone
                let _ = by.send(writer.follower());
            }
            Ok(begun.map(|(writer, ranges)| match slots {
                Some(slots) => Box::new(Parallel {
                    writer,
                    ranges,
                    limits,
                    slots,
                }) as Box<dyn BlobWrite>,
                None => Box::new(InOrder(writer)),
            }))
        })
    }
}

/// Content that comes over one connection.
struct InOrder(VerifiedWriter);

impl BlobWrite for InOrder {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let mut writer = self.0;
            pump(&mut writer, opener).await?;
            Ok(blocking(move || writer.commit()).await?)
        })
    }
}

async fn pump(writer: &mut VerifiedWriter, opener: &Arc<PartOpener>) -> Result<(), FailedAttempt> {
    let (at, size) = (writer.offset(), opener.part().descriptor.size);
    if at == size && size > 0 {
        return Ok(());
    }
    let mut stream = opener.unchecked_stream(at).await?;
    while let Some(bytes) = stream.next().await {
        // written here and not on a blocking thread: a write into the page cache is shorter than a
        // switch
        let bytes = bytes.map_err(|error| opener.failed(error))?;
        writer.write(&bytes)?;
        opener.came(bytes.len());
    }
    Ok(())
}

/// Content that several connections may bring.
struct Parallel {
    writer: VerifiedWriter,
    /// What lies behind the writer's offset.
    ranges: Vec<ByteRange>,
    limits: Limits,
    slots: IdleSlots,
}

impl BlobWrite for Parallel {
    fn fill(self: Box<Self>, opener: &Arc<PartOpener>) -> BoxFuture<'_, Result<(), FailedAttempt>> {
        Box::pin(async move {
            let Parallel {
                writer,
                ranges,
                limits,
                slots,
            } = *self;
            fetch_parallel(opener, writer, ranges, &limits, &slots).await
        })
    }
}
