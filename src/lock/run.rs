//! Locks everything that is wanted. A pin is kept without a request; the rest is resolved.

use super::change::Change;
use super::diff::{EndpointChange, diff, diff_endpoints};
use landfall_content::run_concurrently_by_host;
use landfall_item::lockfile::{Accepted, Lock, Unresolved};
use landfall_item::manifest::Wanted;
use landfall_item::{
    Ask, Contradiction, Exclude, Found, ItemKind, Pins, Resolver, Wishes, host_in, kinds,
};
use landfall_model::report::{ItemStatus, ReportItem};
use landfall_model::today;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The result of locking.
#[derive(Debug)]
pub struct Locked {
    /// The new lock.
    pub lock: Lock,
    /// One report item for each wish.
    pub items: Vec<ReportItem>,
    /// How its items differ from those of the old lock.
    pub changes: Vec<Change>,
    /// How its endpoints differ.
    pub endpoints: Vec<EndpointChange>,
}

macro_rules! lock {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// Locks everything that is wanted, and what that asks for in turn.
        pub(crate) async fn lock(wanted: &Wanted, old: Option<&Lock>, pins: Pins, resolver: &Resolver) -> Locked {
            let mut sorting = Sorting::new(wanted);
            let mut lock = Lock { version: 1, name: wanted.name.clone(), ..Lock::default() };
            let mut known = BTreeSet::new();
            let mut next = Wishes { $($section: wanted.$section.clone(),)* };
            // each round asks for names that no round before had, so there is an end
            loop {
                let (mut more, mut total) = (Wishes::default(), 0);
                $(total += next.$section.len() as u64;)*
                resolver.progress().begin("lock", total, 0);
                $(
                    {
                        let old = old.map(|old| old.$section.as_slice()).unwrap_or_default();
                        let found = find(&next.$section, old, pins, &sorting.accepted, resolver).await;
                        for (wish, found) in next.$section.iter().zip(found) {
                            let name = <$kind>::wished(wish).to_string();
                            let item = sorting.settle(&name, found);
                            known.insert((<$kind as ItemKind>::KIND, name));
                            if let Some(item) = item {
                                for ask in <$kind>::asks(wish, &item) {
                                    match ask {
                                        Ask::Image(image) => more.images.push(image),
                                        Ask::Chart(chart) => more.charts.push(chart),
                                    }
                                }
                                lock.$section.push(item);
                            }
                        }
                    }
                )*
                resolver.progress().end();
                let mut left = 0;
                $(
                    {
                        more.$section = new::<$kind>(more.$section, &wanted.exclude, resolver);
                        let is_new = |wish: &_| {
                            !known.contains(&(<$kind as ItemKind>::KIND, <$kind>::wished(wish).to_string()))
                        };
                        more.$section.retain(is_new);
                        left += more.$section.len();
                    }
                )*
                if left == 0 {
                    break;
                }
                next = more;
            }
            lock.endpoints.clone_from(&wanted.endpoints);
            lock.sort();
            lock.missing = sorting.missing;
            lock.unresolved = sorting.unresolved;
            let mut changes = old.map(|old| diff(old, &lock)).unwrap_or_default();
            changes.append(&mut sorting.gone);
            let endpoints = old.map(|old| diff_endpoints(old, &lock)).unwrap_or_default();
            Locked { lock, items: sorting.items, changes, endpoints }
        }
    };
}
kinds!(lock);

/// `wishes` by name, each once, without what is left out. Of two that contradict each other the
/// first counts.
fn new<K: ItemKind>(
    wishes: Vec<K::Wish>,
    exclude: &[Exclude],
    resolver: &Resolver,
) -> Vec<K::Wish> {
    let mut by_name: BTreeMap<K::Name, K::Wish> = BTreeMap::new();
    for wish in wishes {
        if exclude.iter().any(|exclude| K::is_excluded(&wish, exclude)) {
            continue;
        }
        match by_name.entry(K::wished(&wish).clone()) {
            Entry::Vacant(entry) => drop(entry.insert(wish)),
            Entry::Occupied(mut entry) => {
                if let Err(other) = K::join(entry.get_mut(), &wish) {
                    let (
                        name,
                        Contradiction {
                            field,
                            first,
                            second,
                        },
                    ) = (K::wished(&wish), other);
                    resolver.progress().note(&format!(
                        "the {field} of {name} is {first} in one chart and {second} in another: the first counts"
                    ));
                }
            }
        }
    }
    by_name.into_values().collect()
}

