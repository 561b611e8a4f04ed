//! The packages that are available to a machine with dnf: unpacks, verifies and reads the metadata
//! of its sources.

use super::modules::{HiddenPackage, Modules};
use super::pool::Pool;
use super::primary::{PackageLabels, read_filelists, read_labels, read_primary, related_paths};
use super::repomd::RepomdIndex;
use super::solve::UnsolvableRequest;
use super::version::Architectures;
use crate::{Compression, decompressed};
use bytes::Bytes;
use landfall_model::{Digest, Failure, HashedStream};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufReader, Read};

/// An index as it was downloaded. The caller has verified the digest of the downloaded bytes.
#[derive(Debug, Clone)]
pub struct PackedIndex {
    /// The content of the index as downloaded, which may be compressed.
    pub bytes: Bytes,
    compression: Compression,
    /// The maximum size of the unpacked content in bytes.
    max_bytes: u64,
    /// The digest of the unpacked content, if `repomd.xml` has one.
    open_digest: Option<Digest>,
    path: String,
}

/// The downloaded metadata of a source.
#[derive(Debug, Clone)]
pub struct SourceMetadata {
    /// The URL of the source.
    pub url: String,
    /// The index `primary`, which lists the packages of the source.
    pub primary: PackedIndex,
    /// The index `modules`, if the source has module streams.
    pub modules: Option<PackedIndex>,
    /// The index `filelists`, if a dependency or request names a file that `primary` does not list.
    pub files: Option<PackedIndex>,
}

/// The packages that the sources of a machine with dnf offer.
#[derive(Debug)]
pub struct AvailablePackages {
    /// The packages that a machine with the default module streams can install.
    pub pool: Pool,
    /// Packages of module streams that are not enabled by default.
    hidden: Vec<HiddenPackage>,
}

impl PackedIndex {
    /// Returns the index that `repomd.xml` lists as `index`, with empty `bytes`. Its content may
    /// unpack to at most its listed unpacked size, or `limit` bytes if no size is listed.
    ///
    /// # Errors
    /// If the compression is not supported, or the listed unpacked size exceeds `limit`.
    pub fn of(index: &RepomdIndex, limit: u64) -> Result<PackedIndex, Failure> {
        let path = index.path.clone();
        let compression = Compression::of(&path).ok_or_else(|| unsupported_compression(&path))?;
        // checked before the download; the actual size is limited while unpacking
        if let Some(size) = index.open_size.filter(|size| *size > limit) {
            return Err(Failure::failed(format!(
                "{path} unpacks to {size} bytes, more than {limit}"
            )));
        }
        let (max_bytes, open_digest) =
            (index.open_size.unwrap_or(limit), index.open_digest.clone());
        Ok(PackedIndex {
            bytes: Bytes::new(),
            compression,
            max_bytes,
            open_digest,
            path,
        })
    }

