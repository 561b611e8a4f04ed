//! The section `files` of the lock: files and their sidecars; and the files of all kinds of items,
//! as `serve` offers and `export` writes them.

use landfall_model::report::EntryKind;
use landfall_model::{Digest, FolderPacking};
use landfall_signature::{LogEntry, VerifiedSignature, verified_list};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A plain file in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedFile {
    /// The URL from which `pull` downloads the file, or `local:` and the path of a file next to the
    /// manifest.
    pub name: String,
    /// SHA-256 of the file's content.
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: u64,
    /// The path of a local file or folder, relative to the folder of the lock. `None` if it is not
    /// below that folder.
    pub path: Option<String>,
    /// How the local folder at `path` becomes the file; `None` for a file.
    #[serde(rename = "as")]
    pub packing: Option<FolderPacking>,
    /// The `checksum` of the manifest: a digest, or the URL of a sidecar.
    pub checksum: Option<String>,
    /// Checksum files, signatures and certificates, carried byte for byte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sidecars: Vec<LockedSidecar>,
    /// Other URLs at which clients request the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The permission bits that an export sets, in octal, as in `0755`.
    pub mode: Option<String>,
    /// The key that signed the file or its checksum file, if the manifest requires one.
    #[serde(rename = "signedBy")]
    pub signed_by: Option<String>,
    /// The signatures that met the rules of `verify:`, sorted; empty if the file needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "verified_list")]
    pub verified: Vec<VerifiedSignature>,
    /// The entry of the file's signature in a transparency log, if the signature was published
    /// without its entry.
    #[serde(rename = "logEntry")]
    pub log_entry: Option<LogEntry>,
    /// The members that an export extracts from the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpack: Vec<String>,
}

impl LockedFile {
    /// A file with only a name, digest and size.
    pub fn new(name: impl Into<String>, digest: Digest, size: u64) -> LockedFile {
        let name = name.into();
        LockedFile {
            name,
            digest,
            size,
            path: None,
            packing: None,
            checksum: None,
            sidecars: Vec::new(),
            also: Vec::new(),
            mode: None,
            signed_by: None,
            verified: Vec::new(),
            log_entry: None,
            unpack: Vec::new(),
        }
    }

    /// The URL of the transparency log that has the entry of the file's signature, if it is the
    /// public log of Sigstore. The lock has only the keys of logs.
    pub(crate) fn log_url(&self) -> Option<String> {
        const PUBLIC_KEY: &str = "c0d23d6ad406973f9559f3ba2d1ca01f84147d8ffc5b8445c224f98b9591801d";
        let entry = self.log_entry.as_ref()?;
        (entry.log == PUBLIC_KEY).then(|| "https://rekor.sigstore.dev/api/v1/log".into())
    }
}

/// A checksum file, signature or certificate that is carried with a [`LockedFile`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSidecar {
    /// The URL from which `pull` downloads the sidecar.
    pub url: String,
    /// SHA-256 of the sidecar's content.
    pub digest: Digest,
    /// Size of the sidecar in bytes.
    pub size: u64,
}

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
