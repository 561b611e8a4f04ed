//! The state of an update: its request, its findings so far, and the reasons to reject versions.

use super::UrgentVersion;
use super::age_clock::AgeClock;
use super::first_sights::FirstSights;
use super::lookups::{RequestedItem, UpstreamLookups, requested_items};
use super::outcome::UpdateOutcome;
use super::version_ages::{AgeWait, VersionAges};
use landfall_item::ResolveError;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{
    FileOverrides, LoadManifestError, MergedManifest, load_edited, set_digest, text_of,
};
use landfall_model::NamePattern;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Digest, Platform, locked, now};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The request of an update.
pub(crate) struct UpdateRequest<'a> {
    /// Manifests, folders of manifests, and plain lists.
    pub(crate) paths: &'a [PathBuf],
    /// The platforms of plain lists.
    pub(crate) platforms: &'a [Platform],
    /// The lock before the update, if there is one.
    pub(crate) old: Option<&'a Lock>,
    /// Only items and versions whose names match one of these patterns may move. Empty for all.
    pub(crate) only: &'a [NamePattern],
    /// Also look up the digests of images whose tags were listed, to detect tags that moved.
    pub(crate) every_digest: bool,
    /// When this project first saw versions.
    pub(crate) sights: &'a FirstSights,
    /// Whether the file of `sights` must be written again, because its text does not have the form
    /// that landfall writes, as after a merge.
    pub(crate) rewrite_sights: bool,
    /// The file of `sights`.
    pub(crate) sights_path: &'a Path,
    /// Versions that need not wait for their minimum age.
    pub(crate) urgent: &'a [UrgentVersion],
}

/// The state of an update.
pub(super) struct UpdateRun<'a> {
    pub(super) request: &'a UpdateRequest<'a>,
    pub(super) lookups: UpstreamLookups<'a>,
    /// The lists that were fetched, by URL.
    pub(super) lists: BTreeMap<String, Result<String, ResolveError>>,
    /// Whether any list has a `from`. If not, candidates are tried without reading the lists again.
    pub(super) has_lists: bool,
    pub(super) ages: VersionAges<'a>,
    /// The positions of the patterns of `--only` that matched something.
    pub(super) used_only: Mutex<BTreeSet<usize>>,
    pub(super) outcome: UpdateOutcome,
}

/// The reason why a version is rejected.
pub(super) enum RejectedVersion {
    /// The version cannot be used, for this reason. The next lower one is tried.
    Unusable(String),
    /// The version waits for its minimum age. The next lower one is tried.
    Waiting(AgeWait),
    /// A look-up failed, so nothing is known about the version. Lower ones are not tried.
    LookUpFailed(ReportItem),
}

impl From<String> for RejectedVersion {
    fn from(why: String) -> RejectedVersion {
        RejectedVersion::Unusable(why)
    }
}

/// Manifests that are invalid with the new version make it unusable.
impl From<LoadManifestError> for RejectedVersion {
    fn from(error: LoadManifestError) -> RejectedVersion {
        RejectedVersion::Unusable(first_line(&error))
    }
}

/// The report of an item whose look-up failed.
pub(super) fn failed(kind: EntryKind, name: impl Into<String>, cause: &ResolveError) -> ReportItem {
    ReportItem {
        kind,
        name: name.into(),
        digest: None,
        bytes: None,
        packages: 0,
        status: ItemStatus::Failed,
        reason: Some(cause.message.clone()),
    }
}

impl UpdateRun<'_> {
    /// Whether the request selects something with one of these names. Records the patterns that
    /// match.
    pub(super) fn is_selected(&self, names: &[&str]) -> bool {
        let only = self.request.only;
        let mut used = locked(&self.used_only);
        let mut is_selected = only.is_empty();
        for (at, pattern) in only.iter().enumerate() {
            if names.iter().any(|name| pattern.matches(name)) {
                used.insert(at);
                is_selected = true;
            }
        }
        is_selected
    }

    /// The patterns of `--only` that have matched nothing so far.
    pub(super) fn unused_only(&self) -> Vec<String> {
        let used = locked(&self.used_only);
        let patterns = self.request.only.iter().enumerate();
        patterns
            .filter(|(at, _)| !used.contains(at))
            .map(|(_, pattern)| pattern.to_string())
            .collect()
    }

    /// The clock by which ages are computed.
    pub(super) fn clock(&self) -> AgeClock {
        AgeClock::new(now(), self.lookups.resolver.server_clock_offset())
    }

    /// Loads the manifests with these texts instead of the files' own.
    pub(super) fn load(&self, edited: &FileOverrides) -> Result<MergedManifest, LoadManifestError> {
        load_edited(self.request.paths, self.request.platforms, edited)
    }
}

/// Replaces the item's digest in the manifest by that of upstream. Returns whether the manifest
/// changed.
pub(super) fn update_checksum(
    edited: &mut FileOverrides,
    item: &RequestedItem,
    digest: Option<&Digest>,
) -> Result<bool, RejectedVersion> {
    let Some((old, at)) = &item.demanded else {
        return Ok(false);
    };
    match digest {
        Some(new) if new == old => Ok(false),
        Some(new) => {
            let file = Path::new(&at.file);
            let text = text_of(file, edited)?;
            let new_text = set_digest(&text, at, old, new)
                .map_err(|why| RejectedVersion::Unusable(format!("{}: {why}", item.name)))?;
            edited.insert(file.into(), new_text);
            Ok(true)
        }
        // a web server does not send digests: only a download would give the new one
        None => Err(RejectedVersion::Unusable(format!(
            "the manifest has the checksum of {}; name a checksum file in its place, as in \
             `checksum: ${{url}}.sha256`",
            item.name
        ))),
    }
}

/// The items that `new` requests and `old` does not.
pub(super) fn added_items(old: &MergedManifest, new: &MergedManifest) -> Vec<RequestedItem> {
    let had: BTreeSet<(EntryKind, String)> = requested_items(old)
        .into_iter()
        .map(|item| (item.kind, item.name))
        .collect();
    let mut added = requested_items(new);
    added.retain(|item| !had.contains(&(item.kind, item.name.clone())));
    added
}

/// The first line of an error, which has the position and the message. Further lines show the
/// source text, for which a report has no room.
pub(super) fn first_line(error: &LoadManifestError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
