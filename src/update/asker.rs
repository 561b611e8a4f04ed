//! Asks upstream what stands at the names of items, each name once in a run.

use landfall_content::run_concurrently_by_host;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::Wanted;
use landfall_item::{Cause, ItemKind, Resolver, Stand, host_in, kinds};
use landfall_model::document::Location;
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
    pub(super) demanded: Option<(Digest, Location)>,
    /// The image, where it has a tag.
    pub(super) tagged: Option<ImageRef>,
}

/// Asks upstream, and remembers the answers.
pub(super) struct Asker<'a> {
    pub(super) resolver: &'a Resolver,
    answers: BTreeMap<(EntryKind, String), Result<Stand, Cause>>,
}

macro_rules! wishes {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// Everything that is wanted.
        pub(super) fn wishes(wanted: &Wanted) -> Vec<Wish> {
            let mut all = Vec::new();
            $(
                all.extend(wanted.$section.iter().map(wish::<$kind>));
            )*
            all
        }

        /// Items that `after` wants in another way than `before`, of kinds whose content is chosen.
        pub(super) fn to_be_chosen(before: &Wanted, after: &Wanted) -> BTreeSet<(EntryKind, String)> {
            let mut names = BTreeSet::new();
            $(
                if <$kind as ItemKind>::IS_CHOSEN {
                    let changed = after.$section.iter().filter(|wish| !before.$section.contains(wish));
                    names.extend(changed.map(key::<$kind>));
                }
            )*
            names
        }

        impl Asker<'_> {
            /// Whether all that `names` name can be locked as `wanted` wants it; `old` is the last
            /// lock. Else the first that cannot, and why.
            pub(super) async fn can_lock(
                &self,
                wanted: &Wanted,
                old: Option<&Lock>,
                names: &BTreeSet<(EntryKind, String)>,
            ) -> Result<(), ((EntryKind, String), Cause)> {
                $(
                    for wish in wanted.$section.iter().filter(|wish| names.contains(&key::<$kind>(wish))) {
                        let is_it = |item: &&$kind| ItemKind::key(*item) == <$kind as ItemKind>::wished(wish);
                        let old = old.and_then(|lock| lock.$section.iter().find(is_it));
                        let tried = <$kind as ItemKind>::can_lock(self.resolver, wish, old).await;
                        tried.map_err(|cause| (key::<$kind>(wish), cause))?;
                    }
                )*
                Ok(())
            }

            /// Asks for those of `wanted` that are among `names` and were not asked for yet.
            pub(super) async fn ask(&mut self, wanted: &Wanted, names: &BTreeSet<(EntryKind, String)>) {
                $(
                    self.ask_kind::<$kind>(&wanted.$section, names).await;
                )*
            }
        }
    };
}
kinds!(wishes);

fn key<K: ItemKind>(wish: &K::Wish) -> (EntryKind, String) {
    (K::KIND, K::wished(wish).to_string())
}

fn wish<K: ItemKind>(wish: &K::Wish) -> Wish {
    Wish {
        kind: K::KIND,
        name: K::wished(wish).to_string(),
        policy: K::policy(wish).map(str::to_owned),
        demanded: K::demanded(wish).map(|(digest, at)| (digest.clone(), at.clone())),
        tagged: K::tagged(wish).cloned(),
    }
}

impl Asker<'_> {
    pub(super) fn new(resolver: &Resolver) -> Asker<'_> {
        Asker {
            resolver,
            answers: BTreeMap::new(),
        }
    }

    /// What upstream said; `None` where it was not asked.
    pub(super) fn answer(&self, wish: &Wish) -> Option<&Result<Stand, Cause>> {
        self.answers.get(&(wish.kind, wish.name.clone()))
    }

    async fn ask_kind<K: ItemKind + Sync>(
        &mut self,
        wishes: &[K::Wish],
        names: &BTreeSet<(EntryKind, String)>,
    ) {
        let open: Vec<&K::Wish> = wishes
            .iter()
            .filter(|wish| {
                names.contains(&key::<K>(wish)) && !self.answers.contains_key(&key::<K>(wish))
            })
            .collect();
        let resolver = self.resolver;
        let host = |at: usize| host_in(&K::wished(open[at]).to_string()).to_owned();
        let at_once = resolver.limits().jobs;
        let asking = run_concurrently_by_host(open.len(), at_once, host, async |at: usize| {
            let stand = K::stand(resolver, open[at]).await;
            resolver.progress().item(&K::wished(open[at]).to_string());
            (key::<K>(open[at]), stand)
        });
        self.answers.extend(asking.await);
    }
}
