//! The packages that are available to a machine with dnf (unpacks, verifies and reads the metadata
//! of its sources), and those that are installed on it.

use super::groups::Groups;
use super::modules::{HiddenPackage, ModuleRequest, Modules};
use super::pool::{NewPackage, Pool, RpmRelationKind, StoredRelation};
use super::primary::{
    PackageLabels, kind_of, read_filelists, read_labels, read_primary, related_paths,
};
use super::relation::{RpmRelation, VersionSense};
use super::repomd::RepomdIndex;
use super::requests::{PackageRequest, expand};
use super::solve::UnsolvableRequest;
use super::version::{Architectures, Evr};
use crate::{Compression, decompressed};
use bytes::Bytes;
use landfall_model::{Digest, Failure, HashedStream, Limits};
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
    /// The index of groups (`comps.xml`), if the source has groups.
    pub groups: Option<PackedIndex>,
    /// Whether module streams hide no package of the source (`module_hotfixes` of dnf).
    pub is_hotfixes: bool,
    /// The index `filelists`, if a dependency or request names a file that `primary` does not list.
    pub files: Option<PackedIndex>,
}

/// The packages that the sources of a machine with dnf offer.
#[derive(Debug)]
pub struct AvailablePackages {
    /// The packages that a machine can install, whose active module streams are those of the
    /// requests and the default ones.
    pub pool: Pool,
    /// The requests, with the packages of groups and modules.
    pub requests: Vec<PackageRequest>,
    /// The packages that groups list and no source has, which dnf skips, by the group.
    pub skipped: BTreeMap<String, BTreeSet<String>>,
    /// Packages of module streams that are not active.
    hidden: Vec<HiddenPackage>,
}

impl PackedIndex {
    /// Returns the index that `repomd.xml` lists as `index`, with empty `bytes`. Its content may
    /// unpack to at most its listed unpacked size, or the limit if no size is listed.
    ///
    /// # Errors
    /// If the compression is not supported, or the listed unpacked size exceeds the limit.
    pub fn of(index: &RepomdIndex, limits: &Limits) -> Result<PackedIndex, Failure> {
        let limit = unpacked_limit(&index.kind, limits);
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
            return Err(unreadable(why));
        }
        Ok(())
    }
}

/// The maximum size of the unpacked content of an index of this kind, in bytes.
pub fn unpacked_limit(kind: &str, limits: &Limits) -> u64 {
    if kind == "filelists" {
        limits.package_files_bytes
    } else {
        limits.package_index_bytes
    }
}

impl AvailablePackages {
    /// Reads the packages of `sources` that a machine of `architectures` can install, on which the
    /// module streams `streams` are enabled. The lists of all files are read only for paths in
    /// relations and in the requests `install`.
    ///
    /// # Errors
    /// If an index is damaged or malformed, `install` has an `@` word that names no group, module
    /// stream or profile of the sources, `streams` has one that no source has, or some of the
    /// streams exclude each other.
    pub fn read(
        sources: &[SourceMetadata],
        architectures: &Architectures,
        install: &[String],
        streams: &[String],
    ) -> Result<AvailablePackages, Failure> {
        let mut pool = Pool::default();
        let mut modules = Modules::default();
        let mut groups = Groups::default();
        let is_group_wanted = install.iter().any(|word| word.starts_with('@'));
        for (number, source) in sources.iter().enumerate() {
            source.read(&source.primary, |reader| {
                let (reader, wanted) = (BufReader::new(reader), architectures.all());
                read_primary(reader, number as u16, &wanted, &mut pool)
            })?;
            if let Some(index) = &source.modules {
                let mut text = String::new();
                source.read(index, |reader| {
                    let read = reader.read_to_string(&mut text);
                    read.map(drop).map_err(unreadable)
                })?;
                let read = modules.read(&text, architectures);
                read.map_err(|error| source.failed(index, error))?;
            }
            if let Some(index) = source.groups.as_ref().filter(|_| is_group_wanted) {
                source.read(index, |reader| groups.read(BufReader::new(reader)))?;
            }
        }
        let enabled = streams.iter().map(|word| modules.stream(word));
        let enabled = enabled
            .collect::<Result<Vec<ModuleRequest<'_>>, String>>()
            .map_err(Failure::failed)?;
        let requested = install
            .iter()
            .filter_map(|word| word.strip_prefix('@'))
            .filter_map(|word| modules.request(word, &enabled).transpose())
            .collect::<Result<Vec<ModuleRequest<'_>>, String>>()
            .map_err(Failure::failed)?;
        let all = [&requested[..], &enabled[..]].concat();
        let active = modules.activate(&all).map_err(Failure::failed)?;
        // packages are hidden after all sources are read, because a module of one source can hide
        // packages of another source, and before the lists of files are read, because hiding
        // changes the ids of packages
        let hotfixes: Vec<bool> = sources.iter().map(|source| source.is_hotfixes).collect();
        let hidden = modules.hide(&active, &hotfixes, &mut pool);
        let expanded = expand(
            install,
            &requested,
            (&modules, &active),
            (&groups, &hotfixes),
            &pool,
        );
        if !expanded.reasons.is_empty() {
            return Err(Failure::failed(expanded.reasons.join("; ")));
        }
        // most lists are not needed: the caller downloads them only if a selection misses a file
        let mut paths = BTreeSet::new();
        if sources.iter().any(|source| source.files.is_some()) {
            paths = related_paths(&pool);
            paths.extend(install.iter().filter(|word| word.starts_with('/')).cloned());
        }
        for (number, source) in sources.iter().enumerate() {
            if let Some(index) = &source.files {
                source.read(index, |reader| {
                    read_filelists(BufReader::new(reader), number as u16, &paths, &mut pool)
                })?;
            }
        }
        Ok(AvailablePackages {
            pool,
            requests: expanded.requests,
            skipped: expanded.skipped,
            hidden,
        })
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
                "{wanted} is offered by {} of the module stream {}{others}, which is not active; \
                 `modules: [\"{}\"]` enables it",
                first.nevra,
                first.streams,
                first.streams.split(' ').next().unwrap_or_default()
            ));
        }
        sentences.join("; ")
    }
}

