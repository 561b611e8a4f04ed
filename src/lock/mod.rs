//! Resolves the names in a manifest to digests, each by its kind, and compares locks.
//!
//! Start at [`lock`]. Items that were locked before keep their pins without a request, unless the
//! [`PinPolicy`] requires one. Charts may add images and other charts, and git repositories may add
//! their submodules, so locking runs in rounds.
//!
//! [`PinPolicy`]: landfall_item::PinPolicy

mod chart_images;
mod diff;

use landfall_content::store::DiskStore;
use landfall_content::{WriteError, run_concurrently_by_host};
use landfall_item::lockfile::{
    AcceptedLoss, Lock, LockedKind, UnresolvedItem, lost_referrer_item, lost_referrer_name,
    url_conflicts,
};
use landfall_item::manifest::MergedManifest;
use landfall_item::{
    DependencyRequest, Exclusion, FieldConflict, GitRequest, ItemKind, ItemRequest, ItemRequests,
    LockedItem, LockedPackageSet, LostReferrer, PinPolicy, RequestVisitor, ResolveOutcome,
    Resolver, host_in,
};
use landfall_model::report::{EntryKind, ItemStatus, Progress, ReportItem};
use landfall_model::today;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Display;

pub(crate) use self::chart_images::ChartImages;
pub(crate) use self::diff::{
    DiffSide, EndpointChange, LockChange, PackageChange, add_changelogs, diff, diff_endpoints,
    diff_sides,
};

/// The outcome of locking: the lock, and what to report.
#[derive(Debug)]
pub struct Locked {
    /// The new lock.
    pub lock: Lock,
    /// One report item for each requested item, including those that could not be resolved.
    pub items: Vec<ReportItem>,
    /// The differences from the items of the old lock; empty without an old lock.
    pub changes: Vec<LockChange>,
    /// The differences from the endpoints of the old lock; empty without an old lock.
    pub endpoints: Vec<EndpointChange>,
}

/// Locks everything that the manifests request, and the dependencies of those items. The items
/// `moved` are resolved again, whatever `pins` says, and their old pins do not restrict the result.
/// They stay in the lock if they cannot be resolved.
pub(crate) async fn lock(
    manifest: &MergedManifest,
    old: Option<&Lock>,
    moved: &BTreeSet<(EntryKind, String)>,
    pins: PinPolicy,
    resolver: &Resolver,
) -> Locked {
    let empty = Lock::default();
    let mut run = LockRun {
        resolver,
        pins,
        moved,
        old: old.unwrap_or(&empty),
        lock: Lock {
            version: 1,
            name: manifest.name.clone(),
            ..Lock::default()
        },
        results: SortedResults::new(manifest),
        known: BTreeSet::new(),
        repositories: BTreeMap::new(),
        postponed: BTreeMap::new(),
        dependencies: Vec::new(),
    };
    let earlier = run.old.lost_referrers();
    let earlier = earlier.map(|(item, lost)| (item, lost.name.as_str()));
    resolver.lost_referrers.retry(earlier);
    let mut requests = manifest.requests.clone();
    run.postpone_submodules(&mut requests.git);
    // Each round requests only names that no earlier round requested, or more of a git repository
    // than before. So the loop ends.
    loop {
        let names: Vec<(EntryKind, String)> = requests
            .summaries()
            .map(|request| (request.kind, request.name))
            .collect();
        resolver.progress.begin("lock", names.len() as u64, 0);
        run.known.extend(names);
        let repositories = requests.git.iter();
        let repositories = repositories.map(|request| (request.name.clone(), request.clone()));
        run.repositories.extend(repositories);
        requests.visit(&mut run).await;
        resolver.progress.end();
        requests = run.new_dependencies(&manifest.exclude);
        if requests == ItemRequests::default() {
            // no other repository has them as submodules any more
            requests.git = std::mem::take(&mut run.postponed).into_values().collect();
        }
        if requests == ItemRequests::default() {
            break;
        }
    }
    let LockRun {
        mut lock,
        mut results,
        ..
    } = run;
    lock.endpoints.clone_from(&manifest.endpoints);
    // later rounds append to the sections, but a lock lists its items by name
    lock.sort();
    for conflict in url_conflicts(&lock) {
        resolver.progress.note(&conflict);
    }
    results.drop_referrers_of_others(&lock);
    lock.missing = results.missing;
    lock.unresolved = results.unresolved;
    let mut changes = old.map(|old| diff(old, &lock)).unwrap_or_default();
    changes.append(&mut results.gone);
    let endpoints = old
        .map(|old| diff_endpoints(old, &lock))
        .unwrap_or_default();
    Locked {
        lock,
        items: results.items,
        changes,
        endpoints,
    }
}

