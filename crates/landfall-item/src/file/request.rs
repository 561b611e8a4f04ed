//! A file as a manifest asks for it.

use crate::field_conflict::{FieldConflict, join};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::FileKey;
use std::fmt;

/// A wanted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// Where it comes from: http or https, no userinfo, in its normal form.
    pub url: String,
    /// Its checksum.
    pub checksum: Option<Checksum>,
    /// Other URLs of it, sorted.
    pub also: Vec<String>,
    /// Permission bits for exports, octal text such as `0755`.
    pub mode: Option<String>,
    /// URLs of what signs it, or its checksum file.
    pub signatures: Vec<String>,
    /// The key that one of the signatures must be made with.
    pub key: Option<FileKey>,
    /// Members of the archive that an export writes.
    pub unpack: Vec<String>,
    /// Where it is written.
    pub at: SourceLocation,
}

/// The checksum of a file, shown as in a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// A digest.
    Digest(Digest),
    /// The URL of a checksum file.
    Sidecar(String),
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Checksum::Digest(digest) => digest.fmt(f),
            Checksum::Sidecar(url) => f.write_str(url),
        }
    }
}

impl FileRequest {
    /// Takes from `other` what this lacks.
    pub(super) fn join(&mut self, other: &FileRequest) -> Result<(), FieldConflict> {
        join("checksum", &mut self.checksum, &other.checksum)?;
        join("mode", &mut self.mode, &other.mode)?;
        self.also.extend(other.also.iter().cloned());
        self.also.sort();
        self.also.dedup();
        if let (Some(first), Some(second)) = (&self.key, &other.key) {
            FieldConflict::unless_equal("key", first, second, FileKey::to_string)?;
        }
        self.key = self.key.take().or_else(|| other.key.clone());
        for (mine, theirs) in [
            (&mut self.signatures, &other.signatures),
            (&mut self.unpack, &other.unpack),
        ] {
            mine.extend(
                theirs
                    .iter()
                    .filter(|one| !mine.contains(one))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
        }
        Ok(())
    }
}
