//! The large files (Git LFS) of the locked refs of a repository, and the servers that have them.

use super::locked::{LockedGitRef, LockedGitSubmodule, LockedLargeFile, lfs_url, normal_url};
use super::pack_writing::GitFault;
use super::request::GitRequest;
use crate::resolver::ResolveError;
use landfall_content::LfsServer;
use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::offered_large_files;
use landfall_git::{
    GitError, LfsConfig, ObjectDatabase, ObjectId, ObjectIndex, PinnedSubmodule, RootFile,
    RootFiles, large_files, pinned_submodules,
};
use landfall_model::report::one_line;
use landfall_model::{Descriptor, Digest, Failure, Limits, redact_urls};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The large files in the trees of `tips`, sorted. Empty files are omitted.
pub(super) fn locked_large_files(
    database: &ObjectDatabase,
    tips: &[ObjectId],
    limits: &Limits,
) -> Result<Vec<LockedLargeFile>, GitError> {
    let found = large_files(database, tips, limits.git_large_files)?;
    let found = found.into_iter().filter(|file| file.size > 0);
    Ok(found.map(LockedLargeFile::from).collect())
}

/// The large files of the refs whose `.lfsconfig` names the same server.
pub(super) struct LargeFilesOfServer {
    /// The server. Otherwise, why files cannot be fetched from it.
    pub(super) server: Result<LfsServer, String>,
    pub(super) files: Vec<LockedLargeFile>,
}

/// The large files in the trees of `refs`, by server: those of the ref `head` first, then in the
/// order of the refs. A file has several servers if the `.lfsconfig` files of its refs differ.
pub(super) fn large_files_by_server(
    database: &ObjectDatabase,
    request: &GitRequest,
    head: Option<&str>,
    refs: &[LockedGitRef],
    limits: &Limits,
) -> Result<Vec<LargeFilesOfServer>, GitError> {
    let is_head = |one: &&LockedGitRef| head == Some(one.name.as_str());
    let in_order = refs.iter().filter(is_head);
    let in_order = in_order.chain(refs.iter().filter(|one| !is_head(one)));
    let mut servers: Vec<(Result<LfsServer, String>, Vec<ObjectId>)> = Vec::new();
    let mut configs = RootFiles::lfs_config(database);
    // many refs may have the same file, which is read once
    let mut by_file: HashMap<Option<ObjectIndex>, usize> = HashMap::new();
    for one in in_order {
        let config = match request.lfs_server {
            Some(_) => None,
            None => configs.find(one.id)?,
        };
        let at = match by_file.entry(config.map(|config| config.file)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(entry) => {
                let server = server_of_file(request, &mut configs, config, one)?;
                let at = servers.iter().position(|(known, _)| *known == server);
                let at = at.unwrap_or_else(|| {
                    servers.push((server, Vec::new()));
                    servers.len() - 1
                });
                *entry.insert(at)
            }
        };
        servers[at].1.push(one.id);
        // each server costs a walk through the folders of its refs
        let what = "the .lfsconfig files of the refs name more servers";
        GitError::check_limit(what, servers.len() as u64, limits.git_lfs_servers as u64)?;
    }
    let mut all = Vec::new();
    for (server, tips) in servers {
        let files = locked_large_files(database, &tips, limits)?;
        all.push(LargeFilesOfServer { server, files });
    }
    let files = all.iter().flat_map(|one| &one.files);
    let digests: BTreeSet<&Digest> = files.map(|file| &file.digest).collect();
    let (count, limit) = (digests.len() as u64, limits.git_large_files as u64);
    GitError::check_limit("the repository has more large files", count, limit)?;
    Ok(all)
}

/// The server that a clone of the ref `one` uses, whose tree has the `.lfsconfig` `config`.
fn server_of_file(
    request: &GitRequest,
    configs: &mut RootFiles<'_>,
    config: Option<RootFile>,
    one: &LockedGitRef,
) -> Result<Result<LfsServer, String>, GitError> {
    if let Some(url) = &request.lfs_server {
        return Ok(Ok(LfsServer {
            url: url.clone(),
            named_by: None,
        }));
    }
    let Some(config) = config else {
        return Ok(Ok(LfsServer::of_repository(&request.url)));
    };
    // like git-lfs, a repository without large files does not need a valid `.lfsconfig`
    match configs.parse_lfs_config(config) {
        Ok(config) => {
            let server = server_of(&request.url, config);
            Ok(server.map_err(|why| format!(".lfsconfig of {}: {why}", one.name)))
        }
        Err(error @ (GitError::InvalidObject { .. } | GitError::TooLarge { .. })) => {
            Ok(Err(format!(".lfsconfig of {}: {error}", one.name)))
        }
        Err(error) => Err(error),
    }
}

