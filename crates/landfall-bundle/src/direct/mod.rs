//! Writes a bundle directly from upstream, without a second copy of the stored blobs.
//!
//! The lock determines the offsets of stored blobs, so their bytes are written to their final
//! offsets in `OUT.partial` while they arrive, in any order ([`sink`]).
//! Blobs to be compressed follow them in the file, and pass through a spool ([`compress`]).
//! The [`journal`] and the spool are in `OUT.partial.work`. The result has the same bytes as the
//! bundle that `pack` makes from a store.
//!
//! Blobs that must be compressed are downloaded first, in the order of the plan, into a spool that
//! is a store of its own; one thread compresses entry after entry, and removes the spool's copy
//! once the entry is on disk and in the journal. The journal is not trusted: the content of an
//! earlier run is hashed again, blob by blob.

mod compress;
mod journal;
mod sink;

use self::journal::DirectJournal;
use crate::error::BundleError;
use crate::format::contents::{ContentsIndex, PackOptions};
use crate::format::frame::{self, FrameRecord};
use crate::format::header;
use crate::format::names::{FRONT_LEN, partial_path};
use crate::format::stored::{CHUNK, ContentForm, StoredReader, stored_len};
use crate::plan::{ContentSource, PackPlan, PlannedEntry};
use crate::read::Bundle;
use crate::read::verify::verify;
use crate::write::PackedBundle;
use crate::write::entry_writer::IndexBuilder;
use crate::write::publish::{claim, clear_work, publish, room, work_folder};
use crate::write::volume_writer::VolumeWriter;
use landfall_content::store::DiskStore;
use landfall_content::{BlobRead, ContentError, if_exists};
use landfall_model::report::Progress;
use landfall_model::sign::{PublicKey, Signer};
use landfall_model::{Digest, Limits, locked};
use landfall_os::{FileExt, allocated_bytes, punch_hole};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

/// A bundle that is written directly from upstream, without a store in between. Clones share its
/// state.
#[derive(Debug, Clone)]
pub struct DirectBundle(Arc<DirectState>);

#[derive(derive_more::Debug)]
#[debug("{}", path.display())]
struct DirectState {
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
    pub arrivals: Mutex<Arrivals>,
    /// Notified when the arrivals change.
    pub arrived: Condvar,
}

/// The content that has arrived.
#[derive(Debug, Default)]
struct Arrivals {
    pub blobs: HashSet<Digest>,
    /// Whether no more content arrives.
    pub is_closed: bool,
}

/// The compressed entries that are written, in their order.
#[derive(Debug)]
struct CompressedEntries {
    /// The frames of each entry, including header and padding.
    pub frames: Vec<Vec<FrameRecord>>,
    /// The file offset of the next entry.
    pub end: u64,
}

impl DirectBundle {
    /// Declares that no more content arrives, so that [`DirectBundle::compress`] can return.
    pub fn close(&self) {
        // a thread that waits for content would otherwise wait forever
        locked(&self.0.arrivals).is_closed = true;
        self.0.arrived.notify_all();
    }
}

impl DirectState {
    /// Records that a stored blob is complete, with these frames.
    fn arrived(&self, digest: &Digest, frames: Vec<FrameRecord>) {
        if let Some(&entry_index) = self.entry_indexes.get(digest) {
            locked(&self.stored).insert(entry_index, frames);
        }
        if let Some(reuse) = &self.reuse {
            // frees the space of the copy now, because both files together may not fit on the disk
            reuse.drop_copy(digest);
        }
    }

    /// The stores that may contain content already, the spool first.
    fn disks(&self) -> impl Iterator<Item = &DiskStore> {
        std::iter::once(&self.spool).chain(&self.store)
    }

    /// Makes the stores hash a blob again, so that they remove it if it is damaged.
    fn distrust(&self, digest: &Digest) {
        if let Some(&entry_index) = self.entry_indexes.get(digest) {
            let size = self.plan.entries[entry_index].descriptor.size;
            self.disks()
                .for_each(|disk| drop(disk.rehash(digest, size)));
        }
    }
}