impl SourceMetadata {
    /// Calls `read` with the unpacked content of `index`, one of the source.
    fn read(
        &self,
        index: &PackedIndex,
        read: impl FnOnce(&mut dyn Read) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let read = index.read_unpacked(read);
        read.map_err(|error| self.failed(index, error))
    }

    fn failed(&self, index: &PackedIndex, source: Failure) -> Failure {
        Failure::failed(format!("{} {}: {source}", self.url, index.path))
    }
}

// Failures of the indexes of an RPM repository.

/// The failure of content that is damaged, truncated or too large.
pub(super) fn unreadable(error: impl fmt::Display) -> Failure {
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

// The packages that are installed on a machine: the output of `rpm -qa`, either plain or in the
// format of `docs/how-to/packages.md`, which contains their relations too.

const WHAT: &str = "list of installed packages";

/// The name under which RPM lists the keys of its keyring. They are not packages, and their
/// `provides` are not relations.
const KEY: &str = "gpg-pubkey";

/// Whether `text` is plain output of `rpm -qa`, which has no relations.
pub fn is_plain_list(text: &str) -> bool {
    !text.lines().any(|line| line.starts_with("package "))
}

/// Adds the packages in `text` to `pool` as installed packages. A plain list has no relations, so
/// the relations of each package are copied from the same package of a source. The packages of the
/// sources must therefore be added to the pool first.
///
/// # Errors
/// If a line has neither of the two formats.
pub fn read_base(text: &str, pool: &mut Pool) -> Result<(), Failure> {
    let mut new = NewPackage::default();
    let mut is_key = false;
    for (number, line) in text.lines().enumerate() {
        let bad = || {
            // the list is a file of the user: it may contain anything, and lines of any length
            let line: String = line.chars().take(80).collect();
            malformed(
                WHAT,
                format!("line {} is '{}'", number + 1, line.escape_default()),
            )
        };
        let line = line.trim();
        let Some((word, rest)) = line.split_once(' ') else {
            if !(line.is_empty() || line.starts_with(&format!("{KEY}-"))) {
                pool.add(&mut new, None);
                add_plain_line(line, pool).ok_or_else(bad)?;
            }
            continue;
        };
        let kind = match word {
            "package" => {
                pool.add(&mut new, None);
                let [name, evr, arch] = rest.split(' ').collect::<Vec<_>>()[..] else {
                    return Err(bad());
                };
                is_key = name == KEY;
                if !is_key {
                    begin(
                        &mut new,
                        pool,
                        name,
                        evr.strip_prefix("0:").unwrap_or(evr),
                        arch,
                    );
                }
                continue;
            }
            _ if is_key => continue,
            "file" => RpmRelationKind::Files,
            word => kind_of(word).ok_or_else(bad)?,
        };
        if new.name.is_none() {
            return Err(bad());
        }
        // paths and rich dependencies contain blanks that do not separate a version
        let is_whole_line = kind == RpmRelationKind::Files || rest.starts_with('(');
        let relation = if is_whole_line {
            RpmRelation::any(rest)
        } else {
            RpmRelation::parse(rest).ok_or_else(bad)?
        };
        let name = pool.strings.add(relation.name);
        let evr = pool.strings.add(relation.evr);
        new.relations[kind as usize].push(StoredRelation {
            name,
            sense: relation.sense,
            evr,
        });
    }
    pool.add(&mut new, None);
    Ok(())
}

/// Starts a package in `new`. Every package provides its own name with its own version.
fn begin(new: &mut NewPackage, pool: &mut Pool, name: &str, evr: &str, arch: &str) {
    let [name, evr, arch] = [name, evr, arch].map(|text| pool.strings.add(text));
    (new.name, new.evr, new.arch) = (Some(name), Some(evr), Some(arch));
    new.relations[RpmRelationKind::Provides as usize].push(StoredRelation {
        name,
        sense: VersionSense::SAME,
        evr,
    });
}

/// Adds the package of a line of plain `rpm -qa`: `name-version-release.arch`. Returns `None` if
/// the line has another format.
fn add_plain_line(line: &str, pool: &mut Pool) -> Option<()> {
    let (rest, arch) = line.rsplit_once('.')?;
    let (rest, release) = rest.rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    let is_same = |evr: &str| {
        // the line has no epoch
        let evr = Evr::parse(evr);
        evr.version == version && evr.release == Some(release)
    };
    let same = pool
        .ids()
        .find(|id| pool.name(*id) == name && pool.arch(*id) == arch && is_same(pool.evr(*id)));
    let mut new = NewPackage::default();
    match same {
        Some(same) => pool.copy_relations(same, &mut new),
        None => begin(&mut new, pool, name, &format!("{version}-{release}"), arch),
    }
    pool.add(&mut new, None);
    if let Some(same) = same {
        pool.copy_listed_files(same);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yum::pool::StringPool;

    #[test]
    fn the_list_of_all_files_may_be_larger_than_other_indexes() {
        let open = |kind: &str, size: u64| {
            let index = RepomdIndex {
                kind: kind.to_owned(),
                path: format!("repodata/{kind}.xml.gz"),
                digest: Digest::sha256(b""),
                size: None,
                open_digest: None,
                open_size: Some(size),
            };
            PackedIndex::of(&index, &Limits::DEFAULT).map(drop)
        };
        assert!(open("filelists", 900 << 20).is_ok());
        for (kind, size) in [("filelists", 9 << 30), ("primary", 900 << 20)] {
            let error = open(kind, size).unwrap_err().to_string();
            assert!(error.contains("unpacks to"), "{error}");
        }
    }

    #[test]
    fn both_formats_are_read() {
        let mut pool = Pool::default();
        let text = "package bash 0:5.1-2.el9 x86_64\nprovides bash = 5.1-2.el9\nprovides config(bash) = 5.1\n\
                requires /bin/sh\nrequires (a if b)\nfile /usr/bin/a file\npackage x 1:2-3 noarch\n\nplain-name-2.0-1.el9.x86_64\n";
        read_base(text, &mut pool).unwrap();
        pool.index();
        let all: Vec<String> = pool.ids().map(|id| pool.nevra(id)).collect();
        assert_eq!(
            all,
            [
                "bash-5.1-2.el9.x86_64",
                "x-1:2-3.noarch",
                "plain-name-2.0-1.el9.x86_64"
            ]
        );
        let first = pool.ids().next().unwrap();
        let requires: Vec<String> = pool
            .relations(first, RpmRelationKind::Requires)
            .map(|one| one.to_string())
            .collect();
        assert_eq!(requires, ["/bin/sh", "(a if b)"]);
        assert_eq!(pool.named("/usr/bin/a file"), [first]);
        assert_eq!(pool.named("plain-name").len(), 1);
        assert_eq!(
            pool.providers(RpmRelation::parse("x > 9").unwrap()).len(),
            1,
            "the epoch counts"
        );
    }

    #[test]
    fn packages_of_a_plain_list_get_their_relations_from_the_sources() {
        let mut pool = Pool::default();
        let mut new = NewPackage::default();
        begin(&mut new, &mut pool, "a", "1:1-1", "x86_64");
        let name = pool.strings.add("liba.so");
        new.relations[RpmRelationKind::Provides as usize].push(StoredRelation {
            name,
            sense: VersionSense::ANY,
            evr: StringPool::EMPTY,
        });
        pool.add(&mut new, Some(0));
        read_base("a-1-1.x86_64\n", &mut pool).unwrap();
        pool.index();
        assert_eq!(pool.named("liba.so").len(), 2);
        let base = pool.ids().last().unwrap();
        assert_eq!((pool.evr(base), pool.package(base).source), ("1:1-1", None));
    }

    #[test]
    fn keys_of_rpm_are_skipped() {
        let text = "package gpg-pubkey 0:54db67d5-6b02c7f0 (none)\nprovides gpg(R, Inc. (key 2) <s@x.test>) = 4:75-6b\n\
                package a 0:1-1 noarch\nprovides b\ngpg-pubkey-54db67d5-6b02c7f0\nc-1-1.noarch\n";
        let mut pool = Pool::default();
        read_base(text, &mut pool).unwrap();
        let all: Vec<String> = pool.ids().map(|id| pool.nevra(id)).collect();
        assert_eq!(all, ["a-1-1.noarch", "c-1-1.noarch"]);
        assert!(!is_plain_list(text) && is_plain_list("c-1-1.noarch\n"));
    }

    #[test]
    fn a_malformed_list_is_an_error_with_its_line() {
        for text in [
            "ii  bash 5.1 amd64",
            "requires x",
            "package a",
            "word",
            "package a 1-1 x86_64\nprovides a = 1 2",
        ] {
            let error = read_base(text, &mut Pool::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains("line"), "{text}: {error}");
        }
    }
}
