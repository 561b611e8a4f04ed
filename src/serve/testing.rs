//! What the unit tests of this stage share: content in memory, and locked items made on the spot.

use crate::lock::{File, Image};
use crate::model::{Digest, media_type};
use crate::store::{Blobs, ContentError};
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

impl Blobs for Memory {
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
    Image {
        name: name.parse().unwrap(),
        platforms: vec![],
        pin: None,
        digest: Digest::sha256(manifest),
        media_type: media_type::OCI_MANIFEST.into(),
        size: manifest.len() as u64,
        platform: None,
        manifests: vec![],
        blobs: vec![],
        trimmed: None,
        referrers: None,
        referrer_blobs: vec![],
    }
}

/// A locked file.
pub(super) fn file(url: &str, content: &[u8]) -> File {
    File {
        name: url.into(),
        digest: Digest::sha256(content),
        size: content.len() as u64,
        checksum: None,
        sidecars: vec![],
        also: vec![],
        mode: None,
    }
}