/// The state that all rounds of one `lock` share.
struct LockRun<'a> {
    resolver: &'a Resolver,
    pins: PinPolicy,
    /// The items whose pins the run replaces.
    moved: &'a BTreeSet<(EntryKind, String)>,
    old: &'a Lock,
    lock: Lock,
    results: SortedResults<'a>,
    /// Every name that was requested so far.
    known: BTreeSet<(EntryKind, String)>,
    /// The requests for git repositories so far, by name.
    repositories: BTreeMap<String, GitRequest>,
    /// The requests for git repositories that wait for the requests of those that may have them as
    /// submodules, by name.
    postponed: BTreeMap<String, GitRequest>,
    /// The dependencies of the items that this round locked.
    dependencies: Vec<DependencyRequest>,
}

impl RequestVisitor for LockRun<'_> {
    /// Resolves the requests and adds the items to the lock.
    async fn visit<R>(&mut self, requests: &[R])
    where
        R: ItemRequest,
        R::Item: LockedKind,
    {
        let outcomes = self.resolve_all(requests).await;
        for (request, outcome) in requests.iter().zip(outcomes) {
            let name = request.name().to_string();
            let is_current = matches!(outcome, ResolveOutcome::Kept(_) | ResolveOutcome::New(_));
            if let Some(item) = self.results.add(&name, outcome) {
                self.dependencies.extend(request.dependencies(&item));
                R::Item::section_mut(&mut self.lock).push(item);
            }
            let lost = self.resolver.lost_referrers.of(&name);
            match lost.filter(|_| is_current) {
                Some(lost) => self.results.add_lost_referrers(&name, lost),
                // no look-up, so the losses of the old lock are still lost
                None => self.results.keep_lost_referrers(&name, self.old),
            }
        }
    }
}

