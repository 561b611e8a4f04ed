//! Writes a blob and publishes it only if its size and digest are right.

use super::follower::{Follower, WriteProgress};
use super::{PartialBlob, WriteError};
use landfall_model::{Descriptor, Hasher};
use std::sync::Arc;
use tokio::sync::watch;

/// Writes one blob in order and hashes it. If it is dropped before [`VerifiedWriter::commit`], the
/// written bytes are kept for the next run to resume.
#[derive(Debug)]
pub struct VerifiedWriter {
    partial: Arc<dyn PartialBlob>,
    descriptor: Descriptor,
    hasher: Hasher,
    offset: u64,
    /// Reports to followers how much is written.
    progress: watch::Sender<WriteProgress>,
}

impl VerifiedWriter {
    /// Returns a writer that starts at the first byte of `partial`.
    pub fn new(partial: impl PartialBlob + 'static, descriptor: &Descriptor) -> VerifiedWriter {
        VerifiedWriter {
            partial: Arc::new(partial),
            descriptor: descriptor.clone(),
            hasher: Hasher::new(descriptor.digest.algorithm()),
            offset: 0,
            progress: watch::Sender::default(),
        }
    }

    /// Reads and hashes the bytes up to `end`, which are written already.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn absorb(&mut self, end: u64) -> Result<(), WriteError> {
        let mut buffer = vec![0; 1 << 18];
        while self.offset < end {
            let length = buffer
                .len()
                .min(usize::try_from(end - self.offset).unwrap_or(usize::MAX));
            let piece = &mut buffer[..length];
            self.partial.read(piece, self.offset)?;
            self.hash(piece)?;
        }
        Ok(())
    }

    /// Returns the partial blob, to write at other offsets.
    pub(super) fn partial(&self) -> Arc<dyn PartialBlob> {
        self.partial.clone()
    }

    /// Returns a follower, to read the blob while it is written.
    pub(super) fn follower(&self) -> Follower {
        Follower {
            partial: self.partial.clone(),
            progress: self.progress.subscribe(),
        }
    }

    /// Returns the number of bytes that are written and hashed: where to resume.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Discards everything and starts over.
    ///
    /// # Errors
    /// If the partial blob cannot be cleared.
    pub fn restart(&mut self) -> Result<(), WriteError> {
        // followers must be notified before the first byte is discarded
        let restarts = self.progress.borrow().restarts + 1;
        self.progress.send_replace(WriteProgress {
            restarts,
            ..WriteProgress::default()
        });
        self.hasher = Hasher::new(self.descriptor.digest.algorithm());
        self.offset = 0;
        self.partial.clear()
    }

    /// Writes the next bytes. If they exceed the size of the blob, everything is discarded.
    ///
    /// # Errors
    /// If the blob becomes too long, or the bytes cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let end = self.offset + bytes.len() as u64;
        if end > self.descriptor.size {
            self.restart()?;
            return Err(WriteError::Size {
                wanted: self.descriptor.digest.clone(),
                size: self.descriptor.size,
                found: end,
            });
        }
        self.partial.write(bytes, self.offset)?;
        self.hash(bytes)
    }

    /// Hashes written bytes, and advances the offset past them.
    fn hash(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        self.progress
            .send_modify(|progress| progress.bytes = self.offset);
        self.partial.hashed(bytes)
    }

    /// Checks size and digest and publishes the blob.
    ///
    /// # Errors
    /// If the size or the digest is wrong, or the blob cannot be published. After a wrong size, the
    /// written bytes are kept for another attempt; after a wrong digest, they are discarded.
    pub fn commit(mut self) -> Result<(), WriteError> {
        let wanted = self.descriptor.digest.clone();
        if self.offset != self.descriptor.size {
            return Err(WriteError::Size {
                wanted,
                size: self.descriptor.size,
                found: self.offset,
            });
        }
        // a copy, because `finish` consumes the hasher and the writer may restart
        let found = self.hasher.clone().finish();
        if found != wanted {
            self.restart()?;
            return Err(WriteError::Digest { wanted, found });
        }
        self.partial.publish()?;
        // not earlier: if the run is killed in between, a registry must not have a blob that the
        // store lacks
        self.progress
            .send_modify(|progress| progress.is_verified = true);
        Ok(())
    }
}
