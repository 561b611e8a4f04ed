//! Updates the lists of other tools: a list with a `from` is replaced as a whole.

use super::first_sights::SightKey;
use super::outcome::{VersionMove, WaitingVersion};
use super::state::{RejectedVersion, UpdateRun, added_items, failed, first_line};
use landfall_item::ResolveError;
use landfall_item::manifest::{
    FileOverrides, ListSource, LoadManifestError, list_sources, text_of,
};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;
use std::collections::HashSet;
use std::path::PathBuf;

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
                    ..unmoved_list(name, &old)
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
                        ..unmoved_list(name, &old)
                    });
                    (self.outcome.edited, self.outcome.manifest) = (edited, manifest);
                }
            }
        }
        Ok(())
    }

    /// Returns the wait of the new content of a list, if it is not old enough.
    fn list_wait(&mut self, source: &ListSource, name: &str, text: &str) -> Option<WaitingVersion> {
        let min_age = source.min_age.as_ref().filter(|age| !age.is_zero())?;
        let digest = text_digest(text);
        let clock = self.clock();
        let key = SightKey::new(&source.url, &digest);
        let wait = self.ages.wait(key, min_age, clock);
        // called even if nothing waits, because `is_urgent` marks the urgent digest as used
        if self.ages.is_urgent(name, &digest) {
            return None;
        }
        wait.map(|wait| WaitingVersion::new(&digest, wait))
    }

    /// Fetches the list at `url`, once per run.
    async fn fetch_list(&mut self, url: &str) -> Result<String, ResolveError> {
        if let Some(known) = self.lists.get(url) {
            return known.clone();
        }
        let resolver = self.lookups.resolver;
        let fetched = match resolver
            .small_file(url, resolver.limits().document_bytes, None)
            .await
        {
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

/// The report of a list that has the content `old` and is not replaced.
fn unmoved_list(name: String, old: &str) -> VersionMove {
    VersionMove {
        at: SourceLocation {
            file: name.clone(),
            line: 1,
            column: 1,
        },
        name,
        policy: "list".into(),
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
