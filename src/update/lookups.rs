//! Looks up the names of items upstream, each name once per run.

use jiff::Timestamp;
use landfall_content::run_concurrently_by_host;
use landfall_item::lockfile::{Lock, LockedKind};
use landfall_item::manifest::MergedManifest;
use landfall_item::{
    ItemKind, RequestVisitor, ResolvableRequest, ResolveError, Resolver, UpdatableRequest,
    UpstreamStatus, host_in,
};
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef};
use std::collections::{BTreeMap, BTreeSet};

/// An item that the manifests request, with the parts of the request that an update uses.
#[derive(Debug, Clone)]
pub(super) struct RequestedItem {
    pub(super) kind: EntryKind,
    pub(super) name: String,
    /// The update policy of its entry, with the minimum age.
    pub(super) update: Option<UpdateRule>,
    /// The digest that the manifest demands, and where it is written.
    pub(super) demanded: Option<(Digest, SourceLocation)>,
    /// The image reference, if it has a tag.
    pub(super) tagged: Option<ImageRef>,
}

/// Looks up items upstream and keeps the results.
pub(super) struct UpstreamLookups<'a> {
    pub(super) resolver: &'a Resolver,
    results: BTreeMap<(EntryKind, String), Result<UpstreamStatus, ResolveError>>,
    /// Whether the content of an item can be locked. An item that is not in this map was not
    /// checked.
    contents: BTreeMap<(EntryKind, String), Result<(), ResolveError>>,
    /// The time since which a transparency log has had a verified signature of an item. An item
    /// that is not in this map was not looked up.
    log_times: BTreeMap<(EntryKind, String), Option<Timestamp>>,
}

/// Everything that the manifests request.
pub(super) fn requested_items(manifest: &MergedManifest) -> Vec<RequestedItem> {
    manifest
        .requests
        .summaries()
        .map(|request| RequestedItem {
            kind: request.kind,
            name: request.name,
            update: request.update_rule.cloned(),
            demanded: request
                .demanded_digest
                .map(|(digest, at)| (digest.clone(), at.clone())),
            tagged: request.tagged_reference.cloned(),
        })
        .collect()
}

/// The sets of packages whose request differs between `before` and `after`. Their packages must be
/// selected again, and only the solver can determine whether that is possible.
pub(super) fn changed_package_sets(
    before: &MergedManifest,
    after: &MergedManifest,
) -> BTreeSet<(EntryKind, String)> {
    let before = &before.requests.packages;
    after
        .requests
        .packages
        .iter()
        .filter(|request| !before.contains(request))
        .map(key)
        .collect()
}

fn key<R: ResolvableRequest>(request: &R) -> (EntryKind, String) {
    (R::Item::KIND, request.name().to_string())
}

impl RequestedItem {
    /// The rule of its entry, if the entry follows the digest of its tag.
    pub(super) fn digest_rule(&self) -> Option<&UpdateRule> {
        self.update.as_ref().filter(|rule| rule.policy == "digest")
    }
}

impl UpstreamLookups<'_> {
    pub(super) fn new(resolver: &Resolver) -> UpstreamLookups<'_> {
        UpstreamLookups {
            resolver,
            results: BTreeMap::new(),
            contents: BTreeMap::new(),
            log_times: BTreeMap::new(),
        }
    }

    /// The repositories whose refs differ between `before` and `after`, and must be signed by the
    /// rules or their entries.
    pub(super) fn changed_signed_repositories(
        &self,
        before: &MergedManifest,
        after: &MergedManifest,
    ) -> BTreeSet<(EntryKind, String)> {
        let before = &before.requests.git;
        let requests = after.requests.git.iter();
        let changed = requests.filter(|one| one.is_signed(self.resolver) && !before.contains(one));
        changed.map(key).collect()
    }

    /// The status of the item upstream; `None` if it was not looked up.
    pub(super) fn result(
        &self,
        item: &RequestedItem,
    ) -> Option<&Result<UpstreamStatus, ResolveError>> {
        self.results.get(&(item.kind, item.name.clone()))
    }

    /// The digests that were looked up.
    pub(super) fn digests(&self) -> BTreeMap<(EntryKind, String), Digest> {
        let found = self
            .results
            .iter()
            .filter_map(|(item, status)| match status {
                Ok(UpstreamStatus::Present { digest, .. }) => Some((item.clone(), digest.clone()?)),
                _ => None,
            });
        found.collect()
    }

    /// Checks that all sets of packages and repositories in `names` can be locked as `manifest`
    /// requests them; `old` is the last lock. Fails with the first that cannot be locked, and the
    /// reason.
    pub(super) async fn can_lock(
        &self,
        manifest: &MergedManifest,
        old: Option<&Lock>,
        names: &BTreeSet<(EntryKind, String)>,
    ) -> Result<(), ((EntryKind, String), ResolveError)> {
        for request in &manifest.requests.packages {
            if !names.contains(&key(request)) {
                continue;
            }
            let old =
                old.and_then(|lock| lock.packages.iter().find(|set| set.name == request.name));
            request
                .check_resolvable(self.resolver, old)
                .await
                .map_err(|error| (key(request), error))?;
        }
        for request in &manifest.requests.git {
            if names.contains(&key(request)) {
                let checked = request.check_content(self.resolver, None).await;
                checked.map_err(|error| (key(request), error))?;
            }
        }
        Ok(())
    }

    /// Checks that the content of each item in `names` can be locked as `manifest` requests it. The
    /// items must have been looked up before. Fails with the first item that cannot be locked, and
    /// the reason.
    pub(super) async fn check_contents(
        &mut self,
        manifest: &MergedManifest,
        names: &BTreeSet<(EntryKind, String)>,
    ) -> Result<(), ((EntryKind, String), ResolveError)> {
        let mut visitor = ContentVisitor {
            lookups: self,
            names,
        };
        manifest.requests.visit(&mut visitor).await;
        for name in names {
            if let Some(Err(cause)) = self.contents.get(name) {
                return Err((name.clone(), cause.clone()));
            }
        }
        Ok(())
    }

    /// Looks up the items of `manifest` with these names, except those that were looked up before.
    pub(super) async fn look_up(
        &mut self,
        manifest: &MergedManifest,
        names: &BTreeSet<(EntryKind, String)>,
    ) {
        let mut visitor = LookUpVisitor {
            lookups: self,
            names,
        };
        manifest.requests.visit(&mut visitor).await;
    }

    /// Verifies the signatures of the items of `manifest` with these names. Their digests must have
    /// been looked up before. Afterwards `log_time` returns when the signatures were logged.
    pub(super) async fn look_up_log_times(
        &mut self,
        manifest: &MergedManifest,
        names: &BTreeSet<(EntryKind, String)>,
    ) {
        if self.resolver.signatures().is_empty() {
            return;
        }
        let mut visitor = LogTimeVisitor {
            lookups: self,
            names,
        };
        manifest.requests.visit(&mut visitor).await;
    }

    /// The time since which a transparency log has had a verified signature of the item.
    pub(super) fn log_time(&self, item: &RequestedItem) -> Option<Timestamp> {
        let key = (item.kind, item.name.clone());
        self.log_times.get(&key).copied().flatten()
    }
}

