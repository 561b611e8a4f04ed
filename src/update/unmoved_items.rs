//! Looks up the items whose versions did not move, and reports tags that moved and items that are
//! gone.

use super::first_sights::SightKey;
use super::lookups::{RequestedItem, requested_items};
use super::version_ages::{AgeWait, waiting_age};
use super::{RejectedVersion, UpdateRun, UpstreamNotice, failed, update_checksum};
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{LoadManifestError, MergedManifest};
use landfall_item::{ResolveError, UpstreamStatus};
use landfall_model::report::{EntryKind, Notice};
use landfall_model::{Digest, ImageRef};
use std::collections::{BTreeMap, BTreeSet};

impl UpdateRun<'_> {
    /// Looks up every item that did not move.
    pub(super) async fn look_up_unmoved_items(&mut self) -> Result<(), LoadManifestError> {
        let manifest = self.outcome.manifest.clone();
        let accepted: BTreeSet<(EntryKind, &str)> = manifest
            .missing
            .iter()
            .map(|lost| (lost.kind, lost.name.as_str()))
            .collect();
        let mut unmoved = requested_items(&manifest);
        unmoved.retain(|item| {
            let without_tag = item
                .tagged
                .as_ref()
                .map_or_else(|| item.name.clone(), ImageRef::name);
            self.is_selected(&[&item.name, &without_tag])
                && !accepted.contains(&(item.kind, item.name.as_str()))
                // an item that was looked up already is new, or uses a version that moved
                && self.lookups.result(item).is_none()
        });
        let names = unmoved
            .iter()
            .filter(|item| self.status_in_tag_list(item).is_none())
            .map(|item| (item.kind, item.name.clone()))
            .collect();
        self.lookups.look_up(&manifest, &names).await;
        let locked = self.request.old.map(locked_content).unwrap_or_default();
        for item in unmoved {
            let status = match (self.lookups.result(&item), self.status_in_tag_list(&item)) {
                (Some(Ok(status)), _) => status.clone(),
                (Some(Err(cause)), _) => {
                    self.outcome
                        .failed
                        .push(failed(item.kind, &item.name, cause));
                    continue;
                }
                (None, Some(status)) => status,
                (None, None) => continue,
            };
            let locked = locked.get(&(item.kind, item.name.clone()));
            self.add_notice(&manifest, &item, &status, locked).await;
        }
        // `add_notice` may have replaced a digest in a manifest, and the lock is made from
        // `outcome.manifest`
        if self
            .outcome
            .noticed
            .iter()
            .any(|noticed| noticed.notice.taken)
        {
            self.outcome.manifest = self.load(&self.outcome.edited)?;
        }
        Ok(())
    }

    /// The status of an image according to the tag list of its repository, if a version in that
    /// repository made the run fetch the list. The list saves one request for the image.
    fn status_in_tag_list(&self, item: &RequestedItem) -> Option<UpstreamStatus> {
        // a tag list has no digests, so it cannot show that a tag was pushed again
        if self.request.every_digest || item.digest_rule().is_some() {
            return None;
        }
        let image = item.tagged.as_ref()?;
        let tags = self.lookups.resolver.listed_tags(image)?;
        if !tags.contains(image.tag.as_deref()?) {
            return Some(UpstreamStatus::Gone);
        }
        Some(UpstreamStatus::Present {
            digest: None,
            size: None,
        })
    }

    /// Compares an item upstream with its digest in the manifest, or with the lock, and adds a
    /// notice if it differs or is gone.
    async fn add_notice(
        &mut self,
        manifest: &MergedManifest,
        item: &RequestedItem,
        status: &UpstreamStatus,
        locked: Option<&(Digest, Option<u64>)>,
    ) {
        let RequestedItem {
            kind,
            name,
            demanded,
            ..
        } = item;
        let from = demanded
            .as_ref()
            .map(|(digest, _)| digest)
            .or(locked.map(|(digest, _)| digest))
            .cloned();
        let mut wait = None;
        let notice = match status {
            UpstreamStatus::Gone => Notice::gone(name),
            UpstreamStatus::Present {
                digest: Some(digest),
                ..
            } if from.as_ref().is_some_and(|from| from != digest) => {
                wait = self.digest_wait(manifest, item, digest).await;
                let follows_digest = item.digest_rule().is_some() && wait.is_none();
                let taken = match demanded {
                    // The manifest must be edited too: it demands the old digest, so locking the
                    // new one would fail.
                    Some(_) if follows_digest => {
                        let edited = update_checksum(&mut self.outcome.edited, item, Some(digest));
                        if let Err(RejectedVersion::Unusable(why)) = &edited {
                            self.outcome.failed.push(failed(
                                *kind,
                                name,
                                &ResolveError::from(why.as_str()),
                            ));
                        }
                        edited.unwrap_or(false)
                    }
                    _ => follows_digest,
                };
                if taken {
                    self.outcome.relock.insert((*kind, name.clone()));
                }
                Notice {
                    taken,
                    until: wait.map(|wait: AgeWait| wait.until.to_string()),
                    ..Notice::moved(name, from, Some(digest.clone()))
                }
            }
            // a web server names the size of a file, not its digest
            UpstreamStatus::Present {
                size: Some(size), ..
            } if locked.is_some_and(|(_, old)| old.is_some_and(|old| old != *size)) => {
                Notice::moved(name, from, None)
            }
            UpstreamStatus::Present { .. } => return,
        };
        self.outcome.noticed.push(UpstreamNotice {
            item: *kind,
            is_locked: locked.is_some(),
            notice,
            wait,
        });
    }

    /// Returns the wait of a tag's new digest, if the entry of the tag follows new digests.
    async fn digest_wait(
        &mut self,
        manifest: &MergedManifest,
        item: &RequestedItem,
        digest: &Digest,
    ) -> Option<AgeWait> {
        let min_age = waiting_age(item.digest_rule()?.min_age.as_ref())?;
        let items = vec![item.clone()];
        self.count_from_logs(manifest, items, min_age).await;
        let digest = digest.to_string();
        let key = SightKey::new(&item.name, &digest);
        self.wait_unless_urgent(key, &item.name, &digest, min_age)
    }
}

/// The digest of each locked item, and the size of its first file that clients download by URL.
fn locked_content(lock: &Lock) -> BTreeMap<(EntryKind, String), (Digest, Option<u64>)> {
    lock.items()
        .map(|item| {
            let size = item.files().first().map(|file| file.size);
            (
                (item.kind(), item.name().into_owned()),
                (item.upstream_digest().into_owned(), size),
            )
        })
        .collect()
}