/// The server that the `.lfsconfig` of the repository at `url` names, as git-lfs reads it.
fn server_of(url: &str, config: LfsConfig) -> Result<LfsServer, String> {
    let of_repository = LfsServer::of_repository(url);
    let Some(written) = config.url else {
        return Ok(of_repository);
    };
    let address = match written.strip_prefix("git://") {
        Some(rest) => {
            let scheme = config.git_protocol.as_deref().unwrap_or("https");
            format!("{scheme}://{rest}")
        }
        None => written.clone(),
    };
    let found = lfs_url(&address).map_err(|why| {
        let written = redact_urls(&one_line(&written));
        format!(
            "its Git LFS server is '{written}': {why}; if the server can be reached by https, \
             set `lfs: https://…` in the manifest"
        )
    })?;
    if found == of_repository.url {
        return Ok(of_repository);
    }
    Ok(LfsServer {
        url: found,
        named_by: Some(url.to_owned()),
    })
}

/// Finds a server for each large file: the first one that has it, in the order of `wanted`. Returns
/// the files, sorted.
pub(super) async fn find_large_files(
    sessions: &RegistrySessions,
    wanted: Vec<LargeFilesOfServer>,
) -> Result<Vec<LockedLargeFile>, ResolveError> {
    let mut found: BTreeMap<Digest, LockedLargeFile> = BTreeMap::new();
    let mut missing: BTreeMap<Digest, ResolveError> = BTreeMap::new();
    for LargeFilesOfServer { server, files } in wanted {
        let open = files.into_iter();
        let open: Vec<_> = open
            .filter(|file| !found.contains_key(&file.digest))
            .collect();
        if open.is_empty() {
            continue;
        }
        let (offered, error, url) = match server {
            Ok(server) => {
                let files: Vec<Descriptor> = open.iter().map(LockedLargeFile::descriptor).collect();
                let (offered, error) = offered_large_files(sessions, &server, &files).await;
                let url = server.named_by.is_some().then_some(server.url);
                (offered, error.map(ResolveError::from), url)
            }
            Err(why) => (BTreeSet::new(), Some(why.into()), None),
        };
        for file in open {
            if offered.contains(&file.digest) {
                missing.remove(&file.digest);
                let server = url.clone();
                found.insert(file.digest.clone(), LockedLargeFile { server, ..file });
            } else if let Some(error) = &error {
                missing.entry(file.digest).or_insert_with(|| error.clone());
            }
        }
    }
    match missing.into_values().next() {
        Some(error) => Err(error),
        None => Ok(found.into_values().collect()),
    }
}

// The submodules of the locked refs of a repository, as repositories with commits.

/// The failure of the submodule at `path` whose URL is `written`: landfall cannot fetch a
/// repository from there. The message does not repeat a password in the URL.
fn bad_url(path: &str, written: &str, why: &str) -> Failure {
    let path = one_line(path);
    let url = redact_urls(&one_line(written));
    Failure::failed(format!("its submodule {path} has the URL '{url}': {why}"))
}

/// The submodules of `refs` of the repository at `url`, sorted.
pub(super) fn locked_submodules(
    database: &ObjectDatabase,
    url: &str,
    refs: &[LockedGitRef],
) -> Result<Vec<LockedGitSubmodule>, GitFault> {
    let tips: Vec<ObjectId> = refs.iter().map(|one| one.id).collect();
    let mut found = BTreeSet::new();
    for PinnedSubmodule {
        path,
        url: written,
        commit,
    } in pinned_submodules(database, &tips)?
    {
        let url = submodule_url(url, &written).map_err(|why| bad_url(&path, &written, &why))?;
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

    fn server(url: &str, protocol: Option<&str>) -> Result<LfsServer, String> {
        let config = LfsConfig {
            url: Some(url.to_owned()),
            git_protocol: protocol.map(str::to_owned),
        };
        server_of("https://git.example/team/media.git", config)
    }

    #[test]
    fn the_server_is_the_one_that_git_lfs_uses() {
        let named = |url: &str| {
            Ok(LfsServer {
                url: url.to_owned(),
                named_by: Some("https://git.example/team/media.git".into()),
            })
        };
        for (written, protocol, expected) in [
            ("https://LFS.example/a/", None, "https://LFS.example/a"),
            (
                "http://lfs.example:8080/a",
                None,
                "http://lfs.example:8080/a",
            ),
            ("https://u:p@lfs.example/a", None, "https://lfs.example/a"),
            ("git://lfs.example/a", None, "https://lfs.example/a"),
            ("git://lfs.example/a", Some("http"), "http://lfs.example/a"),
        ] {
            assert_eq!(server(written, protocol), named(expected), "{written}");
        }
        let own = "https://git.example/team/media.git/info/lfs";
        assert_eq!(server(own, None).unwrap().named_by, None);
        let config = LfsConfig::default();
        let default = server_of("https://git.example/team/media", config).unwrap();
        assert_eq!(default.url, own);
        for (written, why) in [
            ("ssh://git@git.example/team/media", "not over ssh"),
            ("git@git.example:team/media", "not over ssh"),
            ("../media.git/info/lfs", "not an http or https URL"),
            ("file:///srv/lfs", "not an http or https URL"),
            ("", "not an http or https URL"),
            ("https://h/a?token=secret", "no query"),
        ] {
            let error = server(written, None).unwrap_err();
            assert!(
                error.contains(why) && error.contains("`lfs: https"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn errors_do_not_repeat_passwords() {
        let written = "https://u:token@h.example/a";
        let why = submodule_url("https://h.example/x", written).unwrap_err();
        let error = bad_url("libs/a", written, &why).to_string();
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
