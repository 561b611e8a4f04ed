//! Finds out which blobs a store already has. Blobs that must be hashed for this are hashed on all
//! processors, with progress.

use crate::{BlobStore, EntryPart, LockEntry, WriteError};
use landfall_model::report::Progress;
use landfall_model::{Descriptor, Digest, locked, sum_sizes};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
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

// Remembers when the checksum of a frame was compared last. A frame that many clients read at the
// same time is in the page cache, where bits do not rot: comparing it again for each client would
// find nothing.

/// How long a comparison is valid.
const VALIDITY: Duration = Duration::from_mins(1);

/// The times at which the checksums of frames were compared, by the content that a frame belongs to
/// and the number of the frame in it.
#[derive(Debug)]
pub struct RecentChecks<K> {
    start: Instant,
    /// For each frame, the time of its comparison in seconds since `start`, plus 1; 0 if it was not
    /// compared.
    // 4 bytes per frame of 1 MiB: an `Instant` would take four times as much
    frames: Mutex<HashMap<K, Vec<u32>>>,
}

impl<K: Eq + Hash> Default for RecentChecks<K> {
    fn default() -> RecentChecks<K> {
        RecentChecks {
            start: Instant::now(),
            frames: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> RecentChecks<K> {
    /// Whether the frame was compared within the last minute and was right.
    pub fn has(&self, content: &K, frame: usize) -> bool {
        let frames = locked(&self.frames);
        let at = frames
            .get(content)
            .and_then(|frames| frames.get(frame))
            .copied()
            .unwrap_or(0);
        at > 0 && self.now() - at < VALIDITY.as_secs() as u32
    }

    /// Records that the frame was compared now and is right.
    pub fn add(&self, content: K, frame: usize) {
        let now = self.now();
        let mut frames = locked(&self.frames);
        let frames = frames.entry(content).or_default();
        if frames.len() <= frame {
            frames.resize(frame + 1, 0);
        }
        frames[frame] = now;
    }

    /// Forgets all frames of content that was removed.
    pub fn forget(&self, content: &K) {
        locked(&self.frames).remove(content);
    }

    fn now(&self) -> u32 {
        self.start.elapsed().as_secs() as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DiskStore;

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
        let blob = |bytes: &Vec<u8>| Descriptor::of(bytes, "x/y");
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

    #[test]
    fn a_comparison_is_valid_for_a_minute() {
        let mut checks = RecentChecks::default();
        checks.add(7, 3);
        assert!(
            checks.has(&7, 3) && !checks.has(&7, 2) && !checks.has(&7, 4) && !checks.has(&6, 3)
        );
        checks.start -= VALIDITY;
        assert!(!checks.has(&7, 3));
        checks.add(7, 3);
        checks.forget(&7);
        assert!(!checks.has(&7, 3));
    }
}
