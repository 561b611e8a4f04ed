//! What of some content is here. What must be hashed for that is hashed on all processors, with
//! progress.

use super::{BlobStore, EntryPart, LockEntry, WriteError};
use landfall_model::report::Progress;
use landfall_model::{Descriptor, Digest};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Everything that must be stored for the entries, each digest once.
pub fn unique_blobs(entries: impl Iterator<Item = LockEntry>) -> Vec<Descriptor> {
    let mut seen = HashSet::new();
    let parts = entries
        .flat_map(|entry| entry.parts)
        .filter(EntryPart::is_stored);
    parts
        .map(|part| part.descriptor)
        .filter(|descriptor| seen.insert(descriptor.digest.clone()))
        .collect()
}

/// Which of `wanted` are in `sink`, and good. With `rehash` all of it is hashed, whatever was
/// recorded when it came.
///
/// # Errors
/// When that cannot be found out.
pub fn present_blobs(
    sink: &dyn BlobStore,
    mut wanted: Vec<Descriptor>,
    rehash: bool,
    progress: &dyn Progress,
) -> Result<HashSet<Digest>, WriteError> {
    // the biggest first, so that all threads end at about the same time
    wanted.sort_by_key(|descriptor| Reverse(descriptor.size));
    let (to_hash, known): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|descriptor| sink.must_hash(descriptor, rehash));
    let next = AtomicUsize::new(0);
    let hash = || {
        let mut found = Vec::new();
        while let Some(descriptor) = to_hash.get(next.fetch_add(1, Ordering::Relaxed)) {
            if sink.holds(descriptor, rehash)? {
                found.push(descriptor.digest.clone());
            }
            progress.bytes(descriptor.size);
            progress.item(&descriptor.digest.to_string());
        }
        Ok(found)
    };
    let mut here = HashSet::new();
    if !to_hash.is_empty() {
        let bytes = to_hash.iter().map(|descriptor| descriptor.size).sum();
        progress.begin("check", to_hash.len() as u64, bytes);
        let threads = thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(to_hash.len());
        let hashed: Result<Vec<Vec<Digest>>, WriteError> = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(hash)).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        progress.end();
        here.extend(hashed?.into_iter().flatten());
    }
    here.extend(sink.held(known)?);
    Ok(here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Progress for Told {
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
        let told = Told::default();
        let count = |store: &DiskStore, rehash| {
            present_blobs(store, wanted.clone(), rehash, &told)
                .unwrap()
                .len()
        };
        assert_eq!(
            (count(&store, false), told.0.lock().unwrap().len()),
            (18, 0),
            "what is recorded is believed"
        );
        std::fs::remove_file(dir.path().join(".landfall/verified")).unwrap();
        let copied = DiskStore::open(dir.path()).unwrap();
        std::fs::write(copied.path(&wanted[3].digest), "other").unwrap();
        assert_eq!(count(&copied, false), 17);
        assert_eq!(*told.0.lock().unwrap(), ["check 18 180"]);
        assert_eq!(count(&copied, false), 17);
        assert_eq!(told.0.lock().unwrap().len(), 1);
        assert_eq!(
            (count(&copied, true), told.0.lock().unwrap()[1].as_str()),
            (17, "check 17 170")
        );
    }
}
