//! The git repositories by their hosts and paths.

use super::file_table::UrlPath;
use landfall_item::LockedGitRepository;
use landfall_model::Digest;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The end of a path that clients may add or leave out.
const ENDING: &str = ".git";

/// A git repository that is served.
pub(crate) struct ServedGitRepository {
    pub(crate) locked: LockedGitRepository,
    /// The digests of its large files.
    pub(crate) large_files: HashSet<Digest>,
}

/// The git repositories by `host/path`.
#[derive(Default)]
pub(crate) struct GitTable {
    repositories: BTreeMap<String, Arc<ServedGitRepository>>,
    /// The repositories whose large files are at another Git LFS server, by `host/path` of the
    /// server and by `host/path` of the repository. Several repositories may share a server.
    lfs_servers: BTreeMap<String, BTreeMap<String, Arc<ServedGitRepository>>>,
}

impl GitTable {
    /// Adds a repository. If it replaces a different one with the same host and path, a warning is
    /// added.
    pub(crate) fn add(&mut self, repository: &LockedGitRepository, warnings: &mut Vec<String>) {
        let Some(key) = key_of(repository.url()) else {
            return;
        };
        let large_files = repository.large_files.iter().flatten();
        let added = Arc::new(ServedGitRepository {
            locked: repository.clone(),
            large_files: large_files.map(|file| file.digest.clone()).collect(),
        });
        for server in repository
            .other_lfs_servers()
            .into_iter()
            .filter_map(key_of)
        {
            let sharing = self.lfs_servers.entry(server).or_default();
            sharing.insert(key.clone(), added.clone());
        }
        if let Some(before) = self.repositories.insert(key, added)
            && before.locked.digest != repository.digest
        {
            warnings.push(format!(
                "{}: serving {} instead of {}",
                repository.name, repository.digest, before.locked.digest
            ));
        }
    }

    /// The repository at `path`, which is `host/path` with or without `.git`. A lock may have both
    /// URLs as two repositories with other refs: the manifest lists one, and a submodule has the
    /// other. So the path as it is written takes precedence.
    pub(crate) fn find(&self, path: &str) -> Option<&Arc<ServedGitRepository>> {
        let path = path.trim_end_matches('/');
        self.repositories.get(path).or_else(|| {
            let other = match path.strip_suffix(ENDING) {
                Some(plain) => plain.to_owned(),
                None => format!("{path}{ENDING}"),
            };
            self.repositories.get(&other)
        })
    }

    /// The repositories that have large files at the Git LFS server `path`, which is its
    /// `host/path`: those that name it, and the one whose own server it is.
    pub(crate) fn with_lfs_server(&self, path: &str) -> Vec<Arc<ServedGitRepository>> {
        let sharing = self.lfs_servers.get(path.trim_end_matches('/'));
        let own = path
            .strip_suffix("/info/lfs")
            .and_then(|path| self.find(path));
        let sharing = sharing.into_iter().flat_map(BTreeMap::values);
        own.into_iter().chain(sharing).cloned().collect()
    }
}

/// `host/path` of a URL.
fn key_of(url: &str) -> Option<String> {
    let url = UrlPath::parse(url)?;
    Some(format!("{}{}", url.host, url.path.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_whose_urls_differ_only_in_the_ending_are_both_found() {
        let mut table = GitTable::default();
        let mut warnings = Vec::new();
        for url in [
            "https://h/a",
            "https://h/a.git",
            "https://h/b.git",
            "https://h/c",
        ] {
            table.add(&LockedGitRepository::without_refs(url), &mut warnings);
        }
        assert!(warnings.is_empty(), "{warnings:?}");
        let found = |path: &str| table.find(path).map(|found| found.locked.url().to_owned());
        for (path, url) in [
            ("h/a", "https://h/a"),
            ("h/a/", "https://h/a"),
            ("h/a.git", "https://h/a.git"),
            ("h/b", "https://h/b.git"),
            ("h/c.git", "https://h/c"),
        ] {
            assert_eq!(found(path).as_deref(), Some(url), "{path}");
        }
        assert_eq!(found("h/d"), None);
        table.add(
            &LockedGitRepository::without_refs("http://h/a"),
            &mut warnings,
        );
        assert_eq!(warnings.len(), 1);
    }
}