// Computes the offsets of the stored entries from the lock alone.

/// The offsets of the entries of `plan` before the index `compressed`, and the offset of the first
/// compressed entry, which is at this index.
fn stored_offsets(plan: &PackPlan, compressed: usize) -> (Vec<u64>, u64) {
    let mut at = 0;
    let mut starts = Vec::new();
    for entry in &plan.entries[..compressed] {
        starts.push(at);
        let size = entry.descriptor.size;
        // the length of a stored frame depends only on the size of its content, so the content
        // itself is not needed here
        at += header::frames_around(&entry.name, size) + stored_len(size);
    }
    (starts, at)
}

/// The state of a direct bundle when it is opened.
#[derive(Debug)]
pub enum DirectStart {
    /// The bundle exists already, and its content was verified. Its signatures name these keys; the
    /// signatures were not verified.
    Complete(PackedBundle, Vec<PublicKey>),
    /// The bundle must be written, from the beginning or from where an earlier run stopped.
    Incomplete(DirectBundle),
}

impl DirectBundle {
    /// Begins the bundle of `plan` at `out`, or resumes the one that an earlier run left in
    /// `OUT.partial`. Content of `store`, of an earlier bundle at `out`, or of an unfinished bundle
    /// for another lock is not downloaded again. `signer` signs the bundle at the end.
    ///
    /// # Errors
    /// If another process is writing the bundle, if the bundle would exceed a limit of its readers,
    /// if the disk has too little space, or if the files cannot be created.
    pub fn begin(
        plan: Arc<PackPlan>,
        store: Option<DiskStore>,
        out: &Path,
        options: PackOptions,
        signer: Option<Arc<Signer>>,
        progress: &dyn Progress,
    ) -> Result<DirectStart, BundleError> {
        let partial = partial_path(out);
        let is_new = !partial.exists() && !work_folder(&partial).exists();
        let begun = DirectBundle::begin_or_resume(plan, store, out, options, signer, progress);
        if is_new && begun.is_err() {
            discard(out);
        }
        begun
    }

    fn begin_or_resume(
        plan: Arc<PackPlan>,
        store: Option<DiskStore>,
        out: &Path,
        options: PackOptions,
        signer: Option<Arc<Signer>>,
        progress: &dyn Progress,
    ) -> Result<DirectStart, BundleError> {
        let index = IndexBuilder::new(&plan, options);
        index.check_size(out, &Limits::default())?;
        let mut contents = index.contents;
        let (path, mut file) = claim(out)?;
        let work = work_folder(&path);
        let failed = BundleError::write(&path);
        let old = Bundle::open(out).ok();
        // the bundle may be complete already, from a run that was killed after publishing it
        if let Some(old) = &old
            && out.is_file()
            && has_same_plan(old.contents(), &contents)
            && let keys = old.signing_keys()
            && signer
                .as_ref()
                .is_none_or(|signer| keys.contains(signer.key()))
            && verify(old, progress).is_ok()
        {
            fs::remove_file(&path)
                .and_then(|()| clear_work(&path))
                .map_err(failed)?;
            return Ok(DirectStart::Complete(
                PackedBundle::one_file(old.digest(), old.bytes(), out),
                keys,
            ));
        }
        fs::create_dir_all(&work).map_err(failed)?;
        let journal_path = work.join("journal");
        // another release, level or lock gives other bytes, so writing cannot be resumed
        let of = format!(
            "landfall {} level {} lock {}",
            contents.landfall, options.level, plan.fingerprint
        );
        match journal::read(&journal_path).map_err(failed)? {
            Some((first, _)) if first == of => {}
            Some(_) => {
                ReusedBundle::set_aside(&path, &journal_path, &work).map_err(failed)?;
                file = claim(out)?.1;
            }
            // without a journal, the content of the file is unknown
            None => file.set_len(0).map_err(failed)?,
        }
        let compressed = plan
            .entries
            .iter()
            .position(|entry| entry.form == ContentForm::Compressed);
        let compressed = compressed.unwrap_or(plan.entries.len());
        let (starts, end) = stored_offsets(&plan, compressed);
        contents
            .entries
            .iter_mut()
            .zip(starts)
            .for_each(|(entry, start)| entry.offset = start);
        let blobs = plan.entries.iter().enumerate().skip(FRONT_LEN);
        let mut untrimmed: HashMap<Digest, Vec<usize>> = HashMap::new();
        for (entry_index, entry) in blobs.clone() {
            if let ContentSource::Trimmed { of, .. } = &entry.content {
                untrimmed
                    .entry(of.digest.clone())
                    .or_default()
                    .push(entry_index);
            }
        }
        let state = DirectState {
            options,
            out: out.into(),
            journal: DirectJournal::open(&journal_path, &of).map_err(failed)?,
            spool: DiskStore::open(&work.join("spool"))
                .map_err(|error| failed(io::Error::other(error)))?,
            store,
            old,
            reuse: ReusedBundle::open(&work),
            compressed,
            entry_indexes: blobs
                .map(|(entry_index, entry)| (entry.descriptor.digest.clone(), entry_index))
                .collect(),
            untrimmed,
            stored: Mutex::default(),
            compressed_entries: Mutex::new(CompressedEntries {
                frames: Vec::new(),
                end,
            }),
            arrivals: Mutex::default(),
            arrived: Condvar::new(),
            contents,
            plan,
            path,
            file: file.into(),
            signer,
        };
        // before the first byte is fetched
        state.check_room()?;
        state.recover();
        Ok(DirectStart::Incomplete(DirectBundle(Arc::new(state))))
    }
}

