//! A direct bundle as the sink of a pull: content is written to it, and content that is available
//! locally is read through it.

use super::{DirectBundle, DirectState};
use crate::format::frame::FrameRecord;
use crate::format::header;
use crate::format::stored::{FrameStream, runs, stored_len, stored_position};
use crate::plan::ContentSource;
use landfall_content::{
    BlobRead, BlobSink, BlobStore, ByteRange, ContentError, FollowerSender, IdleSlots, LocalSink,
    LocalStore, LockEntry, PartialBlob, VerifiedWriter, WriteError,
};
use landfall_model::{Descriptor, Digest, Limits, locked};
use landfall_os::FileExt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

impl DirectState {
    /// The local source of a blob: the stores, the earlier bundle, or the unfinished one that was
    /// set aside.
    fn near(&self, digest: &Digest) -> Option<&dyn BlobRead> {
        let size = self.plan.entries[*self.entry_indexes.get(digest)?]
            .descriptor
            .size;
        let disk = self
            .disks()
            .find(|disk| disk.has(digest, size).unwrap_or(false));
        if let Some(disk) = disk {
            return Some(disk);
        }
        let old = self.old.iter().map(|old| old as &dyn BlobRead);
        let reuse = self.reuse.iter().map(|reuse| reuse as &dyn BlobRead);
        old.chain(reuse)
            .find(|blobs| blobs.stat(digest).is_ok_and(|found| found == Some(size)))
    }
}

impl BlobRead for DirectBundle {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        self.0
            .near(digest)
            .map_or(Ok(None), |blobs| blobs.stat(digest))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        self.0
            .near(digest)
            .ok_or_else(|| ContentError::missing(digest))?
            .open(digest, offset)
    }
}

