//! The submodules of the locked refs of a repository, as repositories with commits.

use super::locked::{LockedGitRef, LockedGitSubmodule};
use super::repository_url::normal_url;
use super::request::GitRequest;
use landfall_git::{GitError, ObjectDatabase, ObjectId, PinnedSubmodule, pinned_submodules};
use landfall_model::redact_urls;
use landfall_model::report::one_line;
use std::collections::BTreeSet;

/// The reason why the submodules of a repository cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum SubmoduleError {
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] GitError),
    /// Landfall cannot fetch a repository from the URL.
    #[error("its submodule {path} has the URL '{url}': {why}")]
    Url {
        /// The folder of the submodule.
        path: String,
        /// The URL as it is written.
        url: String,
        /// The reason.
        why: String,
    },
}

impl SubmoduleError {
    /// The error for the submodule at `path` whose URL is `written`. The message does not repeat a
    /// password in the URL.
    fn of_url(path: &str, written: &str, why: String) -> SubmoduleError {
        SubmoduleError::Url {
            path: one_line(path),
            url: redact_urls(&one_line(written)),
            why,
        }
    }
}

/// The submodules of `refs` of the repository at `url`, sorted.
pub(super) fn locked_submodules(
    database: &ObjectDatabase,
    url: &str,
    refs: &[LockedGitRef],
) -> Result<Vec<LockedGitSubmodule>, SubmoduleError> {
    let tips: Vec<ObjectId> = refs.iter().map(|one| one.id).collect();
    let mut found = BTreeSet::new();
    for PinnedSubmodule {
        path,
        url: written,
        commit,
    } in pinned_submodules(database, &tips)?
    {
        let url = submodule_url(url, &written)
            .map_err(|why| SubmoduleError::of_url(&path, &written, why))?;
        let name = format!("{}{url}", GitRequest::PREFIX);
        found.insert(LockedGitSubmodule { name, commit });
    }
    Ok(found.into_iter().collect())
}

/// The absolute form of the submodule URL `written`, which is in the repository at `url`. A
/// relative URL is resolved as if the repository were a folder (gitmodules,
/// `submodule.<name>.url`).
fn submodule_url(url: &str, written: &str) -> Result<String, String> {
    if !written.starts_with("./") && !written.starts_with("../") {
        return normal_url(written);
    }
    let mut base = url.trim_end_matches('/');
    let mut rest = written;
    loop {
        if let Some(above) = rest.strip_prefix("../") {
            let (parent, _) = base.rsplit_once('/').unwrap_or_default();
            // `https://host` has two slashes
            if parent.matches('/').count() < 2 {
                return Err("it leads out of the server".into());
            }
            (base, rest) = (parent, above);
        } else if let Some(same) = rest.strip_prefix("./") {
            rest = same;
        } else {
            return normal_url(&format!("{base}/{rest}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_repeat_passwords() {
        let written = "https://u:token@h.example/a";
        let why = submodule_url("https://h.example/x", written).unwrap_err();
        let error = SubmoduleError::of_url("libs/a", written, why).to_string();
        assert!(
            error.contains("h.example/a") && !error.contains("token"),
            "{error}"
        );
    }

    #[test]
    fn relative_urls_begin_at_the_repository() {
        let url = "https://h.example/team/platform.git";
        for (written, expected) in [
            ("../modules.git", "https://h.example/team/modules.git"),
            ("../../other/./x", "https://h.example/other/x"),
            (
                "./inner.git",
                "https://h.example/team/platform.git/inner.git",
            ),
            ("http://o.example/a.git/", "http://o.example/a.git"),
        ] {
            assert_eq!(
                submodule_url(url, written).as_deref(),
                Ok(expected),
                "{written}"
            );
        }
        for written in [
            "../../../x",
            "git@h:a/b",
            "ssh://h/a",
            "/srv/a",
            "https://u:p@h/a",
            "https://h//",
            "../a?b",
        ] {
            assert!(submodule_url(url, written).is_err(), "{written}");
        }
    }
}
