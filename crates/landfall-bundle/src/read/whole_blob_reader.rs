//! Reads a complete stored blob directly from its raw blocks, for receivers that use the blob only
//! after they have all of it. One digest over the blob replaces the hash of each frame, and the
//! frames need not be copied.

use super::open_bundle::OpenBundle;
use super::sequential_reader::SequentialReader;
use crate::format::damage::Damage;
use crate::format::stored::StoredReader;
use landfall_model::Hasher;
use std::io::{self, Read};
use std::sync::Arc;

/// Reads a stored blob from its beginning. If the digest is wrong, the last bytes are not returned.
pub(super) struct WholeBlobReader {
    content: StoredReader<SequentialReader>,
    entry_index: usize,
    hasher: Option<Hasher>,
}

impl WholeBlobReader {
    pub(super) fn new(bundle: Arc<OpenBundle>, entry_index: usize) -> WholeBlobReader {
        let entry = bundle.entry(entry_index);
        let start = entry.content_offset();
        let size = entry.size;
        let hasher = Some(Hasher::new(entry.digest.algorithm()));
        let source = SequentialReader::new(Arc::clone(&bundle), entry.end());
        WholeBlobReader {
            content: StoredReader {
                source,
                start,
                at: 0,
                size,
            },
            entry_index,
            hasher,
        }
    }

    fn check(&mut self) -> io::Result<()> {
        if self.content.at < self.content.size {
            return Ok(());
        }
        let bundle = &self.content.source.bundle;
        let entry = bundle.entry(self.entry_index);
        // compared once: a reader may be called again at the end
        let digest = self.hasher.take().map(Hasher::finish);
        if digest.is_some_and(|digest| digest != entry.digest) {
            let why = format!("its content does not have the digest {}", entry.digest);
            let damage = bundle
                .volumes
                .locate(Damage::new(&entry.name, entry.offset, why));
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                damage.to_string(),
            ));
        }
        Ok(())
    }
}

impl Read for WholeBlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        self.check()?;
        Ok(count)
    }
}
