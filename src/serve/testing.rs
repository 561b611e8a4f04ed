//! What the unit tests of this folder share: content in memory, and locked items made on the spot.

use crate::content::{BlobRead, ContentError};
use crate::item::{File, Image};
use crate::model::{Descriptor, Digest, media_type};
use std::collections::BTreeMap;
use std::io::Read;

/// Content in memory.
#[derive(Default)]
pub(super) struct Memory(pub(super) BTreeMap<Digest, Vec<u8>>);

impl Memory {
    pub(super) fn of(contents: &[&[u8]]) -> Memory {
        Memory(contents.iter().map(|bytes| (Digest::sha256(bytes), bytes.to_vec())).collect())
    }
}

impl BlobRead for Memory {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.0.get(digest).map(|bytes| bytes.len() as u64))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let missing = || ContentError::Missing { digest: digest.clone() };
        let bytes = self.0.get(digest).ok_or_else(missing)?;
        Ok(Box::new(std::io::Cursor::new(bytes[offset as usize..].to_vec())))
    }
}

/// A locked image of one manifest, `manifest`.
pub(super) fn image(name: &str, manifest: &[u8]) -> Image {
    let (digest, size) = (Digest::sha256(manifest), manifest.len() as u64);
    let top = Descriptor { digest, size, media_type: media_type::OCI_MANIFEST.into() };
    Image::new(name.parse().unwrap(), top)
}

/// A locked file.
pub(super) fn file(url: &str, content: &[u8]) -> File {
    File::new(url, Digest::sha256(content), content.len() as u64)
}
