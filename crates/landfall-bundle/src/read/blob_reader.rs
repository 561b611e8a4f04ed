//! Reading the whole of a stored blob straight from its raw blocks, for a receiver that uses
//! nothing before the end: one digest over all of it, in place of a hash for each frame and a copy
//! of it.

use super::open_bundle::OpenBundle;
use super::stretch::Stretch;
use crate::format::damage::Damage;
use crate::format::stored::StoredReader;
use landfall_model::Hasher;
use std::io::{self, Read};
use std::sync::Arc;

/// Reads a stored blob from its beginning. The last bytes are not handed out if its digest is
/// wrong.
pub(super) struct BlobReader {
    content: StoredReader<Stretch>,
    place: usize,
    hasher: Option<Hasher>,
}

impl BlobReader {
    pub(super) fn new(bundle: Arc<OpenBundle>, place: usize) -> BlobReader {
        let entry = bundle.entry(place);
        let (start, size) = (entry.content_offset(), entry.size);
        let hasher = Some(Hasher::new(entry.digest.algorithm()));
        let source = Stretch::new(Arc::clone(&bundle), entry.end());
        BlobReader {
            content: StoredReader {
                source,
                start,
                at: 0,
                size,
            },
            place,
            hasher,
        }
    }

    fn check(&mut self) -> io::Result<()> {
        let (at_end, bundle) = (
            self.content.at == self.content.size,
            &self.content.source.bundle,
        );
        let entry = bundle.entry(self.place);
        if at_end
            && self
                .hasher
                .take()
                .is_some_and(|hasher| hasher.finish() != entry.digest)
        {
            let why = format!("its content does not have the digest {}", entry.digest);
            let damage = bundle
                .volumes
                .place(Damage::new(&entry.name, entry.offset, why));
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                damage.to_string(),
            ));
        }
        Ok(())
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        self.check()?;
        Ok(count)
    }
}
