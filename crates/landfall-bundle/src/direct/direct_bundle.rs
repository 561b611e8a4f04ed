//! The shared state of a direct bundle: plan, file, index, and the content that has arrived.

use super::journal::DirectJournal;
use super::reused_bundle::ReusedBundle;
use crate::format::contents::{ContentsIndex, PackOptions};
use crate::format::hash::FrameRecord;
use crate::plan::pack_plan::PackPlan;
use crate::read::bundle::Bundle;
use landfall_content::store::DiskStore;
use landfall_model::sign::Signer;
use landfall_model::{Digest, locked};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A bundle that is written directly from upstream, without a store in between. Clones share its
/// state.
#[derive(Debug, Clone)]
pub struct DirectBundle(pub(super) Arc<DirectState>);

pub(super) struct DirectState {
    pub plan: Arc<PackPlan>,
    pub options: PackOptions,
    pub out: PathBuf,
    /// `OUT.partial`, the file that is being written.
    pub path: PathBuf,
    pub file: Arc<File>,
    pub signer: Option<Arc<Signer>>,
    pub journal: DirectJournal,
    pub spool: DiskStore,
    pub store: Option<DiskStore>,
    /// The earlier bundle with this name, whose blobs are reused.
    pub old: Option<Bundle>,
    /// An unfinished bundle for another lock, whose blobs are reused.
    pub reuse: Option<ReusedBundle>,
    /// The part of the contents index that the lock determines, with the offsets of stored entries.
    pub contents: ContentsIndex,
    /// The index of the first compressed entry in the plan.
    pub compressed: usize,
    /// The index of each blob's entry in the plan.
    pub entry_indexes: HashMap<Digest, usize>,
    /// The image indexes from which trimmed indexes are computed, each with the entries of its
    /// trimmed indexes.
    pub untrimmed: HashMap<Digest, Vec<usize>>,
    /// The frames of the complete stored blobs, by the index of their entry.
    pub stored: Mutex<HashMap<usize, Vec<FrameRecord>>>,
    pub compressed_entries: Mutex<CompressedEntries>,
    pub arrivals: (Mutex<Arrivals>, Condvar),
}

/// The compressed entries that are written, in their order.
#[derive(Debug)]
pub(super) struct CompressedEntries {
    /// The frames of each entry, including header and padding.
    pub frames: Vec<Vec<FrameRecord>>,
    /// The file offset of the next entry.
    pub end: u64,
}

/// The content that has arrived and can be compressed.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    pub here: HashSet<Digest>,
    /// Whether no more content arrives.
    pub closed: bool,
}

impl std::fmt::Debug for DirectState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl DirectBundle {
    /// Declares that no more content arrives, so that [`DirectBundle::compress`] can return.
    pub fn close(&self) {
        self.0
            .arrivals
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            // a thread that waits for content would otherwise wait forever
            .closed = true;
        self.0.arrivals.1.notify_all();
    }
}

impl DirectState {
    pub(super) fn compressed_entries(&self) -> MutexGuard<'_, CompressedEntries> {
        locked(&self.compressed_entries)
    }

    /// Records that a stored blob is complete, with these frames.
    pub(super) fn arrived(&self, digest: &Digest, frames: Vec<FrameRecord>) {
        if let Some(&entry_index) = self.entry_indexes.get(digest) {
            locked(&self.stored).insert(entry_index, frames);
        }
        if let Some(reuse) = &self.reuse {
            // frees the space of the copy now, because both files together may not fit on the disk
            reuse.drop_copy(digest);
        }
    }

    /// The stores that may contain content already, the spool first.
    pub(super) fn disks(&self) -> impl Iterator<Item = &DiskStore> {
        std::iter::once(&self.spool).chain(&self.store)
    }

    /// Makes the stores hash a blob again, so that they remove it if it is damaged.
    pub(super) fn distrust(&self, digest: &Digest) {
        if let Some(&entry_index) = self.entry_indexes.get(digest) {
            let size = self.plan.entries[entry_index].descriptor.size;
            self.disks()
                .for_each(|disk| drop(disk.rehash(digest, size)));
        }
    }
}
