//! The content of a lock: a section of items for each kind, and what it lacks. See
//! docs/reference/lock.md.

use super::endpoint::{self, Endpoint};
use crate::{ItemKind, LockedItem, kinds};
use landfall_content::LockEntry;
use landfall_model::Digest;
use landfall_model::report::EntryKind;
use serde::Deserialize;

macro_rules! document {
    ($($(#[doc = $doc:tt])* $section:ident: $kind:ty,)*) => {
        /// The content of `landfall.lock`. Lists are sorted by name.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Lock {
            /// Version of the format; 1.
            pub version: u32,
            /// What the manifests are called, where they share one name: the series of its bundles.
            #[serde(default)]
            pub name: Option<String>,
            $(
                /// The items of this kind.
                #[serde(default)]
                pub $section: Vec<$kind>,
            )*
            /// Hosts that cannot be mirrored and must stay reachable.
            #[serde(default)]
            pub endpoints: Vec<Endpoint>,
            /// Losses that the manifest accepts.
            #[serde(default)]
            pub missing: Vec<Accepted>,
            /// Items that could not be resolved, with the cause. A bundle of such a lock is
            /// partial.
            #[serde(default)]
            pub unresolved: Vec<Unresolved>,
        }

        impl Lock {
            /// All items, in the lock's order: section by section.
            pub fn items(&self) -> impl Iterator<Item = &dyn LockedItem> {
                let items = std::iter::empty();
                $(
                    let items = items.chain(self.$section.iter().map(|item| item as &dyn LockedItem));
                )*
                items
            }

            /// One item, by its position in [`items`](Lock::items).
            pub fn item(&self, at: usize) -> Option<&dyn LockedItem> {
                let mut before = 0;
                $(
                    {
                        if let Some(item) = self.$section.get(at - before) {
                            return Some(item);
                        }
                        before += self.$section.len();
                    }
                )*
                let _ = before;
                None
            }

            /// Keeps only the items for which `keep` returns true.
            pub fn retain(&mut self, keep: impl Fn(&dyn LockedItem) -> bool) {
                $(self.$section.retain(|item| keep(item));)*
            }

            /// Adds everything that `other` holds.
            pub fn append(&mut self, mut other: Lock) {
                $(self.$section.append(&mut other.$section);)*
                self.name = self.name.take().or(other.name.take());
                self.endpoints.append(&mut other.endpoints);
                self.missing.append(&mut other.missing);
                self.unresolved.append(&mut other.unresolved);
            }

            /// Frees the memory that appending reserved.
            pub(super) fn shrink(&mut self) {
                $(self.$section.shrink_to_fit();)*
            }

            /// A name that two items of one kind have, or two endpoints.
            pub(super) fn twice(&self) -> Option<String> {
                let mut twice = None;
                $(
                    {
                        let mut keys: Vec<_> = self.$section.iter().map(ItemKind::key).collect();
                        keys.sort_unstable();
                        let same = keys.windows(2).find(|pair| pair[0] == pair[1]);
                        twice = twice.or(same.map(|pair| pair[0].to_string()));
                    }
                )*
                twice.or_else(|| endpoint::twice(&self.endpoints))
            }

            /// Sorts items and endpoints by name.
            pub fn sort(&mut self) {
                self.endpoints.sort();
                $(self.$section.sort_by(|a, b| a.key().cmp(b.key()));)*
            }
        }
    };
}
kinds!(document);

impl Lock {
    /// The entry of every item, in the lock's order.
    pub fn entries(&self) -> Vec<LockEntry> {
        self.each_entry().collect()
    }

    /// As [`entries`](Lock::entries), one at a time: together they take more memory than the lock.
    pub fn each_entry(&self) -> impl Iterator<Item = LockEntry> {
        self.items().map(LockedItem::entry)
    }

    /// The digests of everything that the lock names, some of them more than once.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.each_entry()
            .flat_map(|entry| entry.parts)
            .map(|part| part.descriptor.digest)
    }

    /// The entry of one item, by its position in [`items`](Lock::items).
    ///
    /// # Panics
    /// When the lock has no such item.
    pub fn entry(&self, at: usize) -> LockEntry {
        self.item(at)
            .map_or_else(|| panic!("the lock has no item {at}"), LockedItem::entry)
    }
}

/// A loss that the manifest accepts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// What kind of item.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// Why it is accepted.
    pub reason: String,
    /// Last day on which it is accepted, `YYYY-MM-DD`.
    pub until: String,
}

/// An item that could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unresolved {
    /// What kind of item.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// Why.
    pub cause: String,
}
