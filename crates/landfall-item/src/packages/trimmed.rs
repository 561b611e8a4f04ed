//! Generates the metadata for sets with `index: trimmed`. This metadata lists only the carried
//! packages and is signed by the site. It is generated when the packages are served or exported;
//! lock and bundle contain the metadata that the repositories signed.

use super::locked::{LockedPackageSet, PackageIndex, PackageSource};
use super::resolvable::OfferedIndex;
use crate::UrlFile;
use crate::text::in_folder;
use jiff::Timestamp;
use landfall_content::BlobRead;
use landfall_model::report::EntryKind;
use landfall_model::sign::OpenPgpSigner;
use landfall_model::{Digest, Failure, Limits, TransferSide};
use landfall_packages::apt::{TrimmedSuite, plain_path};
use landfall_packages::yum::{
    Repomd, RepomdIndex, TrimmedPrimary, trimmed_repomd, unpacked_limit, unsupported_compression,
};
use landfall_packages::{Compression, decompress, decompressed, file_url};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::BufReader;

/// A metadata file that was generated for trimmed repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// The URL at which machines request the file.
    pub url: String,
    /// The digest of its content.
    pub digest: Digest,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

/// Returns a function that adds the path of the index to a failure.
fn at_index<E: fmt::Display>(path: &str) -> impl Fn(E) -> Failure {
    move |error| Failure::failed(format!("{path}: {error}"))
}

fn signing(error: Failure) -> Failure {
    Failure::failed(format!("the site's key: {error}"))
}

fn no_index(what: &str) -> Failure {
    Failure::failed(format!("the lock has no {what}"))
}

fn not_indexed(path: &str) -> Failure {
    Failure::failed(format!("its indexes do not contain {path}"))
}

impl GeneratedFile {
    fn new(source: &str, path: &str, bytes: Vec<u8>) -> GeneratedFile {
        GeneratedFile {
            url: file_url(source, path),
            digest: Digest::sha256(&bytes),
            bytes,
        }
    }

    /// The file, as servers and exports list it.
    pub fn form(&self) -> UrlFile<'_> {
        UrlFile::plain(
            EntryKind::Sidecar,
            &self.url,
            &self.digest,
            self.bytes.len() as u64,
        )
    }
}

/// A source of a set, with the store or bundle that has its content.
struct TrimmedSource<'s> {
    set: &'s LockedPackageSet,
    source: &'s PackageSource,
    blobs: &'s dyn BlobRead,
}

/// Generates and signs the metadata of all `sets` with `index: trimmed`, each given with its
/// content.
///
/// # Errors
/// If carried metadata is missing, damaged or lacks a carried package, if signing fails, or if two
/// sets require different metadata for the same repository.
pub fn trimmed_metadata<'s>(
    sets: impl Iterator<Item = (&'s LockedPackageSet, &'s dyn BlobRead)>,
    signer: &OpenPgpSigner,
    limits: &Limits,
) -> Result<Vec<GeneratedFile>, Failure> {
    let mut sources: BTreeMap<(bool, &str, &str), Vec<TrimmedSource<'s>>> = BTreeMap::new();
    for (set, blobs) in sets {
        for source in &set.sources {
            let key = (set.is_yum(), source.url.as_str(), source.suite.as_str());
            sources
                .entry(key)
                .or_default()
                .push(TrimmedSource { set, source, blobs });
        }
    }
    let mut generated = Vec::new();
    for ((is_yum, url, suite), parts) in sources {
        // A client sees one index for each repository, so all sets that share a repository must
        // have the same `index`.
        let (trimmed, signed): (Vec<_>, Vec<_>) = parts
            .iter()
            .partition(|part| part.set.index == OfferedIndex::Trimmed);
        let files = match (&trimmed[..], &signed[..]) {
            ([], _) => continue,
            (_, [other, ..]) => Err(Failure::failed(format!(
                "one set has `index: trimmed`, but {} has `index: signed`; write the same `index` \
                 for both",
                other.set.name
            ))),
            (parts, []) if is_yum => repository(parts, signer, limits),
            (parts, []) => apt_suite(parts, signer, limits),
        };
        let files = files.map_err(|why| {
            let source = format!("{url} {suite}");
            let message = format!(
                "cannot generate the metadata of {}: {why}",
                source.trim_end()
            );
            Failure::failed(message).on(TransferSide::Source)
        })?;
        generated.extend(
            files
                .into_iter()
                .map(|(path, bytes)| GeneratedFile::new(url, &path, bytes)),
        );
    }
    Ok(generated)
}

