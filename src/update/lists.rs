//! Replaces what has no version: lists of other tools with a `from`, and trust roots of signature
//! rules. Also finds newer versions of pinned packages in the sources of their machine.

use super::first_sights::SightKey;
use super::version_ages::waiting_age;
use super::versions::{VersionCandidate, VersionCandidates};
use super::{
    RejectedVersion, UpdateRun, VersionMove, WaitingVersion, added_items, failed, first_line,
};
use landfall_content::registry::RegistrySessions;
use landfall_content::upstream::{expect_file, get_current_file};
use landfall_http::{BodyFailure, HttpError};
use landfall_item::manifest::{
    FileOverrides, ListSource, LoadManifestError, TrustRootSource, UpdatableVersion, list_sources,
    text_of, trust_root_sources,
};
use landfall_item::{
    OfferedVersion, PackageVersions, PinnedPackage, ResolveError, VersionSource, newer_packages,
};
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;
use landfall_model::{Digest, PackageVersion};
use landfall_signature::{NewestTrustRoot, TufError, TufFetch, TufRepository, newest_trust_root};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl UpdateRun<'_> {
    /// Replaces each list whose source has other content. A new list that makes the manifests
    /// invalid is rejected.
    pub(super) async fn replace_lists(&mut self) -> Result<(), LoadManifestError> {
        if !self.has_lists {
            return Ok(());
        }
        for source in list_sources(self.request.paths, &self.outcome.edited)? {
            let name = source.path.display().to_string();
            if !self.is_selected(&[&name, &source.url]) {
                continue;
            }
            let text = match self.fetch_list(&source.url).await {
                Ok(text) => text,
                Err(cause) => {
                    self.outcome
                        .failed
                        .push(failed(EntryKind::File, source.url, &cause));
                    continue;
                }
            };
            let old = text_of(&source.path, &self.outcome.edited)?;
            if old == text {
                continue;
            }
            if let Some(waiting) = self.list_wait(&source, &name, &text) {
                self.outcome.moves.push(VersionMove {
                    waiting: vec![waiting],
                    ..unmoved_file(name, "list", &old)
                });
                continue;
            }
            // The manifests are loaded with the new list before it is accepted, so a list that
            // cannot be parsed, or contradicts a manifest, does not replace the old one.
            let mut edited = self.outcome.edited.clone();
            edited.insert(source.path, text.clone());
            match self.load(&edited) {
                Err(error) => {
                    let cause = ResolveError::from(format!(
                        "the new list cannot be used: {}",
                        first_line(&error)
                    ));
                    self.outcome
                        .failed
                        .push(failed(EntryKind::File, source.url, &cause));
                }
                Ok(manifest) => {
                    let items = added_items(&self.outcome.manifest, &manifest)
                        .into_iter()
                        .map(|item| item.name);
                    self.outcome.moves.push(VersionMove {
                        to: Some(text_digest(&text)),
                        items: items.collect(),
                        ..unmoved_file(name, "list", &old)
                    });
                    (self.outcome.edited, self.outcome.manifest) = (edited, manifest);
                }
            }
        }
        Ok(())
    }

    /// Returns the wait of the new content of a list, if it is not old enough.
    fn list_wait(&mut self, source: &ListSource, name: &str, text: &str) -> Option<WaitingVersion> {
        let min_age = waiting_age(source.min_age.as_ref())?;
        let digest = text_digest(text);
        let key = SightKey::new(&source.url, &digest);
        let wait = self.wait_unless_urgent(key, name, &digest, min_age)?;
        Some(WaitingVersion::new(&digest, wait))
    }

    /// Fetches the list at `url`, once per run.
    async fn fetch_list(&mut self, url: &str) -> Result<String, ResolveError> {
        if let Some(known) = self.lists.get(url) {
            return known.clone();
        }
        let fetched = match self.lookups.resolver.document(url).await {
            Ok(bytes) => String::from_utf8(bytes.to_vec())
                .map_err(|_| ResolveError::from("the list is not UTF-8 text")),
            Err(error) => Err(error.into()),
        };
        self.lists.insert(url.to_owned(), fetched.clone());
        fetched
    }

    /// Replaces the lists whose URLs contain a version that `edited` moved. Returns their URLs and
    /// the digests of their new contents. All other lists are left to
    /// [`replace_lists`](Self::replace_lists).
    pub(super) async fn follow_lists(
        &mut self,
        edited: &mut FileOverrides,
    ) -> Result<Vec<(String, Digest)>, RejectedVersion> {
        let mut replaced = Vec::new();
        if !self.has_lists {
            return Ok(replaced);
        }
        let before: HashSet<(PathBuf, String)> =
            list_sources(self.request.paths, &self.outcome.edited)?
                .into_iter()
                .map(|source| (source.path, source.url))
                .collect();
        // lists whose URL is unchanged are skipped; `fetch_list` fetches each URL once in a run
        for source in list_sources(self.request.paths, edited)? {
            if before.contains(&(source.path.clone(), source.url.clone())) {
                continue;
            }
            let text = self.fetch_list(&source.url).await.map_err(|cause| {
                if cause.is_gone {
                    RejectedVersion::Unusable(format!(
                        "upstream does not have the list {}",
                        source.url
                    ))
                } else {
                    RejectedVersion::LookUpFailed(failed(EntryKind::File, &source.url, &cause))
                }
            })?;
            if text_of(&source.path, edited)? != text {
                replaced.push((source.url, Digest::sha256(text.as_bytes())));
                edited.insert(source.path, text);
            }
        }
        Ok(replaced)
    }
}

