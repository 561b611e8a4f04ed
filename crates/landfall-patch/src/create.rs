//! Creates a patch.

use crate::correspondence::{BaseFile, Correspondence, Counterpart};
use crate::listing::{ListedFile, Listing};
use crate::matching::similar_parts;
use crate::sections::{PatchSections, SectionWriter};
use crate::{PatchError, PlainSource, read_vec};
use std::io::Write;

/// The maximum number of bytes of a new file that are compared at a time, to bound the memory. A
/// longer file is compared in windows: each with the base's bytes around its relative position.
const WINDOW: u64 = 16 << 20;

/// The maximum number of bytes of the base's file that are compared with a window. If the base's
/// file is much longer than the new one, the relative positions of a window include more.
const MAX_OLD_WINDOW: u64 = 3 * WINDOW;

/// A base of a patch.
pub struct PatchBase<'a> {
    /// The plain bytes of the base.
    pub source: &'a dyn PlainSource,
    /// The listing of the plain bytes.
    pub listing: &'a Listing,
}

/// Describes `new` by parts of `bases`, and writes this patch to `sinks`. `listing` is the listing
/// of `new`. Without bases, the patch contains the whole stream, compressed.
///
/// # Errors
/// If a stream cannot be read, or a section cannot be written.
pub fn create<W: Write>(
    new: &dyn PlainSource,
    listing: &Listing,
    bases: &[PatchBase<'_>],
    sinks: PatchSections<W>,
) -> Result<PatchSections<W>, PatchError> {
    let correspondence = Correspondence::new(bases.iter().map(|base| base.listing).collect());
    let mut creation = Creation {
        new,
        bases,
        writer: SectionWriter::new(sinks, bases.len()),
    };
    for file in &listing.files {
        match correspondence.counterpart(file) {
            Counterpart::Equal(place) => {
                creation.write_equal(file, place, correspondence.file(place))?;
            }
            Counterpart::Similar(place) => {
                creation.write_similar(file, place, correspondence.file(place))?;
            }
            Counterpart::None => creation.write_new(file.offset, file.length())?,
        }
    }
    creation.writer.finish()
}

struct Creation<'a, W: Write> {
    new: &'a dyn PlainSource,
    bases: &'a [PatchBase<'a>],
    writer: SectionWriter<W>,
}

impl<W: Write> Creation<'_, W> {
    fn write_equal(
        &mut self,
        file: &ListedFile,
        place: BaseFile,
        old: &ListedFile,
    ) -> Result<(), PatchError> {
        if file.header == old.header {
            self.write_aligned(place.base, old.offset, file.offset, file.header)?;
        } else {
            self.write_new(file.offset, file.header)?;
        }
        self.writer
            .copy(place.base, old.content_offset(), file.content)?;
        let padding = file.offset + file.length() - file.padding;
        if file.padding == old.padding {
            let old_padding = old.content_offset() + old.content;
            self.write_aligned(place.base, old_padding, padding, file.padding)
        } else {
            self.write_new(padding, file.padding)
        }
    }

    /// Compares bytes with those of the base at the same relative position, without a search, and
    /// writes the differences.
    fn write_aligned(
        &mut self,
        base: usize,
        old_offset: u64,
        new_offset: u64,
        length: u64,
    ) -> Result<(), PatchError> {
        for step in (0..length).step_by(WINDOW as usize) {
            let count = (length - step).min(WINDOW) as usize;
            let old = self.read_old(base, old_offset + step, count)?;
            let new = self.read_new(new_offset + step, count)?;
            self.writer.resemble(base, old_offset + step, &old, &new)?;
        }
        Ok(())
    }

    fn write_similar(
        &mut self,
        file: &ListedFile,
        place: BaseFile,
        old: &ListedFile,
    ) -> Result<(), PatchError> {
        // windows at the same relative position in both files; the old window is longer by half a
        // window on both sides, for content that moved
        let scale = old.length() as f64 / file.length().max(1) as f64;
        for from in (0..file.length()).step_by(WINDOW as usize) {
            let count = (file.length() - from).min(WINDOW);
            let old_from = ((from as f64 * scale) as u64).saturating_sub(WINDOW / 2);
            let old_to = (((from + count) as f64 * scale) as u64 + WINDOW / 2)
                .min(old_from + MAX_OLD_WINDOW)
                .min(old.length());
            let new_bytes = self.read_new(file.offset + from, count as usize)?;
            let old_offset = old.offset + old_from;
            let old_bytes = self.read_old(
                place.base,
                old_offset,
                old_to.saturating_sub(old_from) as usize,
            )?;
            let mut done = 0;
            for part in similar_parts(&old_bytes, &new_bytes) {
                self.writer.insert(&new_bytes[done..part.new])?;
                self.writer.resemble(
                    place.base,
                    old_offset + part.old as u64,
                    &old_bytes[part.old..part.old + part.length],
                    &new_bytes[part.new..part.new + part.length],
                )?;
                done = part.new + part.length;
            }
            self.writer.insert(&new_bytes[done..])?;
        }
        Ok(())
    }

    fn write_new(&mut self, offset: u64, length: u64) -> Result<(), PatchError> {
        for step in (0..length).step_by(WINDOW as usize) {
            let count = (length - step).min(WINDOW) as usize;
            let bytes = self.read_new(offset + step, count)?;
            self.writer.insert(&bytes)?;
        }
        Ok(())
    }

    fn read_new(&self, offset: u64, length: usize) -> Result<Vec<u8>, PatchError> {
        read_vec(self.new, offset, length).map_err(PatchError::reading("the new plain stream"))
    }

    fn read_old(&self, base: usize, offset: u64, length: usize) -> Result<Vec<u8>, PatchError> {
        read_vec(self.bases[base].source, offset, length)
            .map_err(PatchError::reading("the plain bytes of a base"))
    }
}
