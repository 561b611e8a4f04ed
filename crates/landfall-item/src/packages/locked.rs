//! A set of packages in the lock.

use super::resolvable::OfferedIndex;
use landfall_content::BlobRead;
use landfall_model::{Digest, Limits, serde_as_text};
use landfall_packages::{apt, file_url, yum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::io::{self, BufReader, Read};
use std::str::FromStr;

/// The packages that one kind of machine installs, with their dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedPackageSet {
    /// The name: `apt:` or `yum:`, followed by a chosen name or by the URL of the first source. For
    /// apt, the URL includes the path of the suite.
    pub name: String,
    /// The digest of the artifact's manifest, which is computed from the name and the sources.
    pub digest: Digest,
    /// The architectures, the native one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// The requested packages, as the manifest writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub install: Vec<String>,
    /// The module streams that are enabled on the machines, as `name` or `name:stream`; none for
    /// apt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Whether recommended packages are installed as well.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recommends: bool,
    /// The metadata with which the packages are served.
    #[serde(default, skip_serializing_if = "is_default")]
    pub index: OfferedIndex,
    /// What is installed on the machines already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base: Vec<String>,
    /// Packages that must be installed already, because no source offers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<String>,
    /// The repositories that the packages come from, in order of preference.
    pub sources: Vec<PackageSource>,
}

impl LockedPackageSet {
    /// Whether the set is for apt.
    pub fn is_apt(&self) -> bool {
        self.name.starts_with("apt:")
    }

    /// Whether the set is for yum and dnf.
    pub fn is_yum(&self) -> bool {
        self.name.starts_with("yum:")
    }
}

/// A repository, or a suite of one, with the carried indexes and packages.
///
/// The lock does not have the URLs of the files, which are computed from `url` and the paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, rename_all = "camelCase")]
pub struct PackageSource {
    /// The URL of the repository.
    pub url: String,
    /// The suite. It ends with a slash if the repository is flat, and is empty for yum.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suite: String,
    /// The components of the suite; none for a flat repository and for yum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// The indexes that are carried in addition to the package indexes, by the names of apt's
    /// targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Whether the indexes are also available by digest (`by-hash`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_hash: bool,
    /// Whether module streams hide no package of the repository (`module_hotfixes` of dnf).
    #[serde(default, skip_serializing_if = "is_default")]
    pub module_hotfixes: bool,
    /// The URL of a snapshot of the repository. The snapshot still has the locked files after the
    /// repository replaced them.
    pub snapshot: Option<String>,
    /// The date of the signed metadata.
    pub date: Option<String>,
    /// The date until which the signed metadata is valid.
    pub valid_until: Option<String>,
    /// For apt, the fingerprint of the key that signed the metadata; for yum, the fingerprints of
    /// all keys of the source.
    pub signed_by: String,
    /// The key or keys of `signed_by`, ASCII-armored.
    pub key: String,
    /// The carried metadata files, unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<PackageIndex>,
    /// The carried packages, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<LockedPackage>,
}

/// A metadata file of a repository. The lock has it as a line `DIGEST SIZE PATH`.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{digest} {size} {path}")]
pub struct PackageIndex {
    /// The digest of the file.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub size: u64,
    /// The path below the URL of the source; with `../` at its start, or a URL, if the file is
    /// elsewhere.
    pub path: String,
    /// The URL from which `pull` downloads the file.
    pub url: String,
}

/// A package of a repository. The lock has it as a line `DIGEST SIZE NAME VERSION ARCH PATH`.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{digest} {size} {name} {version} {arch} {path}")]
pub struct LockedPackage {
    /// The digest of the file.
    pub digest: Digest,
    /// The size of the file in bytes.
    pub size: u64,
    /// The name of the package.
    pub name: String,
    /// The version as the repository writes it.
    pub version: String,
    /// The architecture; `all` or `noarch` for a package of every architecture.
    pub arch: String,
    /// The path below the URL of the source; with `../` at its start, or a URL, if the file is
    /// elsewhere.
    pub path: String,
    /// The URL from which `pull` downloads the file.
    pub url: String,
}

/// The digest and size at the beginning of a line, and the rest of the line.
fn digest_and_size(text: &str) -> Option<(Digest, u64, &str)> {
    let (digest, rest) = text.split_once(' ')?;
    let (size, rest) = rest.split_once(' ')?;
    Some((digest.parse().ok()?, size.parse().ok()?, rest))
}

serde_as_text!(PackageIndex);

impl FromStr for PackageIndex {
    type Err = String;

    fn from_str(text: &str) -> Result<PackageIndex, String> {
        match digest_and_size(text) {
            Some((digest, size, path)) => Ok(PackageIndex {
                digest,
                size,
                path: path.to_owned(),
                // computed when the source was read
                url: String::new(),
            }),
            _ => Err(format!("'{text}' is not a digest, size and path")),
        }
    }
}

