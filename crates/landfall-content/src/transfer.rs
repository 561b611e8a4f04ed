//! Transfers one part from a source to a sink. Only the loops in this file transfer a part
//! again; [`super::retry`] decides whether and when the same URL is used again.

#[cfg(test)]
mod tests;

use crate::part_source::pause_for;
use crate::{
    BlobRead, BlobSink, ContentError, EntryPart, FailureCause, PartOpener, PartOrigin, PartSource,
    TransferError,
};
use landfall_http::{Activity, LendableSlot};
use landfall_model::report::Progress;
use landfall_model::{Digest, Hasher, Limits, for_each_chunk};
use std::io;
use std::sync::Arc;

/// Transfers parts from a source to a sink.
pub struct Transfer {
    /// The source that parts are read from.
    pub source: Arc<dyn PartSource>,
    /// The sink that they are written to.
    pub sink: Arc<dyn BlobSink>,
    /// The number of attempts and the pauses between them.
    pub limits: Limits,
    /// Receives the number of transferred bytes.
    pub progress: Arc<dyn Progress>,
    /// Counts received bytes and long local work, so that a watchdog does not end a run that has
    /// no request in flight.
    pub activity: Activity,
}

/// The outcome of a successful transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The sink had the blob already, or mounted it from another repository.
    AlreadyPresent,
    /// This many bytes were received, repeated ones included.
    Received(u64),
}

impl Transfer {
    /// Transfers one part. If the source breaks off, reading resumes at the next byte within the
    /// same write. If the part has several URLs, the next URL is tried when a URL lacks the part,
    /// denies access or returns wrong bytes. `slot` is lent to other transfers while the source
    /// sends nothing.
    ///
    /// # Errors
    /// The side that failed and why, after all attempts.
    pub async fn run(
        &self,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
    ) -> Result<TransferOutcome, TransferError> {
        let PartOrigin::Urls(urls) = &part.origin else {
            return self.run_with_url(part, slot).await;
        };
        let mut failed: Option<TransferError> = None;
        for url in urls {
            let part = EntryPart {
                descriptor: part.descriptor.clone(),
                origin: PartOrigin::Url(url.clone()),
            };
            let error = match self.run_with_url(&part, slot.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            let error = match failed {
                Some(first) => first.then(url, error),
                None => error,
            };
            // after a network error, the file may still be at this URL
            if !error.may_be_elsewhere() {
                return Err(error);
            }
            failed = Some(error);
        }
        match failed {
            Some(error) => Err(error),
            // the list of URLs is empty
            None => Ok(TransferOutcome::AlreadyPresent),
        }
    }

    /// Transfers a part that has at most one URL.
    async fn run_with_url(
        &self,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
    ) -> Result<TransferOutcome, TransferError> {
        let opener = PartOpener::new(
            self.source.clone(),
            part,
            slot,
            &self.limits,
            self.progress.clone(),
            self.activity.clone(),
        );
        let mut guard = ProgressGuard {
            opener: Arc::new(opener),
            is_complete: false,
        };
        let outcome = self.try_until_complete(&guard.opener).await;
        if outcome.is_ok() {
            guard.opener.count_complete();
            guard.is_complete = true;
        }
        outcome
    }

    async fn try_until_complete(
        &self,
        opener: &Arc<PartOpener>,
    ) -> Result<TransferOutcome, TransferError> {
        let mut in_order = false;
        loop {
            opener.begin_attempt();
            let failed = match self.sink.write(opener, in_order).await {
                Ok(is_written) => {
                    let received = opener.received();
                    return Ok(if is_written || received > 0 {
                        TransferOutcome::Received(received)
                    } else {
                        TransferOutcome::AlreadyPresent
                    });
                }
                Err(failed) => failed,
            };
            // from now on without ranges, which may have been the cause of the wrong bytes
            in_order |= matches!(failed.cause, FailureCause::Wrong | FailureCause::WrongOnce);
            match opener.pause_after(&failed) {
                Some(pause) => pause_for(pause).await,
                None => return Err(failed.error),
            }
        }
    }
}

/// Raises the total of progress by the counted bytes if the transfer ends without the complete
/// part: after an error, or when it is dropped because its image failed.
struct ProgressGuard {
    opener: Arc<PartOpener>,
    is_complete: bool,
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        if !self.is_complete {
            self.opener.uncount();
        }
    }
}

/// Why a blob cannot be copied.
#[derive(Debug)]
pub enum CopyError {
    /// The blob cannot be read, or its bytes are wrong.
    Content(ContentError),
    /// The receiver of the chunks failed.
    Write(io::Error),
}

impl From<ContentError> for CopyError {
    fn from(error: ContentError) -> CopyError {
        CopyError::Content(error)
    }
}

/// Copies a blob to `write`, at most `size` bytes, and checks its digest at the end. After an
/// error, the bytes that `write` has received may be wrong.
///
/// # Errors
/// If the blob cannot be read, has wrong bytes or another size, or if `write` fails.
pub fn copy_checked(
    blobs: &dyn BlobRead,
    digest: &Digest,
    size: u64,
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), CopyError> {
    let mut hasher = Hasher::new(digest.algorithm());
    let mut remaining = size;
    let mut reader = blobs.open(digest, 0)?;
    let unreadable = |source| ContentError::read(digest, source);
    for_each_chunk(&mut reader, |chunk| {
        remaining = remaining
            .checked_sub(chunk.len() as u64)
            // checked before the chunk is written, so that the receiver never gets more than `size`
            // bytes
            .ok_or_else(|| unreadable(io::Error::other("it is longer than its expected size")))?;
        hasher.update(chunk);
        write(chunk).map_err(CopyError::Write)
    })
    .map_err(unreadable)??;
    if remaining > 0 || hasher.finish() != *digest {
        return Err(ContentError::damaged(digest).into());
    }
    Ok(())
}
