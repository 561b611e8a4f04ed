//! Moves the versions in manifests by their update policies, and edits the manifests in place:
//! every byte outside the versions and their digests stays.
//!
//! Start at [`update`]. A version moves to the newest one that can be used: its policy allows it
//! (`model`'s [`UpdatePolicy`]), `sources` or `packages` list it, and upstream has all items that
//! use it (`lookups`). Of all other items, `unmoved_items` reports those that changed upstream or
//! are gone.
//!
//! A candidate is tried by editing the text of its manifest in memory and loading all manifests
//! again with that text. The manifest loader thus applies its usual rules to the candidate, and
//! this module need not repeat them. Items that are requested only after the edit must exist
//! upstream, and it must be possible to lock each changed set of packages. A version that waits for
//! its minimum age (`version_ages`) is not used.
//!
//! Nothing is written before all versions are chosen. The first file to be written is the one that
//! records when each version was first seen (`first_sights`). Then the manifests, the lock, and for
//! a `refresh` the store and the bundle are written, each atomically, so an interruption between
//! two of them leaves every file whole.
//!
//! [`UpdatePolicy`]: landfall_model::UpdatePolicy

mod aged_candidates;
mod first_sights;
mod lists;
mod lookups;
mod sources;
mod trial;
mod unmoved_items;
mod version_ages;
mod versions;

use self::aged_candidates::AgeClock;
use self::lookups::{RequestedItem, UpstreamLookups, requested_items};
use self::version_ages::{AgesOutcome, RunEnd, VersionAges};
use landfall_git::ObjectId;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::{
    FileOverrides, LoadManifestError, MergedManifest, list_sources, load_edited, manifest_files,
    set_digest, text_of, trust_root_sources,
};
use landfall_item::{ResolveError, Resolver};
use landfall_model::document::{SourceLocation, read_input};
use landfall_model::report::{EntryKind, ItemStatus, Notice, NoticeKind, ReportItem};
use landfall_model::{Digest, NamePattern, PlatformRequest, locked, now};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(crate) use self::aged_candidates::UrgentVersion;
pub(crate) use self::first_sights::FirstSights;
pub(crate) use self::version_ages::{AgeWait, ChangedSights};

/// Computes the updates of the manifests. Writes no file. Fails if a manifest is invalid.
pub(crate) async fn update(
    request: &UpdateRequest<'_>,
    resolver: &Resolver,
) -> Result<UpdateOutcome, LoadManifestError> {
    let manifest = load_edited(request.paths, request.platforms, &FileOverrides::new())?;
    let lists = list_sources(request.paths, &FileOverrides::new())?;
    let has_lists = !lists.is_empty();
    let items = requested_items(&manifest);
    let mut ages = VersionAges::new(request.sights, request.urgent);
    for rule in items.iter().filter_map(|item| item.digest_rule()) {
        ages.keep_sights_for(rule.min_age.as_ref());
    }
    for list in &lists {
        ages.keep_sights_for(list.min_age.as_ref());
    }
    let trust_roots = trust_root_sources(request.paths, &FileOverrides::new())?;
    let trust_roots = trust_roots.into_iter();
    let files = manifest_files(request.paths)?
        .into_iter()
        .chain(lists.into_iter().map(|list| list.path))
        .chain(trust_roots.flat_map(|source| [source.path, source.tuf_root]));
    let before = files.map(|path| (path.clone(), digest_of(&path))).collect();
    let outcome = UpdateOutcome {
        before,
        manifest,
        sights_path: request.sights_path.to_owned(),
        ..UpdateOutcome::default()
    };
    let mut run = UpdateRun {
        request,
        lookups: UpstreamLookups::new(resolver),
        lists: BTreeMap::new(),
        has_lists,
        ages,
        used_only: Mutex::default(),
        outcome,
    };
    resolver.progress.begin("update", items.len() as u64, 0);
    run.replace_trust_roots().await?;
    run.replace_lists().await?;
    run.move_versions().await?;
    // last, because only now the run knows which items did not move and which tags were listed
    run.look_up_unmoved_items().await?;
    resolver.progress.end();
    let end = RunEnd {
        has_seen_all: request.only.is_empty() && run.outcome.failed.is_empty(),
        rewrite: request.rewrite_sights,
        clock: run.clock(),
    };
    run.outcome.looked_up = run.lookups.digests();
    run.outcome.git_tags = resolver.git_tags();
    run.outcome.unused_only = run.unused_only();
    run.outcome.ages = run.ages.end(end);
    Ok(run.outcome)
}

