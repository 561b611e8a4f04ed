//! A request for a file.

use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::FileKey;
use std::fmt;

/// A request for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// The URL of the file: http or https, without userinfo, in its normal form.
    pub url: String,
    /// The checksum that the file must have.
    pub checksum: Option<Checksum>,
    /// Other URLs at which clients request the file, sorted.
    pub also: Vec<String>,
    /// The permission bits that an export sets, in octal, as in `0755`.
    pub mode: Option<String>,
    /// The URLs of signatures of the file or its checksum file.
    pub signatures: Vec<String>,
    /// The public key that must verify one of the signatures.
    pub key: Option<FileKey>,
    /// The members that an export extracts from the archive.
    pub unpack: Vec<String>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// The checksum of a file. `Display` formats it as in the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// The digest of the file, written in the manifest.
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
