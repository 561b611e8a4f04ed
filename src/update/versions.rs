//! Versions with a policy: each moves to the newest one that can be taken.

use super::outcome::{Held, Move};
use super::sources::{versions, written_like};
use super::state::{Refusal, Run, demand, failed, first_line, fresh};
use crate::item::{Cause, Stand};
use crate::manifest::{Error, Slot, Versions, set_version, slots, text_of};
use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;

impl Run<'_> {
    /// Moves every version to the newest one that can be taken.
    pub(super) async fn move_versions(&mut self) -> Result<(), Error> {
        let mut slots = slots(self.asked.paths, &self.updated.edited)?;
        slots.retain(|slot| {
            let image = match &slot.versions {
                Ok(Versions::Tags(image, ..)) => image.name(),
                _ => slot.name.clone(),
            };
            self.is_asked(&[&slot.name, &image])
        });
        let found = self.find_versions(&slots).await;
        for (at, slot) in slots.iter().enumerate() {
            let candidates = found[at].clone().and_then(|found| {
                let found = found.iter().map(|version| match &slot.versions {
                    Ok(Versions::Document(_)) => written_like(&slot.current, version),
                    _ => version.clone(),
                });
                slot.policy.newer(&slot.current, found).map_err(|error| Cause::from(error.to_string()))
            });
            match candidates {
                Ok(candidates) => self.move_version(slot, candidates).await?,
                Err(cause) => {
                    let name = format!("{} ({})", slot.name, slot.at);
                    self.updated.failed.push(failed(slot.kind, name, &cause));
                }
            }
        }
        Ok(())
    }

    /// The versions that each slot's source has. Every source is asked once.
    async fn find_versions(&self, slots: &[Slot]) -> Vec<Result<Vec<String>, Cause>> {
        let sources: BTreeMap<String, &Versions> = slots
            .iter()
            .filter_map(|slot| slot.versions.as_ref().ok())
            .map(|from| (format!("{from:?}"), from))
            .collect();
        let sources: Vec<(&String, &&Versions)> = sources.iter().collect();
        let resolver = self.asker.resolver;
        let asking = stream::iter(0..sources.len())
            .map(async |at: usize| (sources[at].0.clone(), versions(resolver, sources[at].1).await));
        let found: BTreeMap<String, _> = asking.buffered(resolver.limits().jobs).collect().await;
        let of = |slot: &Slot| match &slot.versions {
            Ok(from) => found.get(&format!("{from:?}")).cloned().unwrap_or_else(|| Ok(Vec::new())),
            Err(why) => Err(Cause::from(why.as_str())),
        };
        slots.iter().map(of).collect()
    }

    /// Moves one version to the first of `candidates` that can be taken.
    async fn move_version(&mut self, slot: &Slot, candidates: Vec<String>) -> Result<(), Error> {
        let mut moved = Move {
            name: slot.name.clone(),
            at: slot.at.clone(),
            policy: slot.written.clone(),
            from: slot.current.clone(),
            to: None,
            items: Vec::new(),
            held: Vec::new(),
        };
        for version in candidates {
            match self.take(slot, &version).await {
                Ok(items) => {
                    (moved.to, moved.items) = (Some(version), items);
                    break;
                }
                Err(Refusal::Held(why)) => moved.held.push(Held { version, why }),
                Err(Refusal::Unasked(item)) => {
                    self.updated.failed.push(item);
                    break;
                }
            }
        }
        if moved.to.is_some() || !moved.held.is_empty() {
            self.updated.moves.push(moved);
        }
        Ok(())
    }

    /// Takes `version`, if upstream has all items that use it. Returns the items that are new.
    async fn take(&mut self, slot: &Slot, version: &str) -> Result<Vec<String>, Refusal> {
        let told = |error: Error| Refusal::Held(first_line(&error));
        if slot.others.iter().any(|other| other == version) {
            return Err(Refusal::Held(format!("it is a value of `{}` already", slot.name)));
        }
        let mut edited = self.updated.edited.clone();
        let text = text_of(&slot.file, &edited).map_err(told)?;
        edited.insert(slot.file.clone(), set_version(&text, slot, version)?);
        self.follow_lists(&mut edited).await?;
        let mut wanted = self.load(&edited).map_err(told)?;
        let fresh = fresh(&self.updated.wanted, &wanted);
        let names = fresh.iter().map(|wish| (wish.kind, wish.name.clone())).collect();
        self.asker.ask(&wanted, &names).await;
        let mut has_digests = false;
        for wish in &fresh {
            let accepted =
                wanted.missing.iter().any(|lost| (lost.kind, &lost.name) == (wish.kind, &wish.name));
            match self.asker.answer(wish) {
                Some(Err(cause)) => return Err(Refusal::Unasked(failed(wish.kind, &wish.name, cause))),
                Some(Ok(Stand::Gone)) if !accepted => {
                    return Err(Refusal::Held(format!("upstream does not have {} {}", wish.kind, wish.name)));
                }
                Some(Ok(Stand::There { digest, .. })) => {
                    has_digests |= demand(&mut edited, wish, digest.as_ref())?;
                }
                Some(Ok(Stand::Gone)) | None => {}
            }
        }
        if has_digests {
            wanted = self.load(&edited).map_err(told)?;
        }
        (self.updated.edited, self.updated.wanted) = (edited, wanted);
        Ok(fresh.into_iter().map(|wish| wish.name).collect())
    }
}
