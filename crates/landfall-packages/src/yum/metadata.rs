//! The packages that a machine of dnf sees: the metadata of its sources, unpacked, checked and
//! read.

use super::architecture::Architectures;
use super::error::YumError;
use super::filelists::{read_filelists, related_paths};
use super::labels::{PackageLabels, read_labels};
use super::modules::{HiddenPackage, Modules};
use super::pool::Pool;
use super::primary::read_primary;
use super::repomd::RepomdIndex;
use super::solve::UnsolvableRequest;
use crate::{Compression, decompressed};
use bytes::Bytes;
use landfall_model::{Digest, Hasher};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, Read};

/// A compressed index as it was downloaded; its digest is verified.
#[derive(Debug, Clone)]
pub struct PackedIndex {
    /// The compressed content, as it was downloaded.
    pub bytes: Bytes,
    compression: Compression,
    /// The most bytes that it may unpack to.
    most: u64,
    /// The digest of what it unpacks to, where it is known.
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
    /// The index `filelists`, if a dependency names a file that `primary` does not list.
    pub files: Option<PackedIndex>,
}

/// The packages of all sources that are available to a machine with dnf.
#[derive(Debug)]
pub struct AvailablePackages {
    /// The packages that a machine with the default module streams can install.
    pub pool: Pool,
    /// Packages of module streams that are not enabled by default.
    hidden: Vec<HiddenPackage>,
}

/// An index could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{url} {path}: {source}")]
pub struct MetadataError {
    url: String,
    path: String,
    source: YumError,
}

impl PackedIndex {
    /// The index that `repomd.xml` calls `index`, still without its content. It may unpack to
    /// `limit` bytes.
    ///
    /// # Errors
    /// When it is compressed in a form that is not read, or unpacks to more.
    pub fn of(index: &RepomdIndex, limit: u64) -> Result<PackedIndex, YumError> {
        let path = index.path.clone();
        let compression =
            Compression::of(&path).ok_or_else(|| YumError::Compression(path.clone()))?;
        if let Some(size) = index.open_size.filter(|size| *size > limit) {
            return Err(YumError::TooLarge {
                name: path,
                size,
                limit,
            });
        }
        let (most, open_digest) = (index.open_size.unwrap_or(limit), index.open_digest.clone());
        Ok(PackedIndex {
            bytes: Bytes::new(),
            compression,
            most,
            open_digest,
            path,
        })
    }

    /// The licences and vendors that a primary index has of the packages whose digests
    /// (hexadecimal) are among `wanted`.
    ///
    /// # Errors
    /// When it is damaged or malformed.
    pub fn labels(
        &self,
        wanted: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, PackageLabels>, YumError> {
        let mut found = BTreeMap::new();
        self.unpacked(|reader| {
            found = read_labels(BufReader::new(reader), wanted)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// Shows what it unpacks to to `read`, and checks it.
    fn unpacked(
        &self,
        read: impl FnOnce(&mut dyn Read) -> Result<(), YumError>,
    ) -> Result<(), YumError> {
        let reader = decompressed(&self.bytes[..], self.compression, self.most)?;
        let Some(wanted) = &self.open_digest else {
            return read(&mut BufReader::new(reader));
        };
        let mut hashed = DigestReader {
            reader,
            hasher: Hasher::new(wanted.algorithm()),
        };
        read(&mut hashed)?;
        io::copy(&mut hashed, &mut io::sink())?;
        if hashed.hasher.finish() != *wanted {
            let why = "it unpacks to something else than repomd.xml says";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
        }
        Ok(())
    }
}

impl AvailablePackages {
    /// What `sources` offer to a machine of `architectures`. The lists of all files are read for
    /// the paths that relations name, and those among `install`, what is asked for.
    ///
    /// # Errors
    /// When an index is damaged or malformed.
    pub fn read(
        sources: &[SourceMetadata],
        architectures: &Architectures,
        install: &[String],
    ) -> Result<AvailablePackages, MetadataError> {
        let mut pool = Pool::default();
        let mut modules = Modules::default();
        for (number, source) in sources.iter().enumerate() {
            let read = |reader: &mut dyn Read| {
                read_primary(
                    BufReader::new(reader),
                    number as u16,
                    &architectures.all(),
                    &mut pool,
                )
            };
            source
                .primary
                .unpacked(read)
                .map_err(|error| source.failed(&source.primary, error))?;
            if let Some(index) = &source.modules {
                let mut text = String::new();
                let read =
                    |reader: &mut dyn Read| Ok(reader.read_to_string(&mut text).map(|_| ())?);
                let known = index.unpacked(read).and_then(|()| modules.read(&text));
                known.map_err(|error| source.failed(index, error))?;
            }
        }
        let hidden = modules.hide(&mut pool);
        let mut paths = BTreeSet::new();
        if sources.iter().any(|source| source.files.is_some()) {
            paths = related_paths(&pool);
            paths.extend(install.iter().filter(|word| word.starts_with('/')).cloned());
        }
        for (number, source) in sources.iter().enumerate() {
            if let Some(index) = &source.files {
                let read = |reader: &mut dyn Read| {
                    read_filelists(BufReader::new(reader), number as u16, &paths, &mut pool)
                };
                index
                    .unpacked(read)
                    .map_err(|error| source.failed(index, error))?;
            }
        }
        Ok(AvailablePackages { pool, hidden })
    }

    /// The chain of reasons of `refusal` as one sentence, with the streams of modules that would
    /// have what is missing.
    pub fn told(&self, refusal: &UnsolvableRequest) -> String {
        let mut sentences = refusal.reasons.clone();
        for wanted in &refusal.missing {
            let meant: Vec<&HiddenPackage> = self
                .hidden
                .iter()
                .filter(|package| package.is_meant(wanted))
                .collect();
            let Some(first) = meant.first() else { continue };
            let others: BTreeSet<&str> = meant
                .iter()
                .map(|package| &*package.streams)
                .filter(|other| *other != first.streams)
                .collect();
            let others = if others.is_empty() {
                String::new()
            } else {
                format!(
                    " (others are in {})",
                    others.into_iter().collect::<Vec<_>>().join(", ")
                )
            };
            sentences.push(format!(
                "{wanted} is offered by {} of the module stream {}{others}, which is not the \
                 default of its module, and landfall enables no other streams",
                first.nevra, first.streams
            ));
        }
        sentences.join("; ")
    }
}

impl SourceMetadata {
    fn failed(&self, index: &PackedIndex, source: YumError) -> MetadataError {
        MetadataError {
            url: self.url.clone(),
            path: index.path.clone(),
            source,
        }
    }
}

/// A reader that hashes the bytes it returns.
struct DigestReader<R> {
    reader: R,
    hasher: Hasher,
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
