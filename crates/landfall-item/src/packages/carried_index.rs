//! Reads the indexes of a locked set from a store or a bundle, and verifies their digests.

use super::locked::{PackageIndex, PackageSource};
use landfall_content::{BlobRead, ContentError};
use landfall_model::sign::{OpenPgpError, OpenPgpKeys, SignatureTime};
use landfall_model::{Descriptor, media_type};

/// Why a carried index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PackageIndexError {
    /// The index is missing or damaged.
    #[error("{path}: {source}")]
    Content {
        /// The path of the index below the repository.
        path: String,
        /// Why the index cannot be used.
        source: ContentError,
    },
    /// The index is not signed by the locked key.
    #[error("{path}: {source}")]
    Key {
        /// The path of the index below the repository.
        path: String,
        /// Why the index cannot be used.
        source: OpenPgpError,
    },
    /// The index is not UTF-8 text.
    #[error("{0} is not UTF-8 text")]
    NotText(String),
}

impl PackageIndex {
    /// Reads the index from `blobs`.
    ///
    /// # Errors
    /// If the index is missing or damaged.
    pub fn read(&self, blobs: &dyn BlobRead) -> Result<Vec<u8>, PackageIndexError> {
        let descriptor = Descriptor {
            digest: self.digest.clone(),
            size: self.size,
            media_type: media_type::OCTETS.into(),
        };
        let bytes = blobs.read(&descriptor);
        bytes.map_err(|source| PackageIndexError::Content {
            path: self.path.clone(),
            source,
        })
    }

    /// Decodes the content of this index as UTF-8.
    ///
    /// # Errors
    /// If the content is not UTF-8.
    pub fn text_of(&self, bytes: Vec<u8>) -> Result<String, PackageIndexError> {
        String::from_utf8(bytes).map_err(|_| PackageIndexError::NotText(self.path.clone()))
    }
}

impl PackageSource {
    /// The Release file of an apt suite and its text; `None` if the lock has none. The signature of
    /// `InRelease` is verified, but not a detached one.
    ///
    /// # Errors
    /// If the file is missing, damaged or not UTF-8 text, or if `InRelease` is not signed by the
    /// locked key.
    pub fn release(
        &self,
        blobs: &dyn BlobRead,
    ) -> Result<Option<(&PackageIndex, String)>, PackageIndexError> {
        if let Some(index) = self.index_called("InRelease") {
            let signed = index.text_of(index.read(blobs)?)?;
            // The key may have expired since it signed. `lock` verified the signature while the
            // key was valid, and a bundle may be used after the key expired.
            let (text, _) = OpenPgpKeys::parse(self.key.as_bytes())
                .and_then(|keys| keys.verify(&signed, SignatureTime::Made))
                .map_err(|source| PackageIndexError::Key {
                    path: index.path.clone(),
                    source,
                })?;
            return Ok(Some((index, text)));
        }
        let Some(index) = self.index_called("Release") else {
            return Ok(None);
        };
        Ok(Some((index, index.text_of(index.read(blobs)?)?)))
    }

    /// The carried index with this file name.
    fn index_called(&self, name: &str) -> Option<&PackageIndex> {
        self.indexes
            .iter()
            .find(|index| index.path.rsplit('/').next() == Some(name))
    }
}