    /// Reads a primary index. Returns the licence and vendor of each package whose digest
    /// (hexadecimal) is in `digests`, by digest.
    ///
    /// # Errors
    /// If the index is damaged or malformed.
    pub fn labels(
        &self,
        digests: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, PackageLabels>, Failure> {
        let mut found = BTreeMap::new();
        self.read_unpacked(|reader| {
            found = read_labels(BufReader::new(reader), digests)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls `read` with the unpacked content, and then verifies the content.
    fn read_unpacked(
        &self,
        read: impl FnOnce(&mut dyn Read) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let reader =
            decompressed(&self.bytes[..], self.compression, self.max_bytes).map_err(unreadable)?;
        // without `open-checksum`, only the digest of the compressed content can be verified
        let Some(open_digest) = &self.open_digest else {
            return read(&mut BufReader::new(reader));
        };
        let mut hashed = HashedStream::new(reader, open_digest.algorithm());
        read(&mut hashed)?;
        // a parser stops at the end of its document; the digest also covers the bytes after it
        io::copy(&mut hashed, &mut io::sink()).map_err(unreadable)?;
        if hashed.finish().1 != *open_digest {
            let why = "its unpacked content does not match the open-checksum in repomd.xml";
            return Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        Ok(())
    }
}

impl AvailablePackages {
    /// Reads the packages of `sources` that a machine of `architectures` can install. The lists of
    /// all files are read only for paths in relations and in the requests `install`.
    ///
    /// # Errors
    /// If an index is damaged or malformed.
    pub fn read(
        sources: &[SourceMetadata],
        architectures: &Architectures,
        install: &[String],
    ) -> Result<AvailablePackages, Failure> {
        let mut pool = Pool::default();
        let mut modules = Modules::default();
        for (number, source) in sources.iter().enumerate() {
            source
                .primary
                .read_unpacked(|reader| {
                    read_primary(
                        BufReader::new(reader),
                        number as u16,
                        &architectures.all(),
                        &mut pool,
                    )
                })
                .map_err(|error| source.failed(&source.primary, error))?;
            if let Some(index) = &source.modules {
                let mut text = String::new();
                index
                    .read_unpacked(|reader| {
                        reader
                            .read_to_string(&mut text)
                            .map(drop)
                            .map_err(unreadable)
                    })
                    .and_then(|()| modules.read(&text))
                    .map_err(|error| source.failed(index, error))?;
            }
        }
        // packages are hidden after all sources are read, because a module of one source can hide
        // packages of another source, and before the lists of files are read, because hiding
        // changes the ids of packages
        let hidden = modules.hide(&mut pool);
        // most lists are not needed: the caller downloads them only if a selection misses a file
        let mut paths = BTreeSet::new();
        if sources.iter().any(|source| source.files.is_some()) {
            paths = related_paths(&pool);
            paths.extend(install.iter().filter(|word| word.starts_with('/')).cloned());
        }
        for (number, source) in sources.iter().enumerate() {
            if let Some(index) = &source.files {
                index
                    .read_unpacked(|reader| {
                        read_filelists(BufReader::new(reader), number as u16, &paths, &mut pool)
                    })
                    .map_err(|error| source.failed(index, error))?;
            }
        }
        Ok(AvailablePackages { pool, hidden })
    }

    /// Returns the chain of reasons of `refusal` as one line of text. It names the module streams
    /// that contain the missing packages.
    pub fn explain(&self, refusal: &UnsolvableRequest) -> String {
        let mut sentences = refusal.reasons.clone();
        for wanted in &refusal.missing {
            let matching: Vec<&HiddenPackage> = self
                .hidden
                .iter()
                .filter(|package| package.matches(wanted))
                .collect();
            let Some(first) = matching.first() else {
                continue;
            };
            // one package is named in full; for the others, only the streams are named
            let others: BTreeSet<&str> = matching
                .iter()
                .map(|package| &*package.streams)
                .filter(|other| *other != first.streams)
                .collect();
            let others = if others.is_empty() {
                String::new()
            } else {
                format!(
                    " (other matching packages are in {})",
                    others.into_iter().collect::<Vec<_>>().join(", ")
                )
            };
            sentences.push(format!(
                "{wanted} is offered by {} of the module stream {}{others}, which is not the \
                 default of its module, and landfall enables only default streams",
                first.nevra, first.streams
            ));
        }
        sentences.join("; ")
    }
}

impl SourceMetadata {
    fn failed(&self, index: &PackedIndex, source: Failure) -> Failure {
        Failure::failed(format!("{} {}: {source}", self.url, index.path))
    }
}

// Failures of the indexes of an RPM repository.

/// The failure of content that is damaged, truncated or too large.
pub(super) fn unreadable(error: io::Error) -> Failure {
    Failure::failed(format!("it cannot be read: {error}"))
}

/// The failure of content that is not a document of the kind `what`, or lacks a required part.
pub(super) fn malformed(what: &str, why: impl fmt::Display) -> Failure {
    Failure::failed(format!("it is not a valid {what}: {why}"))
}

/// The failure of the compression of an index.
pub fn unsupported_compression(path: &str) -> Failure {
    Failure::failed(format!(
        "the compression of {path} is not supported; landfall reads gz, xz, zst, bz2 and lzma"
    ))
}