/// The report of a list, trust root or TUF root that has the content `old` and is not replaced.
fn unmoved_file(name: String, policy: &str, old: &str) -> VersionMove {
    VersionMove {
        at: SourceLocation {
            file: name.clone(),
            line: 1,
            column: 1,
        },
        name,
        policy: policy.into(),
        from: text_digest(old),
        to: None,
        source: None,
        items: Vec::new(),
        held: Vec::new(),
        waiting: Vec::new(),
    }
}

fn text_digest(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_string()
}

// Updates the trust roots of signature rules from TUF repositories.

impl UpdateRun<'_> {
    /// Replaces each trust root if its TUF repository has a newer one.
    pub(super) async fn replace_trust_roots(&mut self) -> Result<(), LoadManifestError> {
        for source in trust_root_sources(self.request.paths, &self.outcome.edited)? {
            let name = source.path.display().to_string();
            if !self.is_selected(&[&name, &source.url]) {
                continue;
            }
            let old = text_of(&source.path, &self.outcome.edited)?;
            let tuf_root = text_of(&source.tuf_root, &self.outcome.edited)?;
            let newest = match self.fetch_trust_root(&source, &tuf_root).await {
                Ok(newest) => newest,
                Err(cause) => {
                    let failed = failed(EntryKind::File, source.url, &cause);
                    self.outcome.failed.push(failed);
                    continue;
                }
            };
            self.replace(&source.path, &old, newest.trusted_root);
            self.replace(&source.tuf_root, &tuf_root, newest.tuf_root);
        }
        Ok(())
    }

    async fn fetch_trust_root(
        &self,
        source: &TrustRootSource,
        tuf_root: &str,
    ) -> Result<NewestTrustRoot, ResolveError> {
        let repository = HttpTufRepository {
            sessions: self.lookups.resolver.sessions.clone(),
            url: source.url.clone(),
        };
        let newest = newest_trust_root(repository, tuf_root, jiff::Timestamp::now()).await;
        newest.map_err(|why| ResolveError::from(format!("no newer trust root: {why}")))
    }

    /// Edits the file at `path` from `old` to `new`, and reports the move, unless both are equal.
    fn replace(&mut self, path: &Path, old: &str, new: String) {
        if old == new {
            return;
        }
        self.outcome.moves.push(VersionMove {
            to: Some(text_digest(&new)),
            ..unmoved_file(path.display().to_string(), "tuf", old)
        });
        self.outcome.edited.insert(path.to_owned(), new);
    }
}

/// A TUF repository on a web server.
struct HttpTufRepository {
    sessions: Arc<RegistrySessions>,
    url: String,
}