/// The digest of a file on disk. A file that cannot be read counts as empty. The manifest loader
/// has just read all these files except TUF roots, and `replace_trust_roots` fails if it cannot
/// read a TUF root.
fn digest_of(path: &Path) -> Digest {
    Digest::sha256(&read_input(path).unwrap_or_default())
}

// The state of an update: its request, its findings so far, and the reasons to reject versions.

/// The request of an update.
pub(crate) struct UpdateRequest<'a> {
    /// Manifests, folders of manifests, and plain lists.
    pub(crate) paths: &'a [PathBuf],
    /// The platforms of plain lists.
    pub(crate) platforms: &'a [PlatformRequest],
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
struct UpdateRun<'a> {
    request: &'a UpdateRequest<'a>,
    lookups: UpstreamLookups<'a>,
    /// The lists that were fetched, by URL.
    lists: BTreeMap<String, Result<String, ResolveError>>,
    /// Whether any list has a `from`. If not, candidates are tried without reading the lists again.
    has_lists: bool,
    ages: VersionAges<'a>,
    /// The positions of the patterns of `--only` that matched something.
    used_only: Mutex<BTreeSet<usize>>,
    outcome: UpdateOutcome,
}

/// The reason why a version is rejected.
enum RejectedVersion {
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
fn failed(kind: EntryKind, name: impl Into<String>, cause: &ResolveError) -> ReportItem {
    ReportItem::new(
        kind,
        name.into(),
        ItemStatus::Failed,
        Some(cause.message.clone()),
    )
}

impl UpdateRun<'_> {
    /// Whether the request selects something with one of these names. Records the patterns that
    /// match.
    fn is_selected(&self, names: &[&str]) -> bool {
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
    fn unused_only(&self) -> Vec<String> {
        let used = locked(&self.used_only);
        let patterns = self.request.only.iter().enumerate();
        patterns
            .filter(|(at, _)| !used.contains(at))
            .map(|(_, pattern)| pattern.to_string())
            .collect()
    }

    /// The clock by which ages are computed.
    fn clock(&self) -> AgeClock {
        AgeClock::new(now(), self.lookups.resolver.server_clock_offset())
    }

    /// Loads the manifests with these texts instead of the files' own.
    fn load(&self, edited: &FileOverrides) -> Result<MergedManifest, LoadManifestError> {
        load_edited(self.request.paths, self.request.platforms, edited)
    }
}

/// Replaces the item's digest in the manifest by that of upstream. Returns whether the manifest
/// changed.
fn update_checksum(
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
fn added_items(old: &MergedManifest, new: &MergedManifest) -> Vec<RequestedItem> {
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
fn first_line(error: &LoadManifestError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// A version that moved or is held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct VersionMove {
    /// The name of the variable, the name of the item without its version, or the path of the list,
    /// trust root or TUF root.
    pub(crate) name: String,
    /// The position of the version, written as `file:line:column`.
    #[serde(serialize_with = "serialize_position")]
    #[schemars(with = "String")]
    pub(crate) at: SourceLocation,
    /// The update policy as it is written; `list` for a list, and `tuf` for a trust root or TUF
    /// root.
    pub(crate) policy: String,
    /// The version before the update; for a list, trust root or TUF root, the digest.
    pub(crate) from: String,
    /// The version after the update; `None` if no newer version can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// For a package: the source that offers the new version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// The names of the items that are requested only since the move, and of the sets of packages
    /// whose request changed.
    pub(crate) items: Vec<String>,
    /// Newer versions that cannot be used.
    pub(crate) held: Vec<HeldVersion>,
    /// Newer versions that wait for their minimum age, the newest first.
    pub(crate) waiting: Vec<WaitingVersion>,
}

fn serialize_position<S: Serializer>(
    at: &SourceLocation,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// A newer version that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HeldVersion {
    pub(crate) version: String,
    pub(crate) why: String,
}

/// A newer version that waits for its minimum age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WaitingVersion {
    pub(crate) version: String,
    /// When this project first saw the version, or the content that it has now.
    pub(crate) first_seen: String,
    /// The time from which the version can be used.
    pub(crate) until: String,
}

impl WaitingVersion {
    fn new(version: &str, wait: AgeWait) -> WaitingVersion {
        WaitingVersion {
            version: version.to_owned(),
            first_seen: wait.first_seen.to_string(),
            until: wait.until.to_string(),
        }
    }
}

/// A change upstream to an item whose version did not move: the item has another digest or, for a
/// file, another size, or it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamNotice {
    pub(crate) item: EntryKind,
    /// Whether the lock has a pin of the item.
    pub(crate) is_locked: bool,
    pub(crate) notice: Notice,
    /// The wait of a new digest that is not old enough.
    pub(crate) wait: Option<AgeWait>,
}

impl UpstreamNotice {
    pub(crate) fn name(&self) -> &str {
        &self.notice.name
    }

