//! Looks up the items whose versions did not move: tags that moved, images that are gone.

use super::asker::{Wish, wishes};
use super::outcome::UpstreamNotice;
use super::state::{RejectedVersion, UpdateRun, failed, update_checksum};
use landfall_item::lockfile::Lock;
use landfall_item::manifest::LoadManifestError;
use landfall_item::{LockedItem, ResolveError, UpstreamStatus};
use landfall_model::report::{EntryKind, Notice};
use landfall_model::{Digest, ImageRef};
use std::collections::{BTreeMap, BTreeSet};

impl UpdateRun<'_> {
    /// Looks up every item that did not move.
    pub(super) async fn look_up_unmoved_items(&mut self) -> Result<(), LoadManifestError> {
        let wanted = self.updated.wanted.clone();
        let accepted: BTreeSet<(EntryKind, &str)> = wanted
            .missing
            .iter()
            .map(|lost| (lost.kind, lost.name.as_str()))
            .collect();
        let mut rest = wishes(&wanted);
        rest.retain(|wish| {
            let without_tag = wish
                .tagged
                .as_ref()
                .map_or_else(|| wish.name.clone(), ImageRef::name);
            !accepted.contains(&(wish.kind, wish.name.as_str()))
                && self.asker.answer(wish).is_none()
                && self.is_selected(&[&wish.name, &without_tag])
        });
        let names = rest.iter().filter(|wish| self.listed(wish).is_none());
        let names = names.map(|wish| (wish.kind, wish.name.clone())).collect();
        self.asker.ask(&wanted, &names).await;
        let locked = self.asked.old.map(locked).unwrap_or_default();
        for wish in rest {
            let stand = match (self.asker.answer(&wish), self.listed(&wish)) {
                (Some(Ok(stand)), _) => stand.clone(),
                (Some(Err(cause)), _) => {
                    self.updated
                        .failed
                        .push(failed(wish.kind, &wish.name, cause));
                    continue;
                }
                (None, Some(stand)) => stand,
                (None, None) => continue,
            };
            let locked = locked.get(&(wish.kind, wish.name.clone()));
            self.notice(&wish, &stand, locked);
        }
        if self
            .updated
            .noticed
            .iter()
            .any(|noticed| noticed.notice.taken)
        {
            self.updated.wanted = self.load(&self.updated.edited)?;
        }
        Ok(())
    }

    /// The status of an image by the list of its tags, if the list is enough.
    fn listed(&self, wish: &Wish) -> Option<UpstreamStatus> {
        if self.asked.every_digest || wish.policy.as_deref() == Some("digest") {
            return None;
        }
        let image = wish.tagged.as_ref()?;
        let tags = self.asker.resolver.listed_tags(image)?;
        if !tags.contains(image.tag.as_deref()?) {
            return Some(UpstreamStatus::Gone);
        }
        Some(UpstreamStatus::Present {
            digest: None,
            size: None,
        })
    }

    /// Compares an item upstream with its checksum in the manifest, or with the lock.
    fn notice(
        &mut self,
        wish: &Wish,
        stand: &UpstreamStatus,
        locked: Option<&(Digest, Option<u64>)>,
    ) {
        let Wish {
            kind,
            name,
            demanded,
            ..
        } = wish;
        let from = demanded
            .as_ref()
            .map(|(digest, _)| digest)
            .or(locked.map(|(digest, _)| digest))
            .cloned();
        let notice = match stand {
            UpstreamStatus::Gone => Notice::gone(name),
            UpstreamStatus::Present {
                digest: Some(digest),
                ..
            } if from.as_ref().is_some_and(|from| from != digest) => {
                let takes = wish.policy.as_deref() == Some("digest");
                let taken = match demanded {
                    Some(_) if takes => {
                        let demanded =
                            update_checksum(&mut self.updated.edited, wish, Some(digest));
                        if let Err(RejectedVersion::Held(why)) = &demanded {
                            self.updated.failed.push(failed(
                                *kind,
                                name,
                                &ResolveError::from(why.as_str()),
                            ));
                        }
                        demanded.unwrap_or(false)
                    }
                    _ => takes,
                };
                if taken {
                    self.updated.relock.insert((*kind, name.clone()));
                }
                Notice {
                    taken,
                    ..Notice::moved(name, from, Some(digest.clone()))
                }
            }
            UpstreamStatus::Present {
                size: Some(size), ..
            } if locked.is_some_and(|(_, old)| old.is_some_and(|old| old != *size)) => {
                Notice::moved(name, from, None)
            }
            UpstreamStatus::Present { .. } => return,
        };
        self.updated.noticed.push(UpstreamNotice {
            item: *kind,
            notice,
        });
    }
}

/// The digest of each locked item, and the size of a file.
fn locked(lock: &Lock) -> BTreeMap<(EntryKind, String), (Digest, Option<u64>)> {
    let item = |item: &dyn LockedItem| {
        let size = item.files().first().map(|file| file.size);
        (
            (item.kind(), item.name().into_owned()),
            (item.digest().clone(), size),
        )
    };
    lock.items().map(item).collect()
}
