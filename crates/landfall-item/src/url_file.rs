//! A file of a locked item, as `serve` offers and `export` writes it.

use landfall_model::Digest;
use landfall_model::report::EntryKind;
use std::borrow::Cow;

/// A file of a locked item that clients download by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlFile<'a> {
    /// The kind, as reports name it. A sidecar has another kind than its file.
    pub kind: EntryKind,
    /// The URL that names the file in the lock.
    pub name: &'a str,
    /// All URLs at which clients request the file, `name` first.
    pub urls: Vec<Cow<'a, str>>,
    /// The digest of its content.
    pub digest: &'a Digest,
    /// The size of its content in bytes.
    pub size: u64,
    /// The permission bits that an export sets, in octal.
    pub mode: Option<&'a str>,
    /// The members of this archive that an export extracts next to it.
    pub members: &'a [String],
}

impl<'a> UrlFile<'a> {
    /// A file with one URL, without a mode and members.
    pub fn plain(kind: EntryKind, url: &'a str, digest: &'a Digest, size: u64) -> UrlFile<'a> {
        UrlFile {
            kind,
            name: url,
            urls: vec![url.into()],
            digest,
            size,
            mode: None,
            members: &[],
        }
    }
}
