//! An update under way: what is asked, what was found so far, and why something is not taken.

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

/// What is to be updated.
pub(crate) struct UpdateRequest<'a> {
    /// Manifests, folders of manifests, and plain lists.
    pub(crate) paths: &'a [PathBuf],
    /// The platforms of plain lists.
    pub(crate) platforms: &'a [Platform],
    /// What is locked.
    pub(crate) old: Option<&'a Lock>,
    /// What alone may move; everything where empty.
    pub(crate) only: &'a [NamePattern],
    /// Ask for the digest of an image too whose tags are listed already.
    pub(crate) every_digest: bool,
}

/// An update under way.
pub(super) struct UpdateRun<'a> {
    /// What is asked for.
    pub(super) asked: &'a UpdateRequest<'a>,
    /// Who asks upstream.
    pub(super) asker: Asker<'a>,
    /// The lists that were fetched, by URL.
    pub(super) lists: BTreeMap<String, Result<String, ResolveError>>,
    /// Whether there are lists with a source.
    pub(super) has_lists: bool,
    /// What came of it so far.
    pub(super) updated: UpdateOutcome,
}

/// Why a version is not taken.
pub(super) enum RejectedVersion {
    /// Something holds it back: the next lower one may do.
    Held(String),
    /// It could not be found out.
    Unasked(ReportItem),
}

impl From<String> for RejectedVersion {
    fn from(why: String) -> RejectedVersion {
        RejectedVersion::Held(why)
    }
}

/// An item that could not be asked for.
pub(super) fn failed(kind: EntryKind, name: impl Into<String>, cause: &ResolveError) -> ReportItem {
    let (name, reason) = (name.into(), Some(cause.told.clone()));
    ReportItem {
        kind,
        name,
        digest: None,
        bytes: None,
        packages: 0,
        status: ItemStatus::Failed,
        reason,
    }
}

impl UpdateRun<'_> {
    /// Whether something with one of these names is asked for.
    pub(super) fn is_asked(&self, names: &[&str]) -> bool {
        let only = self.asked.only;
        only.is_empty()
            || only
                .iter()
                .any(|pattern| names.iter().any(|name| pattern.matches(name)))
    }

    /// What the manifests want with these texts.
    pub(super) fn load(&self, edited: &FileOverrides) -> Result<MergedManifest, LoadManifestError> {
        load_edited(self.asked.paths, self.asked.platforms, edited)
    }
}

/// Writes the digest that upstream has into the manifest, where that demands another one. Returns
/// whether it did.
pub(super) fn demand(
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
            let told = |why: String| RejectedVersion::Held(format!("{}: {why}", wish.name));
            edited.insert(file.into(), set_digest(&text, at, old, new).map_err(told)?);
            Ok(true)
        }
        None => Err(RejectedVersion::Held(format!(
            "the manifest has the checksum of {}; name a checksum file in its place, as in `checksum: ${{url}}.sha256`",
            wish.name
        ))),
    }
}

/// What `new` wants that `old` does not.
pub(super) fn fresh(old: &MergedManifest, new: &MergedManifest) -> Vec<Wish> {
    let had: BTreeSet<(EntryKind, String)> = wishes(old)
        .into_iter()
        .map(|wish| (wish.kind, wish.name))
        .collect();
    let mut fresh = wishes(new);
    fresh.retain(|wish| !had.contains(&(wish.kind, wish.name.clone())));
    fresh
}

/// The first line of an error: its place and what is wrong.
pub(super) fn first_line(error: &LoadManifestError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
