//! Selects which indexes of an apt release are fetched.

use super::locked::PackageIndex;
use super::request::PackageSourceRequest;
use crate::resolver::ResolveError;
use landfall_packages::apt::{AptRelease, target_paths};
use landfall_packages::{COMPRESSIONS, Compression, file_url};

/// The order in which apt prefers compressed forms of an index (`Acquire::CompressionTypes`).
const APTS_ORDER: [&str; 7] = [".xz", ".bz2", ".lzma", ".gz", ".lz4", ".zst", ""];
/// The language of the descriptions that apt always downloads.
pub(super) const LANGUAGE: &str = "en";

/// An index that the release names.
pub(super) struct ListedIndex {
    pub(super) index: PackageIndex,
    /// How it is decompressed, and the maximum size of its decompressed content in bytes; `None` if
    /// it is carried without being read.
    pub(super) read: Option<(Compression, u64)>,
    /// Other compressed forms, which are read if the server lacks `index`.
    pub(super) others: Vec<(PackageIndex, Compression)>,
}

impl ListedIndex {
    /// An index that is carried without being read.
    fn unread(index: PackageIndex) -> ListedIndex {
        ListedIndex {
            index,
            read: None,
            others: Vec::new(),
        }
    }
}

/// Finds indexes in the Release file of a suite.
struct ReleaseIndexes<'r> {
    /// The URL of the repository.
    url: &'r str,
    /// The folder of the Release file.
    folder: &'r str,
    release: &'r AptRelease,
}

impl ReleaseIndexes<'_> {
    /// The index `path` in the compressed form with this ending, if the release names it.
    fn find(&self, path: &str, ending: &str) -> Option<PackageIndex> {
        let path = format!("{path}{ending}");
        let file = self.release.files.get(&path)?;
        let digest = file.digest.clone();
        let size = file.size;
        let path = in_folder(self.folder, &path);
        Some(PackageIndex {
            digest,
            size,
            url: file_url(self.url, &path),
            path,
        })
    }

    /// The index `path` in the form that apt downloads.
    fn preferred(&self, path: &str) -> Option<PackageIndex> {
        APTS_ORDER.iter().find_map(|ending| self.find(path, ending))
    }

    /// The package index `path`: a form that landfall can read and, if apt downloads another form,
    /// that one as well. Empty if the release names no form that landfall can read. At most `limit`
    /// bytes are decompressed.
    fn packages(&self, path: &str, limit: u64) -> Vec<ListedIndex> {
        let mut forms = COMPRESSIONS
            .iter()
            .filter_map(|(ending, compression)| Some((self.find(path, ending)?, *compression)));
        let Some((index, compression)) = forms.next() else {
            return Vec::new();
        };
        let others = forms.collect();
        // the signed size of the uncompressed form is the best protection against a compressed file
        // that expands without end
        let plain = self.release.files.get(path).map(|file| file.size);
        let carried = self
            .preferred(path)
            .filter(|carried| carried.path != index.path);
        let mut listed = vec![ListedIndex {
            index,
            read: Some((compression, plain.unwrap_or(limit).min(limit))),
            others,
        }];
        listed.extend(carried.map(ListedIndex::unread));
        listed
    }
}

/// Selects the indexes that apt downloads and those that landfall reads.
pub(super) fn indexes(
    requested: &PackageSourceRequest,
    folder: &str,
    architectures: &[String],
    release: &AptRelease,
    limit: u64,
) -> Result<Vec<ListedIndex>, ResolveError> {
    let indexes = ReleaseIndexes {
        url: &requested.url,
        folder,
        release,
    };
    if requested.suite.ends_with('/') {
        let packages = indexes.packages("Packages", limit);
        if packages.is_empty() {
            return Err("its release names no Packages".into());
        }
        return Ok(packages);
    }
    let all_packages = |component: &str| {
        if release.has_index_of_all {
            indexes.packages(&format!("{component}/binary-all/Packages"), limit)
        } else {
            Vec::new()
        }
    };
    let mut all = Vec::new();
    for component in &requested.components {
        for arch in architectures {
            let packages = indexes.packages(&format!("{component}/binary-{arch}/Packages"), limit);
            // like apt, accept a component that has only packages for all architectures
            if packages.is_empty() && all_packages(component).is_empty() {
                let (what, listed) = if release.components.contains(component) {
                    ("architectures", &release.architectures)
                } else {
                    ("components", &release.components)
                };
                return Err(format!(
                    "its release names no Packages of {component} for {arch}; it has the {what} {}",
                    listed.join(", ")
                )
                .into());
            }
            all.extend(packages);
        }
        // without a `binary-all` index, that of each architecture contains the packages of `all`
        all.extend(all_packages(component));
    }
    for component in &requested.components {
        let index = indexes.preferred(&format!("{component}/i18n/Translation-{LANGUAGE}"));
        all.extend(index.map(ListedIndex::unread));
    }
    // The indexes of targets are optional in a release, and landfall does not read them. For an
    // architecture that the release lacks, apt uses `all`.
    let with_all = release.architectures.iter().filter(|one| *one == "all");
    let architectures: Vec<String> = architectures.iter().chain(with_all).cloned().collect();
    for target in &requested.targets {
        let paths = target_paths(target, &requested.components, &architectures);
        let found = paths.iter().filter_map(|path| indexes.preferred(path));
        all.extend(found.map(ListedIndex::unread));
    }
    Ok(all)
}

/// Joins `folder`, which may be empty, and `path`.
pub(super) fn in_folder(folder: &str, path: &str) -> String {
    if folder.is_empty() {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}