    /// Whether upstream no longer has the item.
    pub(crate) fn is_gone(&self) -> bool {
        self.notice.kind == NoticeKind::Gone
    }
}

/// The outcome of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateOutcome {
    /// Versions that moved or are held back: first trust roots, then lists, variables with `keep`,
    /// other versions, entries with `keep`, and at the end versions that only wait. Each group has
    /// the order of the manifests.
    pub(crate) moves: Vec<VersionMove>,
    /// Changes upstream to items whose versions did not move.
    pub(crate) noticed: Vec<UpstreamNotice>,
    /// One report item for each look-up that failed.
    pub(crate) failed: Vec<ReportItem>,
    /// The digest of each manifest, list, trust root and TUF root when the update read it. A file
    /// that differs when the results are written was edited meanwhile, and is left unchanged.
    pub(crate) before: BTreeMap<PathBuf, Digest>,
    /// The new texts of the files that change.
    pub(crate) edited: FileOverrides,
    /// The manifests, loaded with the texts in `edited`.
    pub(crate) manifest: MergedManifest,
    /// The items that must be locked again although their names are the same: their tag moved and
    /// their policy is `digest`.
    pub(crate) relock: BTreeSet<(EntryKind, String)>,
    /// The digests that the run looked up, whose age and signatures it checked.
    pub(crate) looked_up: BTreeMap<(EntryKind, String), Digest>,
    /// The objects of the tags of git repositories that the run listed, by URL and tag. Their age
    /// was checked.
    pub(crate) git_tags: BTreeMap<(String, String), ObjectId>,
    /// The first sights of versions after the run, and notices about their ages.
    pub(crate) ages: AgesOutcome,
    /// The patterns of `--only` that match nothing in the manifests.
    pub(crate) unused_only: Vec<String>,
    /// The path of the file of first sights.
    pub(crate) sights_path: PathBuf,
}

impl UpdateOutcome {
    /// Whether something is newer, moved or gone. Changes that wait for their minimum age do not
    /// count.
    pub(crate) fn has_news(&self) -> bool {
        self.noticed.iter().any(|noticed| noticed.wait.is_none())
            || self
                .moves
                .iter()
                .any(|one| one.to.is_some() || !one.held.is_empty())
    }

    /// One report item for each requested item and each failed look-up, for a report without a
    /// lock.
    pub(crate) fn items(&self) -> Vec<ReportItem> {
        let mut items: Vec<ReportItem> = requested_items(&self.manifest)
            .into_iter()
            .map(|RequestedItem { kind, name, .. }| {
                let gone = self
                    .noticed
                    .iter()
                    .find(|one| one.is_gone() && (one.item, one.name()) == (kind, &*name));
                let (status, reason) = match gone {
                    None => (ItemStatus::Present, None),
                    Some(UpstreamNotice {
                        is_locked: true, ..
                    }) => (
                        ItemStatus::Missing,
                        Some("upstream does not have it any more"),
                    ),
                    Some(_) => (ItemStatus::Missing, Some("upstream does not have it")),
                };
                ReportItem::new(kind, name, status, reason.map(str::to_owned))
            })
            .collect();
        self.add_failures(&mut items);
        items
    }

    /// Marks the items whose look-up failed, and adds those that `items` does not have.
    pub(crate) fn add_failures(&self, items: &mut Vec<ReportItem>) {
        for failed in &self.failed {
            match items
                .iter_mut()
                .find(|item| (item.kind, &item.name) == (failed.kind, &failed.name))
            {
                Some(item) => {
                    (item.status, item.reason) = (ItemStatus::Failed, failed.reason.clone())
                }
                None => items.push(failed.clone()),
            }
        }
    }

    /// The paths of the files that change.
    pub(crate) fn files(&self) -> Vec<&PathBuf> {
        let sights = self.ages.sights.as_ref().map(|_| &self.sights_path);
        self.edited.keys().chain(sights).collect()
    }
}