/// Removes the files of a bundle that could not be begun, unless another process writes it. Files
/// that cannot be removed do no harm.
fn discard(out: &Path) {
    if let Ok((path, locked)) = claim(out)
        && locked.metadata().is_ok_and(|found| found.len() == 0)
    {
        let _ = clear_work(&path).and_then(|()| fs::remove_file(&path));
    }
}

/// Whether two indexes are of bundles with the same release, options, features, lock, missing
/// items, series and serial. Entries are not compared: these fields determine them.
fn has_same_plan(one: &ContentsIndex, other: &ContentsIndex) -> bool {
    one.landfall == other.landfall
        && one.options == other.options
        && one.requires == other.requires
        && one.locks == other.locks
        && one.partial == other.partial
        && (&one.series, one.serial) == (&other.series, other.serial)
}

impl DirectState {
    /// Fails if the disk has less free space than the rest of the bundle may need. The largest
    /// compressed entry counts twice, because it can be in the spool and in the file at once.
    fn check_room(&self) -> Result<(), BundleError> {
        let compressed = &self.plan.entries[self.compressed..];
        let largest = compressed
            .iter()
            .map(|entry| entry.descriptor.size)
            .max()
            .unwrap_or(0);
        // the space in use rather than the length: the file has holes for content that has not
        // arrived
        let taken = self
            .file
            .metadata()
            .map_or(0, |data| allocated_bytes(&data))
            + self.reuse.as_ref().map_or(0, ReusedBundle::taken);
        room(
            self.plan
                .needed_bytes()
                .saturating_add(largest)
                .saturating_sub(taken),
            &self.out,
        )
    }
}

// Reuses an unfinished bundle that has the same file name but another lock: its complete stored
// blobs are not downloaded again. Each copy is removed once the blob is in the new file.

/// The unfinished file that was set aside, with the offset of the first frame and the size of each
/// complete blob.
#[derive(Debug)]
struct ReusedBundle {
    file: Arc<File>,
    whole: HashMap<Digest, (u64, u64)>,
}

impl ReusedBundle {
    /// Sets the file at `path` and its journal aside, and replaces an older file that was set
    /// aside. An empty file is not set aside: it may be from a run that failed before it wrote a
    /// byte, for example because the disk was too small.
    fn set_aside(path: &Path, journal: &Path, work: &Path) -> io::Result<()> {
        let aside = work.join("previous.journal");
        if fs::metadata(path)?.len() > 0 {
            // the older journal first: without it, the next run knows that this one was killed
            // before the journal at `journal` was set aside
            if_exists(fs::remove_file(&aside))?;
            fs::rename(path, work.join("previous"))?;
        }
        if aside.exists() {
            return fs::remove_file(journal);
        }
        fs::rename(journal, aside)
    }

