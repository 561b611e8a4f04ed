//! A file as a manifest asks for it.

use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::FileKey;
use std::fmt;

/// A request for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// Where it comes from: http or https, no userinfo, in its normal form.
    pub url: String,
    /// The checksum that the file must have.
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
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// The checksum of a file, shown as in a lock.
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
