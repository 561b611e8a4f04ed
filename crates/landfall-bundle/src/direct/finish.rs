//! Completes a direct bundle: headers and padding around its stored blobs, the contents index, and
//! finally its name.

use super::direct_bundle::{DirectBundle, DirectState};
use crate::error::BundleError;
use crate::format::hash::FrameRecord;
use crate::format::stored::CHUNK;
use crate::format::{frame, header};
use crate::plan::planned_entry::{ContentSource, PlannedEntry};
use crate::read::bundle::Bundle;
use crate::write::PackedBundle;
use crate::write::index_builder::IndexBuilder;
use crate::write::partial_file::clear_work;
use crate::write::publish::publish;
use crate::write::sign::sign_index;
use crate::write::volume_writer::VolumeWriter;
use landfall_content::ContentError;
use landfall_model::locked;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A complete bundle that does not have its final name yet. If it is dropped without being
/// published, it becomes unfinished again.
pub struct UnpublishedBundle {
    state: Arc<DirectState>,
    packed: PackedBundle,
    /// The file offset at which the entries end.
    entries: u64,
    /// Whether the bundle has its final name, or may have it.
    has_name: bool,
}

fn missing_content(entry: &PlannedEntry) -> BundleError {
    BundleError::Content {
        item: entry.item.clone(),
        source: ContentError::missing(&entry.descriptor.digest),
    }
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
        let compressed = state.compressed_entries();
        let mut index = IndexBuilder::new(&state.plan, state.options);
        let mut end = 0;
        for (entry_index, planned) in state.plan.entries.iter().enumerate() {
            let mut frames = match entry_index.checked_sub(state.compressed) {
                Some(compressed_index) => compressed
                    .frames
                    .get(compressed_index)
                    .cloned()
                    .ok_or_else(|| missing_content(planned))?,
                // computed content is written now, because nothing arrives for it
                None if matches!(planned.content, ContentSource::Bytes(_)) => Vec::new(),
                None => stored
                    .get(&entry_index)
                    .cloned()
                    .ok_or_else(|| missing_content(planned))?,
            };
            // compressed entries were written whole, with header and padding
            if entry_index < state.compressed {
                state.surround(planned, end, &mut frames).map_err(failed)?;
            }
            index.record(entry_index, end, &frames);
            end += index.contents.entries[entry_index].length;
        }
        let entries = end;
        let mut out = VolumeWriter::file(state.file.clone(), end, None);
        let signer = state.signer.as_deref();
        let digest = index.finish(&mut out, &state.out, |index| {
            signer
                .map(|signer| sign_index(signer, index, &state.out))
                .into_iter()
                .collect()
        })?;
        state
            .file
            // an earlier run that was killed after it wrote its index may have left a longer file,
            // with other signatures
            .set_len(out.end)
            .and_then(|()| state.file.sync_all())
            .map_err(failed)?;
        let packed = PackedBundle::one_file(&digest, out.end, &state.out);
        Ok(UnpublishedBundle {
            state: self.0.clone(),
            packed,
            entries,
            has_name: false,
        })
    }
}

impl UnpublishedBundle {
    /// Opens the bundle before it is published, to verify it.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(&self) -> Result<Bundle, BundleError> {
        Bundle::open(&self.state.path)
    }

    /// Gives the bundle its final name.
    ///
    /// # Errors
    /// If the file cannot be renamed, or the work folder cannot be removed.
    pub fn publish(mut self) -> Result<PackedBundle, BundleError> {
        // set before the rename: after an error, the file may have its final name
        self.has_name = true;
        let state = &*self.state;
        let failed = BundleError::write(&state.out);
        publish(&state.path, &state.out, &[], &[], None).map_err(failed)?;
        clear_work(&state.path).map_err(failed)?;
        Ok(self.packed.clone())
    }
}

impl Drop for UnpublishedBundle {
    fn drop(&mut self) {
        if !self.has_name {
            // without index and signature the file cannot be mistaken for a bundle; the next run
            // writes them again
            let _ = self.state.file.set_len(self.entries);
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
