//! Finds out which blobs a store already has. Blobs that must be hashed for this are hashed on all
//! processors, with progress.

use super::{BlobStore, EntryPart, LockEntry, WriteError};
use landfall_model::report::Progress;
use landfall_model::{Descriptor, Digest, sum_sizes};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tracing::info;

/// Returns every blob and manifest that must be stored for the entries, each digest once.
pub fn unique_blobs(entries: impl Iterator<Item = LockEntry>) -> Vec<Descriptor> {
    let mut seen = HashSet::new();
    entries
        .flat_map(|entry| entry.parts)
        .filter(EntryPart::is_stored)
        .map(|part| part.descriptor)
        .filter(|descriptor| seen.insert(descriptor.digest.clone()))
        .collect()
}

/// Returns which of the `wanted` blobs `store` has intact. With `rehash`, all of them are hashed,
/// even if an earlier verification is recorded.
///
/// # Errors
/// If the store cannot be read.
pub fn present_blobs(
    store: &dyn BlobStore,
    mut wanted: Vec<Descriptor>,
    rehash: bool,
    progress: &dyn Progress,
) -> Result<HashSet<Digest>, WriteError> {
    // the biggest first, so that all threads end at about the same time
    wanted.sort_by_key(|descriptor| Reverse(descriptor.size));
    let (unhashed, recorded): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|descriptor| store.needs_hashing(descriptor, rehash));
    info!(
        to_hash = unhashed.len(),
        by_journal = recorded.len(),
        "checking which blobs are in the store"
    );
    let mut present = hash_in_parallel(store, &unhashed, rehash, progress)?;
    // on this thread: a look-up in the journal takes less time than starting a thread
    present.extend(store.present_blobs(recorded)?);
    info!(present = present.len(), "the store was checked");
    Ok(present)
}

/// Hashes `blobs` on all processors and returns those that are intact.
fn hash_in_parallel(
    store: &dyn BlobStore,
    blobs: &[Descriptor],
    rehash: bool,
    progress: &dyn Progress,
) -> Result<HashSet<Digest>, WriteError> {
    if blobs.is_empty() {
        return Ok(HashSet::new());
    }
    let next = AtomicUsize::new(0);
    let hash = || {
        let mut intact = Vec::new();
        while let Some(descriptor) = blobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if store.has_blob(descriptor, rehash)? {
                intact.push(descriptor.digest.clone());
            }
            progress.bytes(descriptor.size);
            progress.item(&descriptor.digest.to_string());
        }
        Ok(intact)
    };
    let bytes = sum_sizes(blobs.iter().map(|descriptor| descriptor.size));
    progress.begin("check", blobs.len() as u64, bytes);
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let hashed: Result<Vec<Vec<Digest>>, WriteError> = thread::scope(|scope| {
        let threads: Vec<_> = (0..processors.min(blobs.len()))
            .map(|_| scope.spawn(hash))
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(intact) => intact,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    progress.end();
    Ok(hashed?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;
    use std::sync::Mutex;

    #[derive(Default)]
    struct RecordedProgress(Mutex<Vec<String>>);

    impl Progress for RecordedProgress {
        fn begin(&self, what: &str, items: u64, bytes: u64) {
            self.0
                .lock()
                .unwrap()
                .push(format!("{what} {items} {bytes}"));
        }
        fn bytes(&self, _: u64) {}
        fn item(&self, _: &str) {}
        fn note(&self, _: &str) {}
        fn end(&self) {}
    }

    #[test]
    fn a_store_without_its_journal_is_hashed_once_with_progress() {
        let dir = tempfile::tempdir().unwrap();
        let contents: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 10]).collect();
        let blob = |bytes: &Vec<u8>| Descriptor {
            digest: Digest::sha256(bytes),
            size: bytes.len() as u64,
            media_type: "x/y".into(),
        };
        let wanted: Vec<Descriptor> = contents.iter().map(blob).collect();
        let store = DiskStore::open(dir.path()).unwrap();
        for bytes in &contents[..18] {
            store.put(&blob(bytes), bytes).unwrap();
        }
        let progress = RecordedProgress::default();
        let count = |store: &DiskStore, rehash| {
            present_blobs(store, wanted.clone(), rehash, &progress)
                .unwrap()
                .len()
        };
        assert_eq!(
            (count(&store, false), progress.0.lock().unwrap().len()),
            (18, 0),
            "a recorded verification counts"
        );
        std::fs::remove_file(dir.path().join(".landfall/verified")).unwrap();
        let copied = DiskStore::open(dir.path()).unwrap();
        std::fs::write(copied.path(&wanted[3].digest), "other").unwrap();
        assert_eq!(count(&copied, false), 17);
        assert_eq!(*progress.0.lock().unwrap(), ["check 18 180"]);
        assert_eq!(count(&copied, false), 17);
        assert_eq!(progress.0.lock().unwrap().len(), 1);
        assert_eq!(
            (count(&copied, true), progress.0.lock().unwrap()[1].as_str()),
            (17, "check 17 170")
        );
    }
}
