//! Asks upstream what stands at the names of items, each name once in a run.

use landfall_content::run_concurrently_by_host;
use landfall_item::lockfile::{Lock, LockedKind};
use landfall_item::manifest::MergedManifest;
use landfall_item::{
    ItemKind, RequestVisitor, ResolvableRequest, ResolveError, Resolver, UpstreamStatus, host_in,
};
use landfall_model::document::SourceLocation;
use landfall_model::report::EntryKind;
use landfall_model::{Digest, ImageRef};
use std::collections::{BTreeMap, BTreeSet};

/// A name that manifests want, and what they say of it.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) kind: EntryKind,
    pub(super) name: String,
    /// Its own policy.
    pub(super) policy: Option<String>,
    /// The digest that it must have, and where it is written.
    pub(super) demanded: Option<(Digest, SourceLocation)>,
    /// The image, where it has a tag.
    pub(super) tagged: Option<ImageRef>,
}

/// Asks upstream, and remembers the answers.
pub(super) struct Asker<'a> {
    pub(super) resolver: &'a Resolver,
    answers: BTreeMap<(EntryKind, String), Result<UpstreamStatus, ResolveError>>,
}

/// Everything that the manifests request.
pub(super) fn wishes(wanted: &MergedManifest) -> Vec<Wish> {
    wanted
        .requests
        .summaries()
        .map(|request| Wish {
            kind: request.kind,
            name: request.name,
            policy: request.update_policy.map(str::to_owned),
            demanded: request
                .demanded_digest
                .map(|(digest, at)| (digest.clone(), at.clone())),
            tagged: request.tagged_reference.cloned(),
        })
        .collect()
}

/// The sets of packages that `after` requests in another way than `before`: their packages are
/// chosen anew, so only locking them shows whether they can be locked.
pub(super) fn to_be_chosen(
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

impl Asker<'_> {
    pub(super) fn new(resolver: &Resolver) -> Asker<'_> {
        Asker {
            resolver,
            answers: BTreeMap::new(),
        }
    }

    /// What upstream said; `None` where it was not asked.
    pub(super) fn answer(&self, wish: &Wish) -> Option<&Result<UpstreamStatus, ResolveError>> {
        self.answers.get(&(wish.kind, wish.name.clone()))
    }

    /// Checks that all sets of packages in `names` can be locked as `wanted` requests them; `old` is
    /// the last lock. Returns the first that cannot, and why.
    pub(super) async fn can_lock(
        &self,
        wanted: &MergedManifest,
        old: Option<&Lock>,
        names: &BTreeSet<(EntryKind, String)>,
    ) -> Result<(), ((EntryKind, String), ResolveError)> {
        for request in &wanted.requests.packages {
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
        Ok(())
    }

    /// Asks for those of `wanted` that are among `names` and were not asked for yet.
    pub(super) async fn ask(
        &mut self,
        wanted: &MergedManifest,
        names: &BTreeSet<(EntryKind, String)>,
    ) {
        let mut asking = AskRequests { asker: self, names };
        wanted.requests.visit(&mut asking).await;
    }
}

/// Asks upstream for the requests with these names.
struct AskRequests<'s, 'a> {
    asker: &'s mut Asker<'a>,
    names: &'s BTreeSet<(EntryKind, String)>,
}

impl RequestVisitor for AskRequests<'_, '_> {
    async fn visit<R>(&mut self, requests: &[R])
    where
        R: ResolvableRequest,
        R::Item: LockedKind,
    {
        let open: Vec<&R> = requests
            .iter()
            .filter(|request| {
                let key = key(*request);
                self.names.contains(&key) && !self.asker.answers.contains_key(&key)
            })
            .collect();
        let resolver = self.asker.resolver;
        let host = |at: usize| host_in(&open[at].name().to_string()).to_owned();
        let limit = resolver.limits().jobs;
        let asking = run_concurrently_by_host(open.len(), limit, host, async |at: usize| {
            let status = open[at].upstream_status(resolver).await;
            resolver.progress().item(&open[at].name().to_string());
            (key(open[at]), status)
        });
        self.asker.answers.extend(asking.await);
    }
}