/// Checks the contents of the requests with these names, kind by kind.
struct ContentVisitor<'s, 'a> {
    lookups: &'s mut UpstreamLookups<'a>,
    names: &'s BTreeSet<(EntryKind, String)>,
}

impl RequestVisitor for ContentVisitor<'_, '_> {
    async fn visit<R>(&mut self, requests: &[R])
    where
        R: ResolvableRequest,
        R::Item: LockedKind,
    {
        let lookups = &*self.lookups;
        let pending: Vec<(&R, Option<&Digest>)> = requests
            .iter()
            .filter(|request| {
                let key = key(*request);
                self.names.contains(&key) && !lookups.contents.contains_key(&key)
            })
            .filter_map(|request| match lookups.results.get(&key(request)) {
                Some(Ok(UpstreamStatus::Present { digest, .. })) => {
                    Some((request, digest.as_ref()))
                }
                _ => None,
            })
            .collect();
        let resolver = lookups.resolver;
        let host = |at: usize| host_in(&pending[at].0.name().to_string()).to_owned();
        let limit = resolver.limits().jobs;
        let checks = run_concurrently_by_host(pending.len(), limit, host, async |at: usize| {
            let (request, digest) = pending[at];
            (key(request), request.check_content(resolver, digest).await)
        });
        let checks = checks.await;
        self.lookups.contents.extend(checks);
    }
}

/// Looks up the log times of the requests with these names, kind by kind.
struct LogTimeVisitor<'s, 'a> {
    lookups: &'s mut UpstreamLookups<'a>,
    names: &'s BTreeSet<(EntryKind, String)>,
}

impl RequestVisitor for LogTimeVisitor<'_, '_> {
    async fn visit<R>(&mut self, requests: &[R])
    where
        R: ResolvableRequest,
        R::Item: LockedKind,
    {
        let lookups = &*self.lookups;
        let pending: Vec<(&R, &Digest)> = requests
            .iter()
            .filter(|request| {
                let key = key(*request);
                self.names.contains(&key) && !lookups.log_times.contains_key(&key)
            })
            .filter_map(|request| match lookups.results.get(&key(request)) {
                Some(Ok(UpstreamStatus::Present { digest, .. })) => {
                    Some((request, digest.as_ref()?))
                }
                _ => None,
            })
            .collect();
        let resolver = lookups.resolver;
        let host = |at: usize| host_in(&pending[at].0.name().to_string()).to_owned();
        let limit = resolver.limits().jobs;
        let times = run_concurrently_by_host(pending.len(), limit, host, async |at: usize| {
            let (request, digest) = pending[at];
            // Without a verified signature, the age of the digest counts from its first sight.
            // `lock` reports what is wrong with the signature.
            let time = request.logged_since(resolver, digest).await.ok().flatten();
            (key(request), time)
        });
        let times = times.await;
        self.lookups.log_times.extend(times);
    }
}

/// Looks up the requests with these names, kind by kind.
struct LookUpVisitor<'s, 'a> {
    lookups: &'s mut UpstreamLookups<'a>,
    names: &'s BTreeSet<(EntryKind, String)>,
}

impl RequestVisitor for LookUpVisitor<'_, '_> {
    async fn visit<R>(&mut self, requests: &[R])
    where
        R: ResolvableRequest,
        R::Item: LockedKind,
    {
        let pending: Vec<&R> = requests
            .iter()
            .filter(|request| {
                let key = key(*request);
                self.names.contains(&key) && !self.lookups.results.contains_key(&key)
            })
            .collect();
        let resolver = self.lookups.resolver;
        let host = |at: usize| host_in(&pending[at].name().to_string()).to_owned();
        let limit = resolver.limits().jobs;
        let lookups = run_concurrently_by_host(pending.len(), limit, host, async |at: usize| {
            let status = pending[at].upstream_status(resolver).await;
            resolver.progress().item(&pending[at].name().to_string());
            (key(pending[at]), status)
        });
        self.lookups.results.extend(lookups.await);
    }
}
