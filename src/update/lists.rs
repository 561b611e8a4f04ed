//! Lists of other tools: they move by being replaced.

use super::outcome::VersionMove;
use super::state::{RejectedVersion, UpdateRun, added_wishes, failed, first_line};
use landfall_item::ResolveError;
use landfall_item::manifest::{FileOverrides, LoadManifestError, list_sources, text_of};
use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;

impl UpdateRun<'_> {
    /// Replaces the lists that have another content at their source.
    pub(super) async fn replace_lists(&mut self) -> Result<(), LoadManifestError> {
        if !self.has_lists {
            return Ok(());
        }
        for source in list_sources(self.asked.paths, &self.updated.edited)? {
            let name = source.path.display().to_string();
            if !self.is_selected(&[&name, &source.url]) {
                continue;
            }
            let text = match self.list(&source.url).await {
                Ok(text) => text,
                Err(cause) => {
                    self.updated
                        .failed
                        .push(failed(EntryKind::File, source.url, &cause));
                    continue;
                }
            };
            let old = text_of(&source.path, &self.updated.edited)?;
            if old == text {
                continue;
            }
            let mut edited = self.updated.edited.clone();
            edited.insert(source.path, text.clone());
            match self.load(&edited) {
                Err(error) => {
                    let cause = ResolveError::from(format!(
                        "the new list cannot be used: {}",
                        first_line(&error)
                    ));
                    self.updated
                        .failed
                        .push(failed(EntryKind::File, source.url, &cause));
                }
                Ok(wanted) => {
                    let items = added_wishes(&self.updated.wanted, &wanted)
                        .into_iter()
                        .map(|wish| wish.name);
                    let digest = |text: &str| Digest::sha256(text.as_bytes()).to_string();
                    self.updated.moves.push(VersionMove {
                        at: SourceLocation {
                            file: name.clone(),
                            line: 1,
                            column: 1,
                        },
                        name,
                        policy: "list".into(),
                        from: digest(&old),
                        to: Some(digest(&text)),
                        source: None,
                        items: items.collect(),
                        held: Vec::new(),
                    });
                    (self.updated.edited, self.updated.wanted) = (edited, wanted);
                }
            }
        }
        Ok(())
    }

    /// The list at `url`.
    async fn list(&mut self, url: &str) -> Result<String, ResolveError> {
        if let Some(known) = self.lists.get(url) {
            return known.clone();
        }
        let resolver = self.asker.resolver;
        let fetched = match resolver
            .small_file(url, resolver.limits().document_bytes, None)
            .await
        {
            Ok(bytes) => String::from_utf8(bytes.to_vec())
                .map_err(|_| ResolveError::from("the list is no UTF-8 text")),
            Err(error) => Err(error.into()),
        };
        self.lists.insert(url.to_owned(), fetched.clone());
        fetched
    }

    /// Puts the lists in place whose URLs have a variable that moved.
    pub(super) async fn follow_lists(
        &mut self,
        edited: &mut FileOverrides,
    ) -> Result<(), RejectedVersion> {
        if !self.has_lists {
            return Ok(());
        }
        let told = |error: LoadManifestError| RejectedVersion::Held(first_line(&error));
        for source in list_sources(self.asked.paths, edited).map_err(told)? {
            let text = self.list(&source.url).await.map_err(|cause| {
                if cause.is_gone {
                    RejectedVersion::Held(format!("upstream does not have the list {}", source.url))
                } else {
                    RejectedVersion::Unasked(failed(EntryKind::File, &source.url, &cause))
                }
            })?;
            if text_of(&source.path, edited).map_err(told)? != text {
                edited.insert(source.path, text);
            }
        }
        Ok(())
    }
}
