//! Updates the lists of other tools: a list with a `from` is replaced as a whole.

use super::outcome::VersionMove;
use super::state::{RejectedVersion, UpdateRun, added_items, failed, first_line};
use landfall_item::ResolveError;
use landfall_item::manifest::{FileOverrides, LoadManifestError, list_sources, text_of};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;

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
                        at: SourceLocation {
                            file: name.clone(),
                            line: 1,
                            column: 1,
                        },
                        name,
                        policy: "list".into(),
                        from: text_digest(&old),
                        to: Some(text_digest(&text)),
                        source: None,
                        items: items.collect(),
                        held: Vec::new(),
                    });
                    (self.outcome.edited, self.outcome.manifest) = (edited, manifest);
                }
            }
        }
        Ok(())
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

    /// Replaces the lists whose URLs contain a version that `edited` moved.
    pub(super) async fn follow_lists(
        &mut self,
        edited: &mut FileOverrides,
    ) -> Result<(), RejectedVersion> {
        if !self.has_lists {
            return Ok(());
        }
        // `fetch_list` keeps what it fetched, so only a URL that changed costs a request
        for source in list_sources(self.request.paths, edited)? {
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
                edited.insert(source.path, text);
            }
        }
        Ok(())
    }
}

fn text_digest(text: &str) -> String {
    Digest::sha256(text.as_bytes()).to_string()
}
