//! Moves the versions of a variable or item with `keep` to the newest version of each of the newest
//! release lines.

use super::outcome::{HeldVersion, VersionMove, WaitingVersion};
use super::sources::written_like;
use super::state::{RejectedVersion, UpdateRun, failed};
use super::versions::unmoved;
use landfall_item::manifest::{
    FileOverrides, KeptVersions, LoadManifestError, UpdatableVersion, set_versions, text_of,
    updatable_versions,
};
use landfall_item::{ResolveError, VersionSource};
use landfall_model::MinimumAge;

impl UpdateRun<'_> {
    /// Like [`UpdateRun::move_kept`], for an item whose versions are in entries of their own. Reads
    /// their positions again, because other moves may have added or removed entries before them.
    pub(super) async fn move_kept_entries(
        &mut self,
        slot: &UpdatableVersion,
        found: Vec<String>,
    ) -> Result<(), LoadManifestError> {
        let slots = updatable_versions(self.request.paths, &self.outcome.edited)?;
        let present = slots.into_iter().find(|one| {
            one.kept.is_some()
                && (&one.file, one.kind, &one.name) == (&slot.file, slot.kind, &slot.name)
        });
        let Some(mut present) = present else {
            return Ok(());
        };
        // a report shows the position in the file on disk
        present.at = slot.at.clone();
        if let Some(kept) = &present.kept {
            self.move_kept(&present, kept, found).await;
        }
        Ok(())
    }

    /// Moves the versions of a variable or item. For each of the newest release lines, chooses the
    /// newest version in `found` that can be used.
    pub(super) async fn move_kept(
        &mut self,
        slot: &UpdatableVersion,
        kept: &KeptVersions,
        found: Vec<String>,
    ) {
        let newest = kept.values.last().map_or("", String::as_str);
        let found = found.into_iter().map(|version| match &slot.versions {
            Ok(VersionSource::Document(_)) => written_like(newest, &version),
            // a tag or chart version exists only in the form that its source lists
            _ => version,
        });
        let lines = match slot.policy.release_lines(&kept.values, found) {
            Ok(lines) => lines,
            Err(error) => {
                let name = format!("{} ({})", slot.name, slot.at);
                let cause = ResolveError::from(error.to_string());
                self.outcome.failed.push(failed(slot.kind, name, &cause));
                return;
            }
        };
        let mut moved = unmoved(slot);
        let mut chosen: Vec<String> = Vec::new();
        let mut tried = 0;
        for line in lines {
            if chosen.len() == kept.count {
                break;
            }
            for version in line {
                // a present value needs no check, and ends its line
                if kept.values.contains(&version) {
                    chosen.push(version);
                    break;
                }
                if tried == self.lookups.resolver.limits().candidates {
                    continue;
                }
                tried += 1;
                match self.try_kept(slot, &chosen, &version).await {
                    Ok(()) => {
                        chosen.push(version);
                        break;
                    }
                    Err(RejectedVersion::Unusable(why)) => {
                        moved.held.push(HeldVersion { version, why });
                    }
                    Err(RejectedVersion::Waiting(wait)) => {
                        moved.waiting.push(WaitingVersion::new(&version, wait));
                    }
                    // nothing is known about this version, so older ones must not be used instead
                    Err(RejectedVersion::LookUpFailed(item)) => {
                        self.outcome.failed.push(item);
                        return;
                    }
                }
            }
        }
        // a descending list stays descending; every other list becomes ascending
        if !slot.policy.is_descending(&kept.values) {
            chosen.reverse();
        }
        if chosen != kept.values {
            self.take_kept(slot, &chosen, &mut moved).await;
        }
        if moved.to.is_some() || !moved.held.is_empty() || !moved.waiting.is_empty() {
            self.outcome.moves.push(moved);
        }
    }

    /// Checks that upstream has all items of `version`, and has had them for the minimum age unless
    /// the version is urgent.
    async fn try_kept(
        &mut self,
        slot: &UpdatableVersion,
        chosen: &[String],
        version: &str,
    ) -> Result<(), RejectedVersion> {
        let mut wait = match waiting_age(slot) {
            Some(min_age) => self.version_wait(slot, version, min_age),
            None => None,
        };
        let list: Vec<String> = chosen.iter().cloned().chain([version.to_owned()]).collect();
        let edited = self.edited_list(slot, &list)?;
        let trial = self.try_edit(edited).await?;
        let mut content = None;
        // the content is looked up even while the version waits, so that its age counts from now on
        if let Some(min_age) = waiting_age(slot) {
            content = self.content_wait(&trial, min_age).await;
            self.count_version_from(slot, version, self.known_since(&trial));
            wait = wait.and_then(|_| self.version_wait(slot, version, min_age));
        }
        let is_urgent = self.ages.is_urgent(&slot.name, version);
        if let Some(wait) = wait.or(content.filter(|_| !is_urgent)) {
            return Err(RejectedVersion::Waiting(wait));
        }
        self.check_items(&trial)?;
        self.check_contents(&trial).await
    }

    /// Accepts the list `chosen`, if it can be written to the manifest and locked.
    async fn take_kept(
        &mut self,
        slot: &UpdatableVersion,
        chosen: &[String],
        moved: &mut VersionMove,
    ) {
        let edited = self.edited_list(slot, chosen);
        let trial = match edited {
            Ok(edited) => self.try_edit(edited).await,
            Err(rejected) => Err(rejected),
        };
        let taken = match trial {
            // `try_kept` has checked the minimum age of each new version
            Ok(trial) => self.accept(trial, None).await,
            Err(rejected) => Err(rejected),
        };
        match taken {
            Ok(items) => {
                moved.items = items;
                moved.to = Some(chosen.join(", "));
            }
            Err(RejectedVersion::Unusable(why)) => moved.held.push(HeldVersion {
                version: chosen.join(", "),
                why,
            }),
            Err(RejectedVersion::Waiting(wait)) => {
                let version = chosen.join(", ");
                moved.waiting.push(WaitingVersion::new(&version, wait));
            }
            Err(RejectedVersion::LookUpFailed(item)) => self.outcome.failed.push(item),
        }
    }

    fn edited_list(
        &self,
        slot: &UpdatableVersion,
        list: &[String],
    ) -> Result<FileOverrides, RejectedVersion> {
        let mut edited = self.outcome.edited.clone();
        let text = text_of(&slot.file, &edited)?;
        edited.insert(slot.file.clone(), set_versions(&text, slot, list)?);
        Ok(edited)
    }
}

/// The minimum age of `slot`, if its versions wait at all.
fn waiting_age(slot: &UpdatableVersion) -> Option<&MinimumAge> {
    slot.min_age.as_ref().filter(|age| !age.is_zero())
}