impl BlobStore for DirectBundle {
    fn has_blob(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
        let Descriptor { digest, size, .. } = descriptor;
        let state = &*self.0;
        if rehash {
            state.distrust(digest);
        }
        let Some(&entry_index) = state.entry_indexes.get(digest) else {
            return Ok(false);
        };
        let planned = &state.plan.entries[entry_index];
        // content that is computed from the plan is never downloaded
        if !matches!(planned.content, ContentSource::Store) {
            return Ok(true);
        }
        // a blob that is stored uncompressed always counts as absent here: `begin` hashes its bytes
        // in the file. Copies in stores are verified now
        if entry_index < state.compressed {
            state
                .disks()
                .try_for_each(|disk| disk.has(digest, *size).map(drop))?;
            return Ok(false);
        }
        let written_end = state.compressed + locked(&state.compressed_entries).frames.len();
        // an index is also needed until the indexes that are trimmed from it are written
        let trimmed = state.untrimmed.get(digest).into_iter().flatten();
        if trimmed
            .chain([&entry_index])
            .all(|&entry_index| entry_index < written_end)
        {
            return Ok(true);
        }
        for disk in state.disks() {
            if disk.has(digest, *size)? {
                self.mark_present(descriptor);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn needs_hashing(&self, descriptor: &Descriptor, rehash: bool) -> bool {
        let Some(&entry_index) = self.0.entry_indexes.get(&descriptor.digest) else {
            return false;
        };
        let is_from_store = matches!(
            self.0.plan.entries[entry_index].content,
            ContentSource::Store
        );
        (is_from_store || rehash)
            && self
                .0
                .disks()
                .any(|disk| disk.needs_hashing(descriptor, rehash))
    }

    fn put(&self, _: &Descriptor, _: &[u8]) -> Result<(), WriteError> {
        // the plan already determines all content that is computed rather than downloaded
        Ok(())
    }

    fn sink(
        self: Arc<Self>,
        limits: Limits,
        slots: Option<IdleSlots>,
        follower: Option<FollowerSender>,
    ) -> Arc<dyn BlobSink> {
        Arc::new(LocalSink::new(self, limits, slots, follower))
    }

    fn fetch_rank(&self, descriptor: &Descriptor) -> u64 {
        // content that must be compressed comes first, in the order of the bundle: it occupies the
        // spool until the entries before it are written
        match self.0.entry_indexes.get(&descriptor.digest) {
            Some(&entry_index) if entry_index >= self.0.compressed => entry_index as u64,
            _ => u64::MAX - descriptor.size,
        }
    }

    fn mark_present(&self, descriptor: &Descriptor) {
        let digest = descriptor.digest.clone();
        locked(&self.0.arrivals).blobs.insert(digest);
        self.0.arrived.notify_all();
    }

    fn record_complete(&self, _: &mut dyn Iterator<Item = LockEntry>) -> Result<(), WriteError> {
        Ok(())
    }
}

impl LocalStore for DirectBundle {
    fn begin(
        &self,
        descriptor: &Descriptor,
        keep_ranges: bool,
    ) -> Result<Option<(VerifiedWriter, Vec<ByteRange>)>, WriteError> {
        let state = &self.0;
        let Some(entry) = state
            .entry_indexes
            .get(&descriptor.digest)
            .filter(|entry_index| **entry_index < state.compressed)
        else {
            // the offset of a compressed entry depends on how well the entries before it compress,
            // so its content waits in the spool
            return state.spool.begin(descriptor, keep_ranges);
        };
        let entry = &state.contents.entries[*entry];
        let start = entry.offset + stored_len(header::encoded_len(&entry.name) as u64);
        let length = state.file.metadata().map_or(0, |data| data.len());
        let (begin, apart) = state.journal.written_ranges(&descriptor.digest);
        let mut writer = VerifiedWriter::new(
            StoredBlobWriter::new(state.clone(), descriptor, start),
            descriptor,
        );
        // a truncated file lacks content that its journal lists
        let reach = apart.last().map_or(begin, |last| last.1);
        if reach > descriptor.size || reach > 0 && start + stored_position(reach - 1).0 >= length {
            writer.restart()?;
            return Ok(Some((writer, Vec::new())));
        }
        // hashed again, because the journal only records positions
        writer.absorb(begin)?;
        Ok(Some((writer, if keep_ranges { apart } else { Vec::new() })))
    }
}

// Writes a stored blob into a direct bundle. Its bytes are written to their final offsets in any
// order; a frame is closed when all bytes up to its end are written.

/// Writes the frames of one stored blob into the file of an unfinished bundle.
#[derive(derive_more::Debug)]
#[debug("StoredBlobWriter({} at {start})", descriptor.digest)]
pub(super) struct StoredBlobWriter {
    bundle: Arc<DirectState>,
    descriptor: Descriptor,
    /// The file offset of the first frame.
    start: u64,
    state: Mutex<FrameProgress>,
}

struct FrameProgress {
    stream: FrameStream,
    frames: Vec<FrameRecord>,
    /// Whether the blob is complete.
    kept: bool,
}

impl FrameProgress {
    fn new(size: u64) -> FrameProgress {
        FrameProgress {
            stream: FrameStream::new(size),
            frames: Vec::new(),
            kept: false,
        }
    }
}

impl StoredBlobWriter {
    pub(super) fn new(
        bundle: Arc<DirectState>,
        descriptor: &Descriptor,
        start: u64,
    ) -> StoredBlobWriter {
        let state = Mutex::new(FrameProgress::new(descriptor.size));
        StoredBlobWriter {
            bundle,
            descriptor: descriptor.clone(),
            start,
            state,
        }
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> WriteError {
        let path = self.bundle.path.clone();
        move |source| WriteError::io("write", &path, source)
    }
}

impl PartialBlob for StoredBlobWriter {
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), WriteError> {
        for (offset, run) in runs(at, buffer.len()) {
            let piece = &mut buffer[run];
            self.bundle
                .file
                .read_exact_at(piece, self.start + offset)
                .map_err(self.failed())?;
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        for (offset, run) in runs(at, bytes.len()) {
            self.bundle
                .file
                .write_all_at(&bytes[run], self.start + offset)
                .map_err(self.failed())?;
        }
        Ok(())
    }

    fn hashed(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let mut state = locked(&self.state);
        // the content is in the file already; the stream computes the bytes around it
        let closed = state.stream.push(bytes);
        for (at, around) in closed.iter().flat_map(|(_, around)| around) {
            self.bundle
                .file
                .write_all_at(around, self.start + at)
                .map_err(self.failed())?;
        }
        state.frames.extend(closed.iter().map(|(frame, _)| *frame));
        // once per frame rather than per piece, since each record costs a write
        if !closed.is_empty() {
            self.record((0, state.stream.at())).map_err(self.failed())?;
        }
        Ok(())
    }

    fn record(&self, range: ByteRange) -> io::Result<()> {
        self.bundle
            .journal
            .record_range(&self.descriptor.digest, range)
    }

    fn clear(&self) -> Result<(), WriteError> {
        // the bytes remain in the file and are overwritten; only their records are removed
        *locked(&self.state) = FrameProgress::new(self.descriptor.size);
        self.bundle
            .journal
            .record_lost(&self.descriptor.digest)
            .map_err(self.failed())
    }

    fn publish(&self) -> Result<(), WriteError> {
        let Descriptor { digest, size, .. } = &self.descriptor;
        let mut state = locked(&self.state);
        // set first: after an error the drop must not record a part of a complete blob
        state.kept = true;
        self.bundle
            .arrived(digest, std::mem::take(&mut state.frames));
        self.bundle
            .journal
            .record_whole(digest, self.start, *size)
            .map_err(self.failed())
    }
}

impl Drop for StoredBlobWriter {
    /// Records the bytes since the last frame, so that a resumed run finds them, too.
    fn drop(&mut self) {
        let state = locked(&self.state);
        let at = state.stream.at();
        if !state.kept && at > 0 {
            // bytes without a record are downloaded again
            let _ = self.record((0, at));
        }
    }
}
