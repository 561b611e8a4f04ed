//! A file in the lock, and how it is written as YAML.

use crate::image::write_verified;
use crate::text::quoted;
use landfall_model::Digest;
use landfall_signature::{LogEntry, VerifiedSignature, read_verified};
use serde::Deserialize;
use std::fmt::{self, Write};

/// A plain file in the lock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedFile {
    /// The URL from which `pull` downloads the file.
    pub name: String,
    /// SHA-256 of the file's content.
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: u64,
    /// The `checksum` of the manifest: a digest, or the URL of a sidecar.
    #[serde(default)]
    pub checksum: Option<String>,
    /// Checksum files, signatures and certificates, carried byte for byte.
    #[serde(default)]
    pub sidecars: Vec<LockedSidecar>,
    /// Other URLs at which clients request the file.
    #[serde(default)]
    pub also: Vec<String>,
    /// The permission bits that an export sets, in octal, as in `0755`.
    #[serde(default)]
    pub mode: Option<String>,
    /// The key that signed the file or its checksum file, if the manifest requires one.
    #[serde(default, rename = "signedBy")]
    pub signed_by: Option<String>,
    /// The signatures that met the rules of `verify:`, sorted; empty if the file needs none.
    #[serde(default, deserialize_with = "read_verified")]
    pub verified: Vec<VerifiedSignature>,
    /// The entry of the file's signature in a transparency log, if the signature was published
    /// without its entry.
    #[serde(default, rename = "logEntry")]
    pub log_entry: Option<LogEntry>,
    /// The members that an export extracts from the archive.
    #[serde(default)]
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
}

/// A checksum file, signature or certificate that is carried with a [`LockedFile`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedSidecar {
    /// The URL from which `pull` downloads the sidecar.
    pub url: String,
    /// SHA-256 of the sidecar's content.
    pub digest: Digest,
    /// Size of the sidecar in bytes.
    pub size: u64,
}

/// Writes `file` as YAML, one value on each line so that diffs are small.
pub(crate) fn write(file: &LockedFile, out: &mut dyn Write) -> fmt::Result {
    writeln!(
        out,
        "- name: {}\n  digest: {}\n  size: {}",
        quoted(&file.name),
        file.digest,
        file.size
    )?;
    if let Some(checksum) = &file.checksum {
        writeln!(out, "  checksum: {}", quoted(checksum))?;
    }
    if !file.sidecars.is_empty() {
        writeln!(out, "  sidecars:")?;
    }
    for sidecar in &file.sidecars {
        let url = quoted(&sidecar.url);
        writeln!(
            out,
            "  - {{url: {url}, digest: {}, size: {}}}",
            sidecar.digest, sidecar.size
        )?;
    }
    if !file.also.is_empty() {
        writeln!(out, "  also:")?;
    }
    for url in &file.also {
        writeln!(out, "  - {}", quoted(url))?;
    }
    if let Some(mode) = &file.mode {
        writeln!(out, "  mode: {}", quoted(mode))?;
    }
    if let Some(key) = &file.signed_by {
        writeln!(out, "  signedBy: {}", quoted(key))?;
    }
    write_verified(out, &file.verified)?;
    if let Some(LogEntry {
        index,
        time,
        log,
        promise,
    }) = &file.log_entry
    {
        let log = quoted(log);
        let promise = quoted(promise);
        writeln!(
            out,
            "  logEntry: {{index: {index}, time: {time}, log: {log}, promise: {promise}}}"
        )?;
    }
    if !file.unpack.is_empty() {
        writeln!(out, "  unpack:")?;
    }
    for member in &file.unpack {
        writeln!(out, "  - {}", quoted(member))?;
    }
    Ok(())
}
