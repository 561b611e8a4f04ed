//! Applies a patch.

use crate::sections::{self, PatchSections, WINDOW_LOG, word};
use crate::{PatchError, PlainSource};
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// The maximum number of bytes that are produced at a time.
const CHUNK: usize = 128 << 10;

/// The decompressor of a section.
type SectionReader<R> = BufReader<zstd::Decoder<'static, BufReader<R>>>;

/// Reads the new stream from a patch and its bases.
///
/// If the patch is damaged, or was created with other bases, reading fails or returns wrong bytes,
/// but never more bytes than the size of the new stream. So the caller must compare the digest.
pub struct PatchReader<R: Read> {
    sections: PatchSections<SectionReader<R>>,
    bases: Vec<Arc<dyn PlainSource>>,
    /// For each base, the offset after the part that was used last.
    expected: Vec<u64>,
    /// The number of bytes of the new stream that are not produced yet.
    left: u64,
    /// The number of new bytes that are still to be produced before the bytes of a base.
    insert: u64,
    /// The base of the current part, and the offset (in the base) and length of the rest of that
    /// part.
    base: usize,
    offset: u64,
    length: u64,
    /// The number of equal bytes before the next word that differs; `None` after the last word.
    gap: Option<u64>,
    /// Bytes that were produced. Those before `taken` were already returned.
    chunk: Vec<u8>,
    taken: usize,
}

impl<R: Read> PatchReader<R> {
    /// Returns a reader of the new stream, which has `size` bytes. `bases` must have the
    /// same order as when [`create`](crate::create()) wrote the patch.
    ///
    /// # Errors
    /// If the decompressor of a section cannot be created, or the first gap cannot be read.
    pub fn new(
        sections: PatchSections<R>,
        bases: Vec<Arc<dyn PlainSource>>,
        size: u64,
    ) -> Result<PatchReader<R>, PatchError> {
        let sections = sections.try_map(|section| -> io::Result<_> {
            let mut decoder = zstd::Decoder::new(section)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Ok(BufReader::new(decoder))
        });
        let mut reader = PatchReader {
            sections: sections.map_err(section_error)?,
            expected: vec![0; bases.len()],
            bases,
            left: size,
            insert: 0,
            base: 0,
            offset: 0,
            length: 0,
            gap: None,
            chunk: Vec::new(),
            taken: 0,
        };
        reader.gap = reader.next_gap()?;
        Ok(reader)
    }

    /// Produces the next bytes, at most [`CHUNK`].
    fn produce(&mut self) -> Result<(), PatchError> {
        self.chunk.clear();
        self.taken = 0;
        while self.insert == 0 && self.length == 0 {
            self.next_part()?;
        }
        if self.insert > 0 {
            let count = self.insert.min(CHUNK as u64) as usize;
            self.chunk.resize(count, 0);
            self.sections
                .literals
                .read_exact(&mut self.chunk)
                .map_err(section_error)?;
            self.insert -= count as u64;
        } else {
            self.produce_similar()?;
        }
        self.left -= self.chunk.len() as u64;
        if self.left == 0 {
            self.check_end()?;
        }
        Ok(())
    }

    /// Begins the next part. After the last one, the rest of the stream is new.
    fn next_part(&mut self) -> Result<(), PatchError> {
        let parts = &mut self.sections.parts;
        if parts.fill_buf().map_err(section_error)?.is_empty() {
            self.insert = self.left;
            return Ok(());
        }
        let mut number = || sections::read(parts).map_err(section_error);
        self.insert = number()?;
        self.length = number()?;
        let base = number()?;
        let moved = sections::read_signed(parts).map_err(section_error)?;
        let total = self.insert.checked_add(self.length);
        if self.length == 0 || total.is_none_or(|total| total > self.left) {
            return Err(PatchError::Damaged("a part exceeds the stream"));
        }
        self.base = usize::try_from(base)
            .ok()
            .filter(|base| *base < self.bases.len())
            .ok_or(PatchError::Damaged("a part refers to an unknown base"))?;
        let end = self.expected[self.base]
            .checked_add_signed(moved)
            .and_then(|offset| {
                self.offset = offset;
                offset.checked_add(self.length)
            })
            .filter(|end| *end <= self.bases[self.base].size())
            .ok_or(PatchError::Damaged("a part is outside its base"))?;
        self.expected[self.base] = end;
        Ok(())
    }

    fn produce_similar(&mut self) -> Result<(), PatchError> {
        let mut count = self.length.min(CHUNK as u64);
        self.chunk.resize(count as usize, 0);
        let base = &self.bases[self.base];
        base.read_at(&mut self.chunk, self.offset)
            .map_err(PatchError::reading("the plain bytes of a base"))?;
        let mut at = 0;
        while let Some(gap) = self.gap {
            let next = (at as u64)
                .checked_add(gap)
                .ok_or(PatchError::Damaged("a gap exceeds the stream"))?;
            if next >= count {
                self.gap = Some(next - count);
                break;
            }
            let length = (self.length - next).min(size_of::<u32>() as u64);
            if next + length > count {
                // the word is not completely in this chunk, so it begins the next one
                self.gap = Some(0);
                count = next;
                self.chunk.truncate(count as usize);
                break;
            }
            let length = length as usize;
            at = next as usize;
            let mut difference = [0; 4];
            self.sections
                .words
                .read_exact(&mut difference[..length])
                .map_err(section_error)?;
            let bytes = &mut self.chunk[at..at + length];
            let sum = word(bytes).wrapping_add(u32::from_le_bytes(difference));
            bytes.copy_from_slice(&sum.to_le_bytes()[..length]);
            at += length;
            self.gap = self.next_gap()?;
        }
        self.offset += count;
        self.length -= count;
        Ok(())
    }

    fn next_gap(&mut self) -> Result<Option<u64>, PatchError> {
        let gaps = &mut self.sections.gaps;
        if gaps.fill_buf().map_err(section_error)?.is_empty() {
            return Ok(None);
        }
        sections::read(gaps).map(Some).map_err(section_error)
    }

    /// Fails if a section contains more than the stream needed.
    fn check_end(&mut self) -> Result<(), PatchError> {
        let PatchSections {
            parts,
            gaps,
            words,
            literals,
        } = &mut self.sections;
        for section in [parts, gaps, words, literals] {
            if !section.fill_buf().map_err(section_error)?.is_empty() {
                return Err(PatchError::Damaged(
                    "a section has more than the stream needs",
                ));
            }
        }
        if self.gap.is_some() {
            return Err(PatchError::Damaged(
                "a word that differs is after the last part",
            ));
        }
        Ok(())
    }
}

/// Returns the error for a section that cannot be read, for example because it is damaged or too
/// short.
fn section_error(source: io::Error) -> PatchError {
    PatchError::reading("the patch")(source)
}

impl<R: Read> Read for PatchReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.chunk.len() && self.left > 0 {
            self.produce().map_err(io::Error::other)?;
        }
        let count = (self.chunk.len() - self.taken).min(buffer.len());
        buffer[..count].copy_from_slice(&self.chunk[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}
