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
    /// Other compressed forms, which are used if the server lacks `index`, with their compression
    /// if landfall can read it.
    pub(super) others: Vec<(PackageIndex, Option<Compression>)>,
    /// Whether apt works without the index if the server lacks all of its forms.
    pub(super) is_optional: bool,
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

    /// The forms of the index `path`, in the order in which apt tries them.
    fn forms(&self, path: &str) -> impl Iterator<Item = PackageIndex> {
        APTS_ORDER
            .iter()
            .filter_map(move |ending| self.find(path, ending))
    }

    /// The index `path`, which is carried without being read, in the form that apt downloads.
    fn unread(&self, path: &str) -> Option<ListedIndex> {
        let mut forms = self.forms(path);
        Some(ListedIndex {
            index: forms.next()?,
            read: None,
            others: forms.map(|other| (other, None)).collect(),
            // apt requests only indexes whose uncompressed form the release names
            is_optional: !self.release.files.contains_key(path),
        })
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
        let others = forms
            .map(|(index, compression)| (index, Some(compression)))
            .collect();
        // the signed size of the uncompressed form is the best protection against a compressed file
        // that expands without end
        let plain = self.release.files.get(path).map(|file| file.size);
        let carried = self
            .forms(path)
            .next()
            .filter(|carried| carried.path != index.path);
        let mut listed = vec![ListedIndex {
            index,
            read: Some((compression, plain.unwrap_or(limit).min(limit))),
            others,
            is_optional: false,
        }];
        listed.extend(carried.map(|index| ListedIndex {
            index,
            read: None,
            others: Vec::new(),
            // apt then downloads the form that landfall reads
            is_optional: true,
        }));
        listed
    }

    /// The error for a suite without the index `path` in a form that landfall can read.
    fn missing(&self, path: &str, what: &str) -> ResolveError {
        if let Some(odd) = self.release.odd_line(path) {
            return format!("{what}: {odd}").into();
        }
        match self.forms(path).next() {
            Some(form) => format!(
                "{what} that landfall can read: it has {}, and landfall reads xz, zst, gz, \
                 bz2, lzma and uncompressed indexes",
                form.path
            )
            .into(),
            None => what.into(),
        }
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
            return Err(indexes.missing("Packages", "its release names no Packages"));
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
                let why = format!(
                    "its release names no Packages of {component} for {arch}; it has the {what} {}",
                    listed.join(", ")
                );
                let path = format!("{component}/binary-{arch}/Packages");
                return Err(indexes.missing(&path, &why));
            }
            all.extend(packages);
        }
        // without a `binary-all` index, that of each architecture contains the packages of `all`
        all.extend(all_packages(component));
    }
    for component in &requested.components {
        all.extend(indexes.unread(&format!("{component}/i18n/Translation-{LANGUAGE}")));
    }
    // The indexes of targets are optional in a release, and landfall does not read them. For an
    // architecture that the release lacks, apt uses `all`.
    let with_all = release.architectures.iter().filter(|one| *one == "all");
    let architectures: Vec<String> = architectures.iter().chain(with_all).cloned().collect();
    for target in &requested.targets {
        let paths = target_paths(target, &requested.components, &architectures);
        all.extend(paths.iter().filter_map(|path| indexes.unread(path)));
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
