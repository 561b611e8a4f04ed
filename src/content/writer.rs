//! Writing content: hashed while written, final only after size and digest match.

use crate::content::StoreError;
use crate::content::sink::PartialBlob;
use crate::model::{Descriptor, Hasher};
use std::sync::Arc;

/// Writes one piece of content. Dropped before [`Writer::commit`], it leaves what it has for the next
/// run to go on with.
#[derive(Debug)]
pub struct Writer {
    ground: Arc<dyn PartialBlob>,
    descriptor: Descriptor,
    hasher: Hasher,
    offset: u64,
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hasher")
    }
}

impl Writer {
    /// Writes the content of `descriptor` to `ground` from its beginning on.
    pub fn new(ground: impl PartialBlob + 'static, descriptor: &Descriptor) -> Writer {
        let hasher = Hasher::new(descriptor.digest.algorithm());
        Writer { ground: Arc::new(ground), descriptor: descriptor.clone(), hasher, offset: 0 }
    }

    /// Takes in what lies there already, up to `end`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn absorb(&mut self, end: u64) -> Result<(), StoreError> {
        let mut buffer = vec![0; 1 << 18];
        while self.offset < end {
            let length = buffer.len().min(usize::try_from(end - self.offset).unwrap_or(usize::MAX));
            let piece = &mut buffer[..length];
            self.ground.read(piece, self.offset)?;
            self.pass(piece)?;
        }
        Ok(())
    }

    /// Where it is written, to write apart from the beginning.
    pub(super) fn ground(&self) -> Arc<dyn PartialBlob> {
        self.ground.clone()
    }

    /// How many bytes it has: where to go on.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Throws away what it has and begins again.
    ///
    /// # Errors
    /// When that cannot be thrown away.
    pub fn restart(&mut self) -> Result<(), StoreError> {
        self.ground.clear()?;
        self.hasher = Hasher::new(self.descriptor.digest.algorithm());
        self.offset = 0;
        Ok(())
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// When more bytes come than the content has, or the disk refuses.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let end = self.offset + bytes.len() as u64;
        if end > self.descriptor.size {
            let (wanted, size) = (self.descriptor.digest.clone(), self.descriptor.size);
            self.restart()?;
            return Err(StoreError::Size { wanted, size, found: end });
        }
        self.ground.write(bytes, self.offset)?;
        self.pass(bytes)
    }

    fn pass(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.hasher.update(bytes);
        self.offset += bytes.len() as u64;
        self.ground.passed(bytes)
    }

    /// Checks size and digest, and has the content kept.
    ///
    /// # Errors
    /// A wrong size leaves what there is; a wrong digest throws it away.
    pub fn commit(mut self) -> Result<(), StoreError> {
        let wanted = self.descriptor.digest.clone();
        if self.offset != self.descriptor.size {
            return Err(StoreError::Size { wanted, size: self.descriptor.size, found: self.offset });
        }
        let found = self.hasher.clone().finish();
        if found != wanted {
            self.restart()?;
            return Err(StoreError::Digest { wanted, found });
        }
        self.ground.keep()
    }
}
