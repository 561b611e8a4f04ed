//! A writer of content: hashes what it writes, and keeps it only if size and digest are right.

use super::follower::{Follower, Written};
use super::{PartialBlob, WriteError};
use landfall_model::{Descriptor, Hasher};
use std::sync::Arc;
use tokio::sync::watch;

/// Writes one piece of content in order. Dropped before [`VerifiedWriter::commit`], it leaves what
/// it has for the next run to resume.
#[derive(Debug)]
pub struct VerifiedWriter {
    partial: Arc<dyn PartialBlob>,
    descriptor: Descriptor,
    hasher: Hasher,
    offset: u64,
    /// What followers know of it.
    written: watch::Sender<Written>,
}

impl VerifiedWriter {
    /// Writes the content of `descriptor` to `partial` from its beginning on.
    pub fn new(partial: impl PartialBlob + 'static, descriptor: &Descriptor) -> VerifiedWriter {
        let hasher = Hasher::new(descriptor.digest.algorithm());
        let written = watch::Sender::default();
        VerifiedWriter {
            partial: Arc::new(partial),
            descriptor: descriptor.clone(),
            hasher,
            offset: 0,
            written,
        }
    }

    /// Reads and hashes what is there already, up to `end`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn absorb(&mut self, end: u64) -> Result<(), WriteError> {
        let mut buffer = vec![0; 1 << 18];
        while self.offset < end {
            let length = buffer
                .len()
                .min(usize::try_from(end - self.offset).unwrap_or(usize::MAX));
            let piece = &mut buffer[..length];
            self.partial.read(piece, self.offset)?;
            self.pass(piece)?;
        }
        Ok(())
    }

    /// The partial blob, to write at other offsets.
    pub(super) fn partial(&self) -> Arc<dyn PartialBlob> {
        self.partial.clone()
    }

    /// For whoever reads the content while it is written.
    pub(super) fn follower(&self) -> Follower {
        Follower {
            partial: self.partial.clone(),
            written: self.written.subscribe(),
        }
    }

    /// How many bytes it has: where to resume.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Discards what it has and begins again.
    ///
    /// # Errors
    /// When that cannot be discarded.
    pub fn restart(&mut self) -> Result<(), WriteError> {
        // whoever follows knows it before a byte is gone
        let restarts = self.written.borrow().restarts + 1;
        self.written.send_replace(Written {
            restarts,
            ..Written::default()
        });
        self.hasher = Hasher::new(self.descriptor.digest.algorithm());
        self.offset = 0;
        self.partial.clear()
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When more bytes come than the content has, or the disk refuses.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let end = self.offset + bytes.len() as u64;
        if end > self.descriptor.size {
            let (wanted, size) = (self.descriptor.digest.clone(), self.descriptor.size);
            self.restart()?;
            return Err(WriteError::Size {
                wanted,
                size,
                found: end,
            });
        }
        self.partial.write(bytes, self.offset)?;
        self.pass(bytes)
    }

    fn pass(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        self.written
            .send_modify(|written| written.bytes = self.offset);
        self.partial.passed(bytes)
    }

    /// Checks size and digest, and keeps the content.
    ///
    /// # Errors
    /// A wrong size leaves what there is; a wrong digest discards it.
    pub fn commit(mut self) -> Result<(), WriteError> {
        let wanted = self.descriptor.digest.clone();
        if self.offset != self.descriptor.size {
            return Err(WriteError::Size {
                wanted,
                size: self.descriptor.size,
                found: self.offset,
            });
        }
        let found = self.hasher.clone().finish();
        if found != wanted {
            self.restart()?;
            return Err(WriteError::Digest { wanted, found });
        }
        self.partial.keep()?;
        // not before: a registry must not have what a store lacks, should the run be killed between
        self.written.send_modify(|written| written.is_right = true);
        Ok(())
    }
}
