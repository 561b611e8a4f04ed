//! Finishing a direct bundle: what stands around its stored blobs, the contents index, and then its
//! name.

use super::state::{DirectBundle, State};
use crate::error::BundleError;
use crate::format::hash::Frame;
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
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

/// A bundle that is whole, and has not its name yet. Dropped without one, it is unfinished again.
pub struct Whole {
    state: Arc<State>,
    packed: PackedBundle,
    /// Where its entries end.
    entries: u64,
    /// Whether it has its name, or may have it.
    has_name: bool,
}

impl DirectBundle {
    /// Completes the bundle.
    ///
    /// # Errors
    /// When content is missing, or the file cannot be written.
    pub fn complete(&self) -> Result<Whole, BundleError> {
        let state = &*self.0;
        let failed = |source| BundleError::Write {
            path: state.out.clone(),
            source,
        };
        let missing = |entry: &PlannedEntry| BundleError::Content {
            item: entry.item.clone(),
            source: ContentError::Missing {
                digest: entry.descriptor.digest.clone(),
            },
        };
        let stored = state.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let compressed = state.compressed_entries();
        let mut index = IndexBuilder::new(&state.plan, state.options);
        let mut end = 0;
        for (place, planned) in state.plan.entries.iter().enumerate() {
            let mut frames = match place.checked_sub(state.compressed) {
                Some(place) => compressed
                    .frames
                    .get(place)
                    .cloned()
                    .ok_or_else(|| missing(planned))?,
                None if matches!(planned.content, ContentSource::Bytes(_)) => Vec::new(),
                None => stored
                    .get(&place)
                    .cloned()
                    .ok_or_else(|| missing(planned))?,
            };
            if place < state.compressed {
                state.surround(planned, end, &mut frames).map_err(failed)?;
            }
            index.record(place, end, &frames);
            end += index.contents.entries[place].length;
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
            .set_len(out.end)
            .and_then(|()| state.file.sync_all())
            .map_err(failed)?;
        let packed = PackedBundle::one_file(&digest, out.end, &state.out);
        Ok(Whole {
            state: self.0.clone(),
            packed,
            entries,
            has_name: false,
        })
    }
}

impl Whole {
    /// It, to be read before it has its name.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self) -> Result<Bundle, BundleError> {
        Bundle::open(&self.state.path)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// When the name cannot be given.
    pub fn publish(mut self) -> Result<PackedBundle, BundleError> {
        self.has_name = true;
        let state = &*self.state;
        let failed = |source| BundleError::Write {
            path: state.out.clone(),
            source,
        };
        publish(&state.path, &state.out, &[], &[], None).map_err(failed)?;
        clear_work(&state.path).map_err(failed)?;
        Ok(self.packed.clone())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if !self.has_name {
            // nobody takes it for a bundle without its index and signature; the next run writes
            // them again
            let _ = self.state.file.set_len(self.entries);
        }
    }
}

impl State {
    /// Writes the tar header and the padding of a stored entry at `at`, and its content where that
    /// follows from the plan. `frames` has the frames of other content, and then all.
    fn surround(
        &self,
        entry: &PlannedEntry,
        mut at: u64,
        frames: &mut Vec<Frame>,
    ) -> io::Result<()> {
        let size = entry.descriptor.size;
        let mut all = Vec::with_capacity(frames.len() + 2);
        let put = |content: &[u8], at: &mut u64, all: &mut Vec<Frame>| {
            let frame = frame::stored(content);
            self.file.write_all_at(&frame, *at)?;
            *at += frame.len() as u64;
            all.push(Frame::of(&frame));
            io::Result::Ok(())
        };
        put(&header::encode(&entry.name, size), &mut at, &mut all)?;
        if let ContentSource::Bytes(bytes) = &entry.content {
            bytes
                .chunks(CHUNK)
                .try_for_each(|chunk| put(chunk, &mut at, &mut all))?;
        }
        at += frames.iter().map(|frame| u64::from(frame.0)).sum::<u64>();
        all.append(frames);
        if header::padding(size) > 0 {
            put(&vec![0; header::padding(size)], &mut at, &mut all)?;
        }
        *frames = all;
        Ok(())
    }
}