type FilesByPath = BTreeMap<String, Vec<u8>>;

/// The generated files of an apt suite, by their paths below the repository.
fn apt_suite(
    parts: &[&TrimmedSource<'_>],
    signer: &OpenPgpSigner,
    limits: &Limits,
) -> Result<FilesByPath, Failure> {
    let mut suite = TrimmedSuite::default();
    let mut folder = "";
    for part in parts {
        let release = part.source.release(part.blobs)?;
        let (release, text) = release.ok_or_else(|| no_index("Release file"))?;
        folder = release
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        suite.add_release(
            &release.path,
            &text,
            &part.source.components,
            &part.set.architectures,
        )?;
        let packages = part.source.packages.iter();
        let carried = packages
            .map(|package| (package.path.as_str(), &package.digest))
            .collect();
        let mut found = BTreeSet::new();
        for (path, index) in part.readable("Packages") {
            let text = part.text(index, limits)?;
            let names = suite.add_packages(relative_to(folder, path), &text, &carried);
            found.extend(names.into_iter().map(str::to_owned));
        }
        // a package that the generated index lacks could not be installed
        if let Some(package) = part
            .source
            .packages
            .iter()
            .find(|package| !found.contains(&package.path))
        {
            return Err(not_indexed(&package.path));
        }
    }
    // after all packages, since only the descriptions of carried packages are kept
    for part in parts {
        for (path, index) in part.readable("Translation-en") {
            suite.add_descriptions(relative_to(folder, path), &part.text(index, limits)?);
        }
    }
    // the date is that of the carried releases, so equal content gives an equal Release file
    let date = suite
        .date()
        .unwrap_or_else(|| signer.time(Timestamp::UNIX_EPOCH));
    let (release, indexes) = suite.files(date);
    let mut files: FilesByPath = indexes
        .into_iter()
        .map(|(path, text)| (in_folder(folder, &path), text.into_bytes()))
        .collect();
    files.insert(
        in_folder(folder, "InRelease"),
        signer
            .cleartext(&release, date)
            .map_err(signing)?
            .into_bytes(),
    );
    Ok(files)
}

/// Returns `path`, which is in `folder`, relative to `folder`.
fn relative_to<'p>(folder: &str, path: &'p str) -> &'p str {
    path.strip_prefix(folder)
        .map_or(path, |path| path.trim_start_matches('/'))
}

/// An index that a set carries for a yum repository, and that trimmed metadata keeps unchanged.
struct KeptIndex {
    /// The date of the repository's metadata in that set.
    date: Timestamp,
    listed: RepomdIndex,
    bytes: Vec<u8>,
}