    /// Opens the file that was set aside; `None` if there is none.
    fn open(work: &Path) -> Option<ReusedBundle> {
        let (_, known) = journal::read(&work.join("previous.journal")).ok()??;
        let file = File::options()
            .read(true)
            .write(true)
            .open(work.join("previous"))
            .ok()?;
        Some(ReusedBundle {
            file: file.into(),
            whole: known.whole,
        })
    }

    /// The disk space that the file occupies, in bytes.
    fn taken(&self) -> u64 {
        self.file
            .metadata()
            .map_or(0, |data| allocated_bytes(&data))
    }

    /// Frees the disk space of a blob, if the file system supports holes.
    fn drop_copy(&self, digest: &Digest) {
        if let Some((start, size)) = self.whole.get(digest) {
            // without holes the space is freed with the whole file, at the end
            let _ = punch_hole(&self.file, *start, stored_len(*size).max(1));
        }
    }
}

impl BlobRead for ReusedBundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        Ok(self.whole.get(digest).map(|(_, size)| *size))
    }

    /// Opens content without verifying it; the writer verifies the digest.
    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let &(start, size) = self
            .whole
            .get(digest)
            .ok_or_else(|| ContentError::missing(digest))?;
        Ok(Box::new(StoredReader {
            source: self.file.clone(),
            start,
            at: offset,
            size,
        }))
    }
}

// Completes a direct bundle: headers and padding around its stored blobs, the contents index, and
// finally its name.

/// A complete bundle that does not have its final name yet. If it is dropped without being
/// published, it becomes unfinished again.
pub struct UnpublishedBundle {
    /// `None` if the bundle has its final name, or may have it.
    state: Option<Arc<DirectState>>,
    path: PathBuf,
    out: PathBuf,
    packed: PackedBundle,
    /// The file offset at which the entries end.
    entries: u64,
}

impl DirectBundle {
    /// Writes headers, padding, index and signatures.
    ///
    /// # Errors
    /// If content is missing, or the file cannot be written or signed.
    pub fn complete(&self) -> Result<UnpublishedBundle, BundleError> {
        let state = &*self.0;
        let failed = BundleError::write(&state.out);
        let stored = locked(&state.stored);
        let compressed = locked(&state.compressed_entries);
        let mut index = IndexBuilder::new(&state.plan, state.options);
        let mut end = 0;
        for (entry_index, planned) in state.plan.entries.iter().enumerate() {
            let frames = match entry_index.checked_sub(state.compressed) {
                Some(compressed_index) => compressed.frames.get(compressed_index).cloned(),
                // computed content is written now, because nothing arrives for it
                None if matches!(planned.content, ContentSource::Bytes(_)) => Some(Vec::new()),
                None => stored.get(&entry_index).cloned(),
            };
            let mut frames = frames.ok_or_else(|| BundleError::Content {
                item: planned.item.clone(),
                source: ContentError::missing(&planned.descriptor.digest),
            })?;
            // compressed entries were written whole, with header and padding
            if entry_index < state.compressed {
                state.surround(planned, end, &mut frames).map_err(failed)?;
            }
            index.record(entry_index, end, &frames);
            end += index.contents.entries[entry_index].length;
        }
        let entries = end;
        let mut out = VolumeWriter::file(state.file.clone(), end, None);
        let digest = index.finish(&mut out, &state.out, state.signer.as_deref())?;
        state
            .file
            // an earlier run that was killed after it wrote its index may have left a longer file,
            // with other signatures
            .set_len(out.end)
            .and_then(|()| state.file.sync_all())
            .map_err(failed)?;
        let packed = PackedBundle::one_file(&digest, out.end, &state.out);
        Ok(UnpublishedBundle {
            path: state.path.clone(),
            out: state.out.clone(),
            state: Some(self.0.clone()),
            packed,
            entries,
        })
    }
}

