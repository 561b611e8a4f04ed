//! The state of an update: its request, what it found so far, and why versions are rejected.

use super::NamePattern;
use super::asker::{Asker, Wish, wishes};
use super::outcome::UpdateOutcome;
use landfall_item::ResolveError;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{
    FileOverrides, LoadManifestError, MergedManifest, load_edited, set_digest, text_of,
};
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Digest, Platform};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The request of an update.
pub(crate) struct UpdateRequest<'a> {
    /// Manifests, folders of manifests, and plain lists.
    pub(crate) paths: &'a [PathBuf],
    /// The platforms of plain lists.
    pub(crate) platforms: &'a [Platform],
    /// The present lock.
    pub(crate) old: Option<&'a Lock>,
    /// Only items and versions with these names may move. Empty for all.
    pub(crate) only: &'a [NamePattern],
    /// Also look up the digests of images whose tags were listed, to detect tags that moved.
    pub(crate) every_digest: bool,
}

/// The state of an update.
pub(super) struct UpdateRun<'a> {
    /// The request.
    pub(super) asked: &'a UpdateRequest<'a>,
    /// Looks up items upstream, each once.
    pub(super) asker: Asker<'a>,
    /// The lists that were fetched, by URL.
    pub(super) lists: BTreeMap<String, Result<String, ResolveError>>,
    /// Whether there are lists with a source.
    pub(super) has_lists: bool,
    /// The outcome so far.
    pub(super) updated: UpdateOutcome,
}

/// Why a version is rejected.
pub(super) enum RejectedVersion {
    /// It cannot be used, for this reason. The next lower one is tried.
    Held(String),
    /// A look-up failed.
    Unasked(ReportItem),
}

impl From<String> for RejectedVersion {
    fn from(why: String) -> RejectedVersion {
        RejectedVersion::Held(why)
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
        reason: Some(cause.told.clone()),
    }
}

impl UpdateRun<'_> {
    /// Whether the request selects something with one of these names.
    pub(super) fn is_selected(&self, names: &[&str]) -> bool {
        let only = self.asked.only;
        only.is_empty()
            || only
                .iter()
                .any(|pattern| names.iter().any(|name| pattern.matches(name)))
    }

    /// Loads the manifests with these texts in place of their files.
    pub(super) fn load(&self, edited: &FileOverrides) -> Result<MergedManifest, LoadManifestError> {
        load_edited(self.asked.paths, self.asked.platforms, edited)
    }
}

/// Writes the digest that upstream has into the manifest, if the manifest has another one. Returns
/// whether it did.
pub(super) fn update_checksum(
    edited: &mut FileOverrides,
    wish: &Wish,
    digest: Option<&Digest>,
) -> Result<bool, RejectedVersion> {
    let Some((old, at)) = &wish.demanded else {
        return Ok(false);
    };
    match digest {
        Some(new) if new == old => Ok(false),
        Some(new) => {
            let file = Path::new(&at.file);
            let text =
                text_of(file, edited).map_err(|error| RejectedVersion::Held(first_line(&error)))?;
            let new_text = set_digest(&text, at, old, new)
                .map_err(|why| RejectedVersion::Held(format!("{}: {why}", wish.name)))?;
            edited.insert(file.into(), new_text);
            Ok(true)
        }
        None => Err(RejectedVersion::Held(format!(
            "the manifest has the checksum of {}; name a checksum file in its place, as in \
             `checksum: ${{url}}.sha256`",
            wish.name
        ))),
    }
}

/// The items that `new` requests and `old` does not.
pub(super) fn added_wishes(old: &MergedManifest, new: &MergedManifest) -> Vec<Wish> {
    let had: BTreeSet<(EntryKind, String)> = wishes(old)
        .into_iter()
        .map(|wish| (wish.kind, wish.name))
        .collect();
    let mut added = wishes(new);
    added.retain(|wish| !had.contains(&(wish.kind, wish.name.clone())));
    added
}

/// The first line of an error, which has the position and the message.
pub(super) fn first_line(error: &LoadManifestError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
