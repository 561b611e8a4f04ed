//! Finds out which items use which blobs.

use super::content::ItemContent;
use crate::{Digest, sum_sizes};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The blobs of all items, each with the items that use it.
pub(super) struct BlobUsage<'a> {
    blobs: HashMap<&'a Digest, BlobUsers>,
}

struct BlobUsers {
    size: u64,
    /// The items that use the blob, as indexes into the contents of the page.
    items: Vec<usize>,
}

/// A blob that several items use.
pub(super) struct SharedBlob<'a> {
    pub(super) digest: &'a Digest,
    pub(super) size: u64,
    /// Indexes of the items that use it.
    pub(super) items: &'a [usize],
}

impl SharedBlob<'_> {
    /// The bytes saved by storing the blob once.
    pub(super) fn saved(&self) -> u64 {
        self.size.saturating_mul(self.items.len() as u64 - 1)
    }
}

impl<'a> BlobUsage<'a> {
    pub(super) fn new(contents: &'a [ItemContent]) -> BlobUsage<'a> {
        let mut blobs: HashMap<&Digest, BlobUsers> = HashMap::new();
        for (index, item) in contents.iter().enumerate() {
            for (digest, size) in &item.blobs {
                let users = blobs.entry(digest).or_insert_with(|| BlobUsers {
                    size: *size,
                    items: Vec::new(),
                });
                users.items.push(index);
            }
        }
        BlobUsage { blobs }
    }

    /// The size of all blobs, each counted once.
    pub(super) fn unique_bytes(&self) -> u64 {
        sum_sizes(self.blobs.values().map(|users| users.size))
    }

    /// Whether exactly one item uses the blob.
    pub(super) fn is_unshared(&self, digest: &Digest) -> bool {
        self.blobs
            .get(digest)
            .is_some_and(|users| users.items.len() == 1)
    }

    /// The size of the blobs of `item` that no other item uses.
    pub(super) fn unshared_bytes(&self, item: &ItemContent) -> u64 {
        let unshared = item
            .blobs
            .iter()
            .filter(|(digest, _)| self.is_unshared(digest));
        sum_sizes(unshared.map(|(_, size)| *size))
    }

    /// The blobs that several items use, those that save most first.
    pub(super) fn shared(&self) -> Vec<SharedBlob<'_>> {
        let mut shared: Vec<SharedBlob<'_>> = self
            .blobs
            .iter()
            .filter(|(_, users)| users.items.len() > 1)
            .map(|(digest, users)| SharedBlob {
                digest,
                size: users.size,
                items: &users.items,
            })
            .collect();
        // sorted by digest too, so that the order is the same in every run: the map has no order
        shared.sort_by_key(|blob| (Reverse(blob.saved()), blob.digest));
        shared
    }
}