impl LockRun<'_> {
    /// Resolves the requests of one kind, several concurrently.
    async fn resolve_all<R>(&self, requests: &[R]) -> Vec<ResolveOutcome<R::Item>>
    where
        R: ItemRequest,
        R::Item: LockedKind,
    {
        let old: BTreeMap<&R::Name, &R::Item> = R::Item::section(self.old)
            .iter()
            .map(|item| (item.key(), item))
            .collect();
        let resolver = self.resolver;
        // How many pages of a tag list are worth reading depends on how many images of the
        // repository are requested, so all requests are counted before the first is resolved.
        let tagged = requests.iter().filter_map(R::tagged_reference);
        resolver.repositories.expect_images(tagged);
        let limit = R::CONCURRENCY * resolver.limits().jobs;
        let host = |at: usize| host_in(&requests[at].name().to_string()).to_owned();
        run_concurrently_by_host(requests.len(), limit, host, async |at: usize| {
            let request = &requests[at];
            let pinned = old.get(request.name()).copied();
            let outcome = self.resolve(request, pinned).await;
            resolver.progress.item(&request.name().to_string());
            outcome
        })
        .await
    }

    async fn resolve<R: ItemRequest>(
        &self,
        request: &R,
        pinned: Option<&R::Item>,
    ) -> ResolveOutcome<R::Item> {
        // A pin is normally kept without a request. But if the manifest accepts the loss of the
        // item, the lock must record whether it is lost.
        let name = request.name().to_string();
        let is_moved = self.moved.contains(&(R::Item::KIND, name.clone()));
        // the old pin, if it may stay although the request cannot be resolved
        let fallback = pinned.filter(|old| request.accepts(old, self.resolver));
        // the packs of a git repository stay, and one with the new commits is added
        let is_extended = is_moved && R::Item::KIND == EntryKind::Git;
        let pinned = pinned.filter(|_| !is_moved || is_extended);
        let pins = if is_extended {
            PinPolicy::Refresh
        } else {
            self.pins
        };
        let is_accepted_loss = self.results.accepted.contains_key(name.as_str());
        let checked = pinned.filter(|old| is_accepted_loss && !old.as_item().is_local());
        let upstream_error = match checked {
            Some(pinned) => R::check_upstream(self.resolver, pinned).await.err(),
            None => None,
        };
        if let Some(error) = &upstream_error
            && error.is_gone
        {
            // upstream no longer has the pinned item, so `pull` would fail: the loss is accepted
            return ResolveOutcome::Failed(None, error.clone());
        }
        let outcome = match request.resolve(self.resolver, pinned, pins).await {
            ResolveOutcome::Kept(item) => match upstream_error {
                Some(error) => ResolveOutcome::Failed(Some(item), error),
                None => ResolveOutcome::Kept(item),
            },
            // a hostile server may send sizes that would make the lock unreadable
            ResolveOutcome::New(item) => match self
                .moved_since_look_up(item.as_item())
                .filter(|_| is_moved || pinned.is_none())
                .or_else(|| self.moved_tag(item.as_item()))
                .or_else(|| item.as_item().implausibility())
            {
                Some(why) => ResolveOutcome::Failed(fallback.cloned(), why.into()),
                None => ResolveOutcome::New(item),
            },
            outcome => outcome,
        };
        match outcome {
            // with `Recall` there is no old lock of the user, only the result of an earlier run
            ResolveOutcome::Failed(Some(_), error) if self.pins == PinPolicy::Recall => {
                ResolveOutcome::Failed(None, error)
            }
            ResolveOutcome::Failed(None, error) if is_moved => {
                ResolveOutcome::Failed(fallback.cloned(), error)
            }
            outcome => outcome,
        }
    }

    /// The reason why `item` is not locked if an update looked up another digest, whose age and
    /// signatures it checked.
    fn moved_since_look_up(&self, item: LockedItem<'_>) -> Option<String> {
        let looked_up = self.resolver.looked_up(item.kind(), &item.name())?;
        let digest = item.upstream_digest();
        (*looked_up != *digest).then(|| {
            format!("upstream had {looked_up} when the update looked it up, and has {digest} now")
        })
    }

    /// The reason why a git repository is not locked if an update listed another object for one of
    /// its tags, whose age it checked.
    fn moved_tag(&self, item: LockedItem<'_>) -> Option<String> {
        let LockedItem::Git(repository) = item else {
            return None;
        };
        repository.refs.iter().find_map(|one| {
            let tag = one.name.strip_prefix("refs/tags/")?;
            let listed = self.resolver.git_tag(repository.url(), tag)?;
            (listed != one.id).then(|| {
                format!(
                    "the tag {tag} was {listed} when the update listed it, and is {} now",
                    one.id
                )
            })
        })
    }

    /// The requests for the dependencies of this round's items, without names that were already
    /// requested. A git repository is requested again if more of it is needed.
    fn new_dependencies(&mut self, exclude: &[Exclusion]) -> ItemRequests {
        let mut images = Vec::new();
        let mut charts = Vec::new();
        let mut git = Vec::new();
        for dependency in std::mem::take(&mut self.dependencies) {
            match dependency {
                DependencyRequest::Image(image) => images.push(image),
                DependencyRequest::Chart(chart) => charts.push(chart),
                DependencyRequest::Git(repository) => git.push(repository),
            }
        }
        ItemRequests {
            images: self.new_requests(images, exclude),
            charts: self.new_requests(charts, exclude),
            git: self.new_repositories(git, exclude),
            ..ItemRequests::default()
        }
    }

    /// Merges `requests` by name, without those that are excluded or already known.
    fn new_requests<R: ItemRequest>(&self, requests: Vec<R>, exclude: &[Exclusion]) -> Vec<R> {
        let mut requests = self.merged_requests(requests, exclude);
        requests.retain(|request| {
            let name = (R::Item::KIND, request.name().to_string());
            !self.known.contains(&name)
        });
        requests
    }

    /// Merges `requests` by name, without those that are excluded. If two requests contradict
    /// each other, the first one counts.
    fn merged_requests<R: ItemRequest>(&self, requests: Vec<R>, exclude: &[Exclusion]) -> Vec<R> {
        let mut by_name: BTreeMap<R::Name, R> = BTreeMap::new();
        for request in requests {
            if exclude
                .iter()
                .any(|exclusion| request.is_excluded_by(exclusion))
            {
                continue;
            }
            match by_name.entry(request.name().clone()) {
                Entry::Vacant(entry) => drop(entry.insert(request)),
                Entry::Occupied(mut entry) => {
                    if let Err(conflict) = entry.get_mut().merge(&request) {
                        self.note_conflict(request.name(), &conflict);
                    }
                }
            }
        }
        by_name.into_values().collect()
    }

    fn note_conflict(&self, name: &impl Display, conflict: &FieldConflict) {
        let FieldConflict {
            field,
            first,
            second,
        } = conflict;
        self.resolver.progress.note(&format!(
            "the {field} of {name} is {first} in one item and {second} in another: the first \
             is used"
        ));
    }
}