/// The generated files of a yum repository, by their paths below it.
fn repository(
    parts: &[&TrimmedSource<'_>],
    signer: &OpenPgpSigner,
    limits: &Limits,
) -> Result<FilesByPath, Failure> {
    let mut indexes: BTreeMap<&str, TrimmedPrimary> = BTreeMap::new();
    let mut date = Timestamp::UNIX_EPOCH;
    let mut kept: BTreeMap<&str, KeptIndex> = BTreeMap::new();
    for part in parts {
        let list = part
            .index("repodata/repomd.xml")
            .ok_or_else(|| no_index("repomd.xml"))?;
        let repomd = Repomd::parse(&list.read(part.blobs)?).map_err(at_index(&list.path))?;
        let own_date = repomd.date.unwrap_or_default();
        let url = &part.source.url;
        let listed = |kind| repomd.index(url, kind).map_err(at_index(&list.path));
        // dnf refuses to install packages of a module without the module's metadata, and groups
        // that it does not know. If several sets have these indexes, the newest are used.
        for (kind, written) in [("modules", Some("modules")), ("group", repomd.group_kind())] {
            let is_newer = kept.get(kind).is_none_or(|known| own_date > known.date);
            let Some(written) = written.filter(|_| is_newer) else {
                continue;
            };
            let Some(listed) = listed(written)? else {
                continue;
            };
            let index = part
                .index(&listed.path)
                .ok_or_else(|| no_index(&format!("index '{written}'")))?;
            let bytes = index.read(part.blobs)?;
            let date = own_date;
            kept.insert(
                kind,
                KeptIndex {
                    date,
                    listed,
                    bytes,
                },
            );
        }
        date = date.max(own_date);
        let packages = part.source.packages.iter();
        let carried: BTreeMap<String, &str> = packages
            .map(|package| (package.digest.hex(), package.path.as_str()))
            .collect();
        for (kind, what) in [
            ("primary", "primary index"),
            ("filelists", "list of all files"),
        ] {
            let Some(listed) = listed(kind)? else {
                continue;
            };
            let index = part.index(&listed.path).ok_or_else(|| no_index(what))?;
            let bytes = index.read(part.blobs)?;
            let compression = Compression::of(&index.path)
                .ok_or_else(|| at_index(&index.path)(unsupported_compression(&index.path)))?;
            let reader = decompressed(&bytes[..], compression, unpacked_limit(kind, limits))
                .map_err(|error| at_index(&index.path)(format!("it cannot be read: {error}")))?;
            let found = indexes
                .entry(kind)
                .or_default()
                .add(BufReader::new(reader), what, url, &carried)
                .map_err(at_index(&index.path))?;
            // only the primary index must contain every package
            let missing = carried
                .iter()
                .find(|(digest, _)| kind == "primary" && !found.contains(*digest));
            if let Some((_, path)) = missing {
                return Err(not_indexed(path));
            }
        }
    }
    let date = signer.time(date);
    let listed = kept.values().map(|kept| &kept.listed);
    let (repomd, indexes) = trimmed_repomd(&indexes, listed, date.as_second());
    let mut files: FilesByPath = indexes
        .into_iter()
        .map(|(path, text)| (path, text.into_bytes()))
        .collect();
    files.extend(
        kept.into_values()
            .map(|kept| (kept.listed.path, kept.bytes)),
    );
    files.insert(
        "repodata/repomd.xml.asc".into(),
        signer
            .detached(repomd.as_bytes(), date)
            .map_err(signing)?
            .into_bytes(),
    );
    files.insert("repodata/repomd.xml".into(), repomd.into_bytes());
    Ok(files)
}

impl TrimmedSource<'_> {
    fn index(&self, path: &str) -> Option<&PackageIndex> {
        self.source.indexes.iter().find(|index| index.path == path)
    }

    /// The indexes called `name`, by their paths without the ending of the compression. Each
    /// index is listed in one form, which landfall can decompress.
    fn readable(&self, name: &str) -> BTreeMap<&str, &PackageIndex> {
        let read = self
            .source
            .indexes
            .iter()
            .filter(|index| Compression::of(&index.path).is_some());
        let plain = read.map(|index| (plain_path(&index.path), index));
        plain
            .filter(|(path, _)| path.rsplit('/').next() == Some(name))
            .collect()
    }

    /// The decompressed content of an index.
    fn text(&self, index: &PackageIndex, limits: &Limits) -> Result<String, Failure> {
        let compression = Compression::of(&index.path).unwrap_or(Compression::None);
        let packed = index.read(self.blobs)?;
        let text = decompress(
            &index.path,
            &packed,
            compression,
            limits.package_index_bytes,
        )?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