impl HttpTufRepository {
    async fn fetch(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, TufError> {
        let url = format!("{}/{path}", self.url);
        let most = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let file = async || {
            let response = get_current_file(&self.sessions, &url).await?;
            let bytes = expect_file(response, &url).await?.bytes(most).await;
            bytes.map_err(BodyFailure::<HttpError>::reading)
        };
        let retries = self.sessions.transport().retry_policy();
        match retries.read_body(file).await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            // some object stores answer 403 for missing files
            Err(error) if error.may_be_missing() => Ok(None),
            Err(error) => Err(TufError::transport(error.to_string())),
        }
    }
}

impl TufRepository for HttpTufRepository {
    fn fetch_metadata<'a>(&'a self, name: &'a str, max_length: u64) -> TufFetch<'a> {
        Box::pin(self.fetch(name, max_length))
    }

    fn fetch_target<'a>(&'a self, path: &'a str, max_length: u64) -> TufFetch<'a> {
        Box::pin(async move { self.fetch(&format!("targets/{path}"), max_length).await })
    }
}

// Finds newer versions of pinned packages in the sources of their machine.

impl UpdateRun<'_> {
    /// The versions to which the slots of packages may move, by the positions of the slots in
    /// `slots`.
    pub(super) async fn find_packages(
        &self,
        slots: &[UpdatableVersion],
    ) -> BTreeMap<usize, VersionCandidates> {
        let mut candidates = BTreeMap::new();
        let numbered: Vec<(usize, &UpdatableVersion)> = slots.iter().enumerate().collect();
        // All slots of one entry belong to one machine, so its indexes are searched once for all.
        for entry in numbered.chunk_by(|(_, one), (_, other)| one.is_beside(other)) {
            let package_slots: Vec<(usize, &UpdatableVersion, &PackageVersions)> =
                entry.iter().filter_map(as_package_slot).collect();
            let Some((.., first)) = package_slots.first() else {
                continue;
            };
            let pins: BTreeSet<PinnedPackage> = package_slots
                .iter()
                .map(|(_, slot, versions)| pin(slot, versions))
                .collect();
            let found = newer_packages(self.lookups.resolver, &first.machine, pins).await;
            for (at, slot, versions) in package_slots {
                let newer = found.clone().and_then(|mut found| {
                    let newer = found
                        .remove(&pin(slot, versions))
                        .unwrap_or_else(|| Ok(Vec::new()));
                    newer
                        .and_then(|newer| allowed(slot, versions, newer))
                        .map_err(ResolveError::from)
                });
                candidates.insert(at, newer);
            }
        }
        candidates
    }
}

/// The slot with its sources, if the slot is the version of a package.
fn as_package_slot<'s>(
    (at, slot): &(usize, &'s UpdatableVersion),
) -> Option<(usize, &'s UpdatableVersion, &'s PackageVersions)> {
    match &slot.versions {
        Ok(VersionSource::Packages(versions)) => Some((*at, *slot, &**versions)),
        _ => None,
    }
}

/// The whole package version. The slot may be only a part of it, such as the variable in
/// `kubelet=${kubernetes}-1.1`.
fn current(slot: &UpdatableVersion, versions: &PackageVersions) -> String {
    [&*versions.before, &*slot.current, &*versions.after].concat()
}

fn pin(slot: &UpdatableVersion, versions: &PackageVersions) -> PinnedPackage {
    PinnedPackage {
        name: versions.package.clone(),
        version: current(slot, versions),
    }
}

/// The versions in `offered` that the policy allows and that keep the text around the slot.
fn allowed(
    slot: &UpdatableVersion,
    versions: &PackageVersions,
    offered: Vec<OfferedVersion>,
) -> Result<Vec<VersionCandidate>, String> {
    let whole = current(slot, versions);
    let current = PackageVersion {
        full: &whole,
        upstream: versions.machine.upstream_version(&whole),
    };
    let allowed = slot
        .policy
        .allowed_packages(current, offered, |one| PackageVersion {
            full: &one.version,
            upstream: versions.machine.upstream_version(&one.version),
        });
    // Only the slot can be edited: with another revision, `kubelet=${kubernetes}-1.1` would name a
    // version that no source offers.
    let candidates = allowed
        .map_err(|error| error.to_string())?
        .into_iter()
        .filter_map(|one| {
            let version = one
                .version
                .strip_prefix(&*versions.before)?
                .strip_suffix(&*versions.after)?
                .to_owned();
            Some(VersionCandidate {
                version,
                source: Some(one.source),
            })
        });
    Ok(candidates.collect())
}
