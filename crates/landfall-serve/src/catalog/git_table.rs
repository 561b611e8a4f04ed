//! The git repositories by their hosts and paths.

use super::file_table::UrlPath;
use landfall_item::LockedGitRepository;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The git repositories by `host/path`, without `.git` at the end.
#[derive(Default)]
pub(crate) struct GitTable(BTreeMap<String, Arc<LockedGitRepository>>);

impl GitTable {
    /// Adds a repository. If it replaces a different one with the same host and path, a warning is
    /// added.
    pub(crate) fn add(&mut self, repository: &LockedGitRepository, warnings: &mut Vec<String>) {
        let Some(url) = UrlPath::parse(repository.url()) else {
            return;
        };
        let key = format!("{}{}", url.host, without_ending(&url.path));
        let added = Arc::new(repository.clone());
        if let Some(before) = self.0.insert(key, added)
            && before.digest != repository.digest
        {
            warnings.push(format!(
                "{}: serving {} instead of {}",
                repository.name, repository.digest, before.digest
            ));
        }
    }

    /// The repository at `path`, which is `host/path` with or without `.git`.
    pub(crate) fn find(&self, path: &str) -> Option<&Arc<LockedGitRepository>> {
        self.0.get(without_ending(path))
    }
}

/// The path of a repository without `.git`, which clients may add or leave out.
fn without_ending(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.strip_suffix(".git").unwrap_or(path)
}