/// Resolves the wishes of one kind.
async fn find<K: ItemKind + Sync>(
    wishes: &[K::Wish],
    old: &[K],
    pins: Pins,
    accepted: &BTreeMap<&str, &Accepted>,
    resolver: &Resolver,
) -> Vec<Found<K>> {
    let old: BTreeMap<&K::Name, &K> = old.iter().map(|item| (item.key(), item)).collect();
    resolver
        .repositories()
        .expect(wishes.iter().filter_map(K::tagged));
    let at_once = K::AT_ONCE * resolver.limits().jobs;
    let host = |at: usize| host_in(&K::wished(&wishes[at]).to_string()).to_owned();
    let finding = run_concurrently_by_host(wishes.len(), at_once, host, async |at: usize| {
        let name = K::wished(&wishes[at]);
        let pinned = old.get(name).copied();
        let unasked = match pinned.filter(|_| accepted.contains_key(name.to_string().as_str())) {
            Some(pinned) => K::is_upstream(resolver, pinned).await.err(),
            None => None,
        };
        let found = match unasked {
            // a pin of what upstream has no more would fail at the pull: the loss is accepted
            Some(cause) if cause.is_gone => Found::Lost(None, cause),
            unasked => match (
                K::resolve(resolver, &wishes[at], pinned, pins).await,
                unasked,
            ) {
                (Found::Kept(item), Some(cause)) => Found::Lost(Some(item), cause),
                (found, _) => found,
            },
        };
        let found = match found {
            // sizes that a hostile server names: a lock with them could not be read again
            Found::New(item) => match item.fault() {
                Some(why) => Found::Lost(pinned.cloned(), why.into()),
                None => Found::New(item),
            },
            found => found,
        };
        resolver.progress().item(&name.to_string());
        match found {
            Found::Lost(Some(_), cause) if pins == Pins::Recall => Found::Lost(None, cause),
            found => found,
        }
    });
    finding.await
}

/// Sorts the results into lock, losses and report.
struct Sorting<'a> {
    accepted: BTreeMap<&'a str, &'a Accepted>,
    items: Vec<ReportItem>,
    missing: Vec<Accepted>,
    unresolved: Vec<Unresolved>,
    gone: Vec<Change>,
}

impl<'a> Sorting<'a> {
    fn new(wanted: &'a Wanted) -> Sorting<'a> {
        let accepted = wanted
            .missing
            .iter()
            .map(|lost| (lost.name.as_str(), lost))
            .collect();
        Sorting {
            accepted,
            items: Vec::new(),
            missing: Vec::new(),
            unresolved: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// What the lock keeps of a wish called `name`.
    fn settle<K: ItemKind>(&mut self, name: &str, found: Found<K>) -> Option<K> {
        let kind = K::KIND;
        let mut packages = 0;
        if let Found::Kept(value)
        | Found::New(value)
        | Found::Gone(value)
        | Found::Lost(Some(value), _) = &found
        {
            let all: HashSet<_> = value.packages().iter().map(|one| one.digest).collect();
            packages = all.len();
        }
        let item = |status, digest, reason| {
            let name = name.into();
            ReportItem {
                kind,
                name,
                digest,
                bytes: None,
                packages,
                status,
                reason,
            }
        };
        let digest = |value: &K| value.digest().clone();
        match found {
            Found::Kept(value) => {
                self.items
                    .push(item(ItemStatus::Present, Some(digest(&value)), None));
                Some(value)
            }
            Found::New(value) => {
                self.items
                    .push(item(ItemStatus::Done, Some(digest(&value)), None));
                Some(value)
            }
            Found::Gone(old) => {
                let (name, from) = (name.to_owned(), Some(digest(&old)));
                let reason =
                    Some("upstream does not have it any more; the old pin is kept".to_owned());
                self.items
                    .push(item(ItemStatus::Failed, from.clone(), reason));
                self.gone.push(Change {
                    from,
                    ..Change::of(kind, &name, "gone")
                });
                Some(old)
            }
            Found::Lost(Some(old), cause) => {
                let reason = format!("{}; the old pin is kept", cause.told);
                self.items
                    .push(item(ItemStatus::Failed, Some(digest(&old)), Some(reason)));
                Some(old)
            }
            Found::Lost(None, cause) => {
                match self.accepted.get(name) {
                    Some(accepted) if cause.is_gone => {
                        let over = accepted.until < today().to_string();
                        let status = if over {
                            ItemStatus::Missing
                        } else {
                            ItemStatus::Skipped
                        };
                        let reason = format!(
                            "{} (accepted until {}): {}",
                            accepted.reason, accepted.until, cause.told
                        );
                        self.items.push(item(status, None, Some(reason)));
                        self.missing.push((*accepted).clone());
                    }
                    accepted => {
                        let rule = match accepted {
                            Some(_) => {
                                "; `missing:` accepts the loss of what upstream says it does not have, and of nothing else"
                            }
                            None => "",
                        };
                        self.items
                            .push(item(ItemStatus::Missing, None, Some(cause.told + rule)));
                        self.unresolved.push(Unresolved {
                            kind,
                            name: name.into(),
                            cause: cause.recorded,
                        });
                    }
                }
                None
            }
        }
    }
}