serde_as_text!(LockedPackage);

impl FromStr for LockedPackage {
    type Err = String;

    fn from_str(text: &str) -> Result<LockedPackage, String> {
        let line = digest_and_size(text).and_then(|(digest, size, rest)| {
            // only the path may contain spaces
            let words: Vec<String> = rest.splitn(4, ' ').map(str::to_owned).collect();
            let [name, version, arch, path] = words.try_into().ok()?;
            Some(LockedPackage {
                digest,
                size,
                name,
                version,
                arch,
                path,
                url: String::new(),
            })
        });
        line.ok_or_else(|| {
            format!("'{text}' is not a digest, size, name, version, architecture and path")
        })
    }
}

/// Whether `value` is left out of the lock.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Serialize for PackageSource {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        PackageSource::serialize(self, out)
    }
}

impl<'de> Deserialize<'de> for PackageSource {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<PackageSource, D::Error> {
        let mut source = PackageSource::deserialize(input)?;
        for index in &mut source.indexes {
            index.url = file_url(&source.url, &index.path);
        }
        for package in &mut source.packages {
            package.url = file_url(&source.url, &package.path);
        }
        Ok(source)
    }
}

impl PackageSource {
    /// The URLs of the file `path`: in the repository, then in its snapshot.
    pub(super) fn urls_of(&self, url: &str, path: &str) -> Vec<String> {
        let snapshot = self
            .snapshot
            .as_ref()
            .map(|snapshot| file_url(snapshot, path));
        [url.to_owned()].into_iter().chain(snapshot).collect()
    }

    /// The top-level metadata file and its signature. A repository replaces these files with every
    /// change, because their names are fixed.
    pub(super) fn replaced_files(&self) -> impl Iterator<Item = &PackageIndex> {
        self.indexes
            .iter()
            .filter(|index| is_signed_list(&index.path))
    }

    /// The `by-hash` URL of an index, if the source has `by-hash` URLs.
    pub(super) fn by_hash_url(&self, index: &PackageIndex) -> Option<String> {
        // clients find the digests in the signed list, so the list itself is not available by
        // digest
        if !self.by_hash || is_signed_list(&index.path) {
            return None;
        }
        let name_start = index.path.rfind('/').map_or(0, |slash| slash + 1);
        let folder = &index.path[..name_start];
        let algorithm = index.digest.algorithm().as_str().to_ascii_uppercase();
        let path = format!("{folder}by-hash/{algorithm}/{}", index.digest.hex());
        Some(file_url(&self.url, &path))
    }
}

/// Whether `path` is that of a repository's top-level metadata file, or of its signature.
fn is_signed_list(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "InRelease" | "Release" | "Release.gpg" | "repomd.xml" | "repomd.xml.asc"
    )
}

/// A package of a locked set.
#[derive(Debug, Clone, Copy)]
pub struct PackageSummary<'a> {
    /// The name of the package.
    pub name: &'a str,
    /// The version as the repository writes it.
    pub version: &'a str,
    /// The architecture; `all` or `noarch` for a package of every architecture.
    pub arch: &'a str,
    /// The digest of the package file.
    pub digest: &'a Digest,
    /// The size of the package file in bytes.
    pub size: u64,
    /// Compares two versions as the package manager does.
    pub order: fn(&str, &str) -> Ordering,
    changelog: ReadChangelog,
}

/// Reads the first lines of the changelog in a package file; the second argument is the package's
/// name.
type ReadChangelog = fn(&mut dyn Read, &str) -> io::Result<Vec<String>>;

impl PackageSummary<'_> {
    /// The first lines of the package's changelog. Empty if `content` does not have the package
    /// file, or the package has no changelog.
    ///
    /// # Errors
    /// If the package file cannot be read.
    pub fn changelog(&self, content: &dyn BlobRead) -> io::Result<Vec<String>> {
        if content
            .stat(self.digest)
            .map_err(io::Error::other)?
            .is_none()
        {
            return Ok(Vec::new());
        }
        let file = content.open(self.digest, 0).map_err(io::Error::other)?;
        (self.changelog)(&mut BufReader::new(file), self.name)
    }
}

/// The packages of all sources of `set`.
pub(super) fn summaries(set: &LockedPackageSet) -> Vec<PackageSummary<'_>> {
    let (order, changelog): (fn(&str, &str) -> Ordering, ReadChangelog) = if set.is_yum() {
        (yum::compare_versions, |file, _| {
            yum::changelog(file, &Limits::default()).map_err(io::Error::other)
        })
    } else {
        (apt::compare_versions, apt::changelog)
    };
    let packages = set.sources.iter().flat_map(|source| &source.packages);
    packages
        .map(|package| PackageSummary {
            name: &package.name,
            version: &package.version,
            arch: &package.arch,
            digest: &package.digest,
            size: package.size,
            order,
            changelog,
        })
        .collect()
}
