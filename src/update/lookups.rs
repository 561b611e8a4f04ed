//! Looks up the names of items upstream, each name once per run.

use jiff::Timestamp;
use landfall_content::run_concurrently_by_host;
use landfall_item::lockfile::{Lock, LockedKind};
use landfall_item::manifest::MergedManifest;
use landfall_item::{
    ItemKind, ItemRequest, RequestVisitor, ResolveError, Resolver, UpstreamStatus, host_in,
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

fn key<R: ItemRequest>(request: &R) -> (EntryKind, String) {
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
        self.visit(manifest, names, LookupStep::Content).await;
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
        self.visit(manifest, names, LookupStep::Status).await;
    }

    /// Verifies the signatures of the items of `manifest` with these names. Their digests must have
    /// been looked up before. Afterwards `log_time` returns when the signatures were logged.
    pub(super) async fn look_up_log_times(
        &mut self,
        manifest: &MergedManifest,
        names: &BTreeSet<(EntryKind, String)>,
    ) {
        if self.resolver.signatures.is_empty() {
            return;
        }
        self.visit(manifest, names, LookupStep::LogTime).await;
    }

    async fn visit(
        &mut self,
        manifest: &MergedManifest,
        names: &BTreeSet<(EntryKind, String)>,
        step: LookupStep,
    ) {
        let mut visitor = LookupVisitor {
            lookups: self,
            names,
            step,
        };
        manifest.requests.visit(&mut visitor).await;
    }

    /// The time since which a transparency log has had a verified signature of the item.
    pub(super) fn log_time(&self, item: &RequestedItem) -> Option<Timestamp> {
        let key = (item.kind, item.name.clone());
        self.log_times.get(&key).copied().flatten()
    }
}

/// What is looked up about requests.
#[derive(Clone, Copy)]
enum LookupStep {
    Status,
    Content,
    LogTime,
}

/// Looks up the item of `request` upstream, unless it is next to the manifest.
async fn upstream_status(
    request: &impl ItemRequest,
    resolver: &Resolver,
) -> Result<UpstreamStatus, ResolveError> {
    let found = if request.is_local() {
        Ok((None, None))
    } else {
        request.look_up(resolver).await
    };
    match found {
        Ok((digest, size)) => Ok(UpstreamStatus::Present { digest, size }),
        Err(cause) if cause.is_gone => Ok(UpstreamStatus::Gone),
        Err(cause) => Err(cause),
    }
}

/// Does one step of the lookups of the requests with these names, kind by kind.
struct LookupVisitor<'s, 'a> {
    lookups: &'s mut UpstreamLookups<'a>,
    names: &'s BTreeSet<(EntryKind, String)>,
    step: LookupStep,
}

impl RequestVisitor for LookupVisitor<'_, '_> {
    async fn visit<R>(&mut self, requests: &[R])
    where
        R: ItemRequest,
        R::Item: LockedKind,
    {
        let (lookups, step) = (&*self.lookups, self.step);
        let is_known = |key: &(EntryKind, String)| match step {
            LookupStep::Status => lookups.results.contains_key(key),
            LookupStep::Content => lookups.contents.contains_key(key),
            LookupStep::LogTime => lookups.log_times.contains_key(key),
        };
        let mut pending: Vec<(&R, Option<&Digest>)> = Vec::new();
        for request in requests {
            let key = key(request);
            if !self.names.contains(&key) || is_known(&key) {
                continue;
            }
            match (step, lookups.results.get(&key)) {
                (LookupStep::Status, _) => pending.push((request, None)),
                (_, Some(Ok(UpstreamStatus::Present { digest, .. }))) => {
                    pending.push((request, digest.as_ref()));
                }
                _ => {}
            }
        }
        let resolver = lookups.resolver;
        let host = |at: usize| host_in(&pending[at].0.name().to_string()).to_owned();
        let limit = resolver.limits().jobs;
        let look_up = async |at: usize| {
            let (request, digest) = pending[at];
            let mut found = UpstreamLookups::new(resolver);
            match (step, digest) {
                (LookupStep::Status, _) => {
                    let status = upstream_status(request, resolver).await;
                    resolver.progress.item(&request.name().to_string());
                    found.results.insert(key(request), status);
                }
                (LookupStep::Content, _) => {
                    let checked = request.check_content(resolver, digest).await;
                    found.contents.insert(key(request), checked);
                }
                // Without a verified signature, the age of the digest counts from its first sight.
                // `lock` reports what is wrong with the signature.
                (LookupStep::LogTime, Some(digest)) => {
                    let time = request.logged_since(resolver, digest).await;
                    found.log_times.insert(key(request), time.ok().flatten());
                }
                (LookupStep::LogTime, None) => {}
            }
            found
        };
        let found = run_concurrently_by_host(pending.len(), limit, host, look_up).await;
        for found in found {
            self.lookups.results.extend(found.results);
            self.lookups.contents.extend(found.contents);
            self.lookups.log_times.extend(found.log_times);
        }
    }
}
