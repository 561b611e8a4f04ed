//! One file a kind of item: what an item of that kind is made of, and where its parts come from.

mod collision;
mod file;
mod image;

pub use collision::{Collision, collision};

use crate::content::Entry;
use crate::lockfile::Lock;

/// Every entry of `lock` taken apart, in the lock's order: images, then files.
pub fn entries(lock: &Lock) -> Vec<Entry> {
    each(lock).collect()
}

/// As [`entries`], one at a time: together they take more memory than the lock.
pub fn each(lock: &Lock) -> impl Iterator<Item = Entry> {
    lock.images.iter().map(image::entry).chain(lock.files.iter().map(file::entry))
}

/// One of the [`entries`], by its place among them.
pub fn entry(lock: &Lock, at: usize) -> Entry {
    match lock.images.get(at) {
        Some(image) => image::entry(image),
        None => file::entry(&lock.files[at - lock.images.len()]),
    }
}