// The outcomes of the requests of a `lock` run.

/// The results, sorted into items of the report, losses and changes.
struct SortedResults<'a> {
    accepted: BTreeMap<&'a str, &'a AcceptedLoss>,
    items: Vec<ReportItem>,
    missing: Vec<AcceptedLoss>,
    unresolved: Vec<UnresolvedItem>,
    gone: Vec<LockChange>,
}

impl<'a> SortedResults<'a> {
    fn new(manifest: &'a MergedManifest) -> SortedResults<'a> {
        let accepted = manifest
            .missing
            .iter()
            .map(|lost| (lost.name.as_str(), lost))
            .collect();
        SortedResults {
            accepted,
            items: Vec::new(),
            missing: Vec::new(),
            unresolved: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Removes the outcome of a request that is resolved again.
    fn forget(&mut self, kind: EntryKind, name: &str) {
        self.items
            .retain(|item| item.kind != kind || item.name != name);
        self.unresolved
            .retain(|item| item.kind != kind || item.name != name);
        self.missing.retain(|item| item.name != name);
        self.gone
            .retain(|change| change.kind != kind || change.name != name);
    }

    /// Records the referrers of the item `name` that could not be read.
    fn add_lost_referrers(&mut self, name: &str, lost: Vec<LostReferrer>) {
        for LostReferrer { reference, cause } in lost {
            self.add_lost_referrer(
                lost_referrer_name(name, &reference),
                cause.message,
                cause.recorded,
            );
        }
    }

    /// Records the referrers of the item `name` that the old lock lists as lost.
    fn keep_lost_referrers(&mut self, name: &str, old: &Lock) {
        for (item, lost) in old.lost_referrers() {
            if item == name {
                self.add_lost_referrer(lost.name.clone(), lost.cause.clone(), lost.cause.clone());
            }
        }
    }

    fn add_lost_referrer(&mut self, name: String, reason: String, cause: String) {
        self.items.push(ReportItem::new(
            EntryKind::Referrer,
            name.clone(),
            ItemStatus::Missing,
            Some(reason),
        ));
        self.unresolved.push(UnresolvedItem {
            kind: EntryKind::Referrer,
            name,
            cause,
        });
    }

    /// Removes the lost referrers of items that `lock` does not have.
    fn drop_referrers_of_others(&mut self, lock: &Lock) {
        let names: HashSet<String> = lock.items().map(|item| item.name().into_owned()).collect();
        let is_of_lock = |kind, name: &str| {
            kind != EntryKind::Referrer
                || lost_referrer_item(name).is_some_and(|item| names.contains(item))
        };
        self.items.retain(|item| is_of_lock(item.kind, &item.name));
        self.unresolved
            .retain(|item| is_of_lock(item.kind, &item.name));
    }

    /// Records the outcome of the request called `name` and returns the item that the lock keeps.
    fn add<K: ItemKind>(&mut self, name: &str, found: ResolveOutcome<K>) -> Option<K> {
        let kind = K::KIND;
        let (item, status, reason) = match found {
            ResolveOutcome::Kept(item) => {
                let note = item.as_item().note();
                (Some(item), ItemStatus::Present, note)
            }
            ResolveOutcome::New(item) => {
                let note = item.as_item().note();
                (Some(item), ItemStatus::Done, note)
            }
            ResolveOutcome::Gone(old) => {
                self.gone.push(LockChange {
                    from: Some(old.as_item().digest().clone()),
                    ..LockChange::new(kind, name, "gone")
                });
                let reason = "upstream does not have it any more; the old pin is kept";
                (Some(old), ItemStatus::Failed, Some(reason.into()))
            }
            // the manifest says that such an item is not needed
            ResolveOutcome::Failed(_, cause) if cause.is_for_other_platforms => {
                (None, ItemStatus::Skipped, Some(cause.message))
            }
            ResolveOutcome::Failed(Some(old), cause) => {
                let reason = format!("{}; the old pin is kept", cause.message);
                (Some(old), ItemStatus::Failed, Some(reason))
            }
            ResolveOutcome::Failed(None, cause) => match self.accepted.get(name) {
                Some(accepted) if cause.is_gone => {
                    // dates are written as YYYY-MM-DD, so their texts have the same order
                    let is_expired = accepted.until < today().to_string();
                    let status = if is_expired {
                        ItemStatus::Missing
                    } else {
                        ItemStatus::Skipped
                    };
                    let reason = format!(
                        "{} (accepted until {}): {}",
                        accepted.reason, accepted.until, cause.message
                    );
                    self.missing.push((*accepted).clone());
                    (None, status, Some(reason))
                }
                accepted => {
                    // a network failure must not turn into an accepted loss
                    let rule = match accepted {
                        Some(_) => {
                            "; `missing:` applies only to items that upstream reports as not found"
                        }
                        None => "",
                    };
                    // the lock must be the same on every machine: see `ResolveError`
                    self.unresolved.push(UnresolvedItem {
                        kind,
                        name: name.into(),
                        cause: cause.recorded,
                    });
                    (None, ItemStatus::Missing, Some(cause.message + rule))
                }
            },
        };
        let locked = item.as_ref().map(K::as_item);
        let packages = match locked {
            Some(LockedItem::Packages(set)) => distinct_packages(set),
            _ => 0,
        };
        self.items.push(ReportItem {
            digest: locked.map(|item| item.digest().clone()),
            packages,
            ..ReportItem::new(kind, name.into(), status, reason)
        });
        item
    }
}

/// The number of packages in `set`. A package that several sources contain counts once.
fn distinct_packages(set: &LockedPackageSet) -> usize {
    let digests: HashSet<_> = set
        .packages()
        .iter()
        .map(|package| package.digest)
        .collect();
    digests.len()
}

// When `mirror` runs without a lock, saves the resolved items in the store, so that the next run
// needs fewer requests.

/// The path of the remembered lock, below the folder of the store.
const FILE: &str = ".landfall/resolved.lock";

/// Loads the items that earlier runs on this store resolved. The result is only a hint: an image in
/// it is used if upstream still has its digest and the manifests in the store agree with it.
pub(crate) fn recall(disk: &DiskStore, progress: &dyn Progress) -> Lock {
    let path = disk.dir().join(FILE);
    if !path.exists() {
        return Lock::default();
    }
    Lock::load(&path).unwrap_or_else(|error| {
        progress.note(&format!("every name is resolved again: {error}"));
        Lock::default()
    })
}

/// Saves the items of `lock`, and the items of `recalled` whose names `lock` lacks: runs with other
/// manifests may use the same store.
pub(crate) fn remember(
    disk: &DiskStore,
    mut recalled: Lock,
    lock: &Lock,
) -> Result<(), WriteError> {
    let new: BTreeSet<_> = lock
        .items()
        .map(|item| (item.kind(), item.name()))
        .collect();
    let before = recalled.to_text();
    recalled.retain(|item| !new.contains(&(item.kind(), item.name())));
    let items = lock.clone();
    // only resolved items save requests; the referrers that they lost are looked up again
    let kept: BTreeSet<String> = recalled
        .items()
        .map(|item| item.name().into_owned())
        .collect();
    recalled
        .unresolved
        .retain(|lost| lost_referrer_item(&lost.name).is_some_and(|item| kept.contains(item)));
    let unresolved = lock.lost_referrers().map(|(_, lost)| lost.clone());
    let unresolved = unresolved.collect();
    recalled.append(Lock {
        endpoints: Vec::new(),
        missing: Vec::new(),
        unresolved,
        ..items
    });
    recalled.version = lock.version;
    recalled.sort();
    let after = recalled.to_text();
    if after == before {
        Ok(())
    } else {
        disk.write(FILE, after.as_bytes())
    }
}
