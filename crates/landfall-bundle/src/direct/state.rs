//! What the parts of a direct bundle share: its plan, its file, its index, and what has arrived.

use super::journal::Journal;
use super::reuse::Reuse;
use crate::format::contents::{Contents, PackOptions};
use crate::format::hash::Frame;
use crate::plan::pack_plan::PackPlan;
use crate::read::bundle::Bundle;
use landfall_content::store::DiskStore;
use landfall_model::Digest;
use landfall_model::sign::Signer;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A bundle that is being made straight from upstream. Clones share it.
#[derive(Debug, Clone)]
pub struct DirectBundle(pub(super) Arc<State>);

pub(super) struct State {
    pub plan: Arc<PackPlan>,
    pub options: PackOptions,
    pub out: PathBuf,
    /// The partial file.
    pub path: PathBuf,
    pub file: Arc<File>,
    pub signer: Option<Arc<Signer>>,
    pub journal: Journal,
    pub spool: DiskStore,
    pub store: Option<DiskStore>,
    /// The earlier bundle of this name, whose blobs are used again.
    pub old: Option<Bundle>,
    /// Blobs that were fetched for another lock.
    pub reuse: Option<Reuse>,
    /// The index as far as it follows from the lock, with the offsets of stored entries.
    pub contents: Contents,
    /// The place of the first compressed entry.
    pub compressed: usize,
    /// The places of all blobs.
    pub places: HashMap<Digest, usize>,
    /// Indexes that others are trimmed from, with the places of these.
    pub untrimmed: HashMap<Digest, Vec<usize>>,
    /// The frames of the stored blobs that are there, by place.
    pub stored: Mutex<HashMap<usize, Vec<Frame>>>,
    pub compressed_entries: Mutex<CompressedEntries>,
    pub arrivals: (Mutex<Arrivals>, Condvar),
}

/// The compressed entries that are written.
#[derive(Debug)]
pub(super) struct CompressedEntries {
    /// The frames of each, header and padding included.
    pub frames: Vec<Vec<Frame>>,
    /// Where the next one begins.
    pub end: u64,
}

/// What has arrived of the content that must be compressed.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub here: HashSet<Digest>,
    /// Nothing more arrives.
    pub closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl DirectBundle {
    /// Ends the arrivals, so that [`DirectBundle::compress`] may end.
    pub fn close(&self) {
        self.0
            .arrivals
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.0.arrivals.1.notify_all();
    }
}

impl State {
    pub(super) fn compressed_entries(&self) -> MutexGuard<'_, CompressedEntries> {
        self.compressed_entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a stored blob is there, in these frames.
    pub(super) fn arrived(&self, digest: &Digest, frames: Vec<Frame>) {
        if let Some(&place) = self.places.get(digest) {
            self.stored
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(place, frames);
        }
        if let Some(reuse) = &self.reuse {
            reuse.drop_copy(digest);
        }
    }

    /// The stores that may have content, so that it need not be fetched; the spool first.
    pub(super) fn disks(&self) -> impl Iterator<Item = &DiskStore> {
        std::iter::once(&self.spool).chain(&self.store)
    }

    /// Hashes damaged content again: a store removes what is wrong.
    pub(super) fn distrust(&self, digest: &Digest) {
        if let Some(&place) = self.places.get(digest) {
            let size = self.plan.entries[place].descriptor.size;
            self.disks()
                .for_each(|disk| drop(disk.rehash(digest, size)));
        }
    }
}