impl UnpublishedBundle {
    /// Opens the bundle before it is published, to verify it.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(&self) -> Result<Bundle, BundleError> {
        Bundle::open(&self.path)
    }

    /// Gives the bundle its final name.
    ///
    /// # Errors
    /// If the file cannot be renamed, or the work folder cannot be removed.
    pub fn publish(mut self) -> Result<PackedBundle, BundleError> {
        // taken before the rename: after an error, the file may have its final name. Only the
        // locked file stays open, because some file systems of Windows neither replace nor remove
        // open files
        let locked = self.state.take().map(|state| state.file.clone());
        let failed = BundleError::write(&self.out);
        publish(&self.path, &self.out, &[], &[], None).map_err(failed)?;
        clear_work(&self.path).map_err(failed)?;
        drop(locked);
        Ok(self.packed.clone())
    }
}

impl Drop for UnpublishedBundle {
    fn drop(&mut self) {
        if let Some(state) = &self.state {
            // without index and signature the file cannot be mistaken for a bundle; the next run
            // writes them again
            let _ = state.file.set_len(self.entries);
        }
    }
}

impl DirectState {
    /// Writes the tar header and the padding of a stored entry at `at`, and its content if the plan
    /// contains it. Before the call, `frames` contains the frames of content that is already in the
    /// file; afterwards, it contains those of the whole entry.
    fn surround(
        &self,
        entry: &PlannedEntry,
        mut at: u64,
        frames: &mut Vec<FrameRecord>,
    ) -> io::Result<()> {
        let size = entry.descriptor.size;
        let mut all = Vec::with_capacity(frames.len() + 2);
        self.put_frame(&header::encode(&entry.name, size), &mut at, &mut all)?;
        if let ContentSource::Bytes(bytes) = &entry.content {
            for chunk in bytes.chunks(CHUNK) {
                self.put_frame(chunk, &mut at, &mut all)?;
            }
        }
        at += frames.iter().map(|frame| u64::from(frame.0)).sum::<u64>();
        all.append(frames);
        if header::padding(size) > 0 {
            self.put_frame(&vec![0; header::padding(size)], &mut at, &mut all)?;
        }
        *frames = all;
        Ok(())
    }

    /// Writes a stored frame with this content at `at`, and advances `at` past it.
    fn put_frame(
        &self,
        content: &[u8],
        at: &mut u64,
        records: &mut Vec<FrameRecord>,
    ) -> io::Result<()> {
        let frame = frame::stored(content);
        self.file.write_all_at(&frame, *at)?;
        *at += frame.len() as u64;
        records.push(FrameRecord::of(&frame));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_does_not_replace_the_one_that_was_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path();
        let (path, journal) = (work.join("B.partial"), work.join("journal"));
        let digest = Digest::sha256(b"a");
        let begin = |bytes: &[u8], lines: &str| {
            fs::write(&path, bytes).unwrap();
            fs::write(&journal, format!("landfall lock\n{lines}")).unwrap();
        };
        let size = || {
            let reused = ReusedBundle::open(work).unwrap();
            reused.stat(&digest).unwrap()
        };
        begin(b"content", &format!("{digest} whole 0 7\n"));
        ReusedBundle::set_aside(&path, &journal, work).unwrap();
        assert_eq!(size(), Some(7));
        // runs for other locks fail before their first byte
        for _ in 0..2 {
            begin(b"", "");
            ReusedBundle::set_aside(&path, &journal, work).unwrap();
            assert_eq!(size(), Some(7));
            assert!(!journal.exists());
        }

        // a run that is killed between the two renames is completed by the next one
        begin(b"content", &format!("{digest} whole 0 5\n"));
        fs::remove_file(work.join("previous.journal")).unwrap();
        fs::rename(&path, work.join("previous")).unwrap();
        fs::write(&path, "").unwrap();
        ReusedBundle::set_aside(&path, &journal, work).unwrap();
        assert_eq!(size(), Some(5));
    }
}
