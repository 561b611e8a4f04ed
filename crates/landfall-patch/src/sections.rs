//! The four sections of a patch. Each is compressed by itself, since bytes of the same kind
//! compress best together.

use crate::error::PatchError;
use crate::section_encoder::{LARGE_TABLES, SMALL_TABLES, SectionEncoder};
use crate::varint;
use std::io::{self, Write};

/// The number of sections in a patch.
pub const SECTIONS: usize = 4;

/// The sections of a patch, in the order in which they are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatchSections<T> {
    /// The parts of the new stream.
    pub parts: T,
    /// The number of equal bytes before each word that differs.
    pub gaps: T,
    /// The number to add to each word that differs.
    pub words: T,
    /// The bytes that no base contains.
    pub literals: T,
}

impl<T> PatchSections<T> {
    /// The sections in the order in which they are stored.
    pub fn into_array(self) -> [T; SECTIONS] {
        [self.parts, self.gaps, self.words, self.literals]
    }

    /// Creates the sections from an array in the order in which they are stored.
    pub fn from_array([parts, gaps, words, literals]: [T; SECTIONS]) -> PatchSections<T> {
        PatchSections {
            parts,
            gaps,
            words,
            literals,
        }
    }
}

/// Writes the sections of a patch, and joins adjacent parts.
pub(crate) struct SectionWriter<W: Write> {
    encoders: PatchSections<SectionEncoder<W>>,
    scratch: Vec<u8>,
    /// For each base, the offset after the part that was used last.
    expected: Vec<u64>,
    pending: Option<PendingPart>,
    /// The number of new bytes since the last part.
    inserted: u64,
    /// The number of equal bytes since the last word that differs.
    gap: u64,
    /// The number of new bytes in all.
    pub(crate) literal_bytes: u64,
    /// The number of bytes in words that differ.
    pub(crate) word_bytes: u64,
}

/// A part that may still grow.
#[derive(Debug, Clone, Copy)]
struct PendingPart {
    base: usize,
    offset: u64,
    length: u64,
}

impl<W: Write> SectionWriter<W> {
    pub(crate) fn new(sinks: PatchSections<W>, bases: usize) -> SectionWriter<W> {
        let PatchSections {
            parts,
            gaps,
            words,
            literals,
        } = sinks;
        SectionWriter {
            encoders: PatchSections {
                parts: SectionEncoder::new(parts, SMALL_TABLES),
                gaps: SectionEncoder::new(gaps, SMALL_TABLES),
                words: SectionEncoder::new(words, SMALL_TABLES),
                literals: SectionEncoder::new(literals, LARGE_TABLES),
            },
            scratch: Vec::new(),
            expected: vec![0; bases],
            pending: None,
            inserted: 0,
            gap: 0,
            literal_bytes: 0,
            word_bytes: 0,
        }
    }

    /// Appends bytes that no base contains.
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> Result<(), PatchError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.end_part()?;
        self.inserted += bytes.len() as u64;
        self.literal_bytes += bytes.len() as u64;
        self.encoders
            .literals
            .write(bytes)
            .map_err(PatchError::Write)
    }

    /// Appends `length` bytes that equal those of `base` at `offset`.
    pub(crate) fn copy(&mut self, base: usize, offset: u64, length: u64) -> Result<(), PatchError> {
        self.part(base, offset, length)?;
        self.gap += length;
        Ok(())
    }

    /// Appends `new`, which resembles `old`: the bytes of `base` at `offset`, of the same length.
    pub(crate) fn resemble(
        &mut self,
        base: usize,
        offset: u64,
        old: &[u8],
        new: &[u8],
    ) -> Result<(), PatchError> {
        self.part(base, offset, new.len() as u64)?;
        let mut at = 0;
        while at < new.len() {
            let equal = crate::matching::common_prefix(&old[at..], &new[at..]);
            self.gap += equal as u64;
            at += equal;
            if at == new.len() {
                break;
            }
            let length = (new.len() - at).min(size_of::<u32>());
            let word = word(&new[at..at + length]).wrapping_sub(word(&old[at..at + length]));
            self.scratch.clear();
            varint::push(&mut self.scratch, self.gap);
            self.encoders
                .gaps
                .write(&self.scratch)
                .map_err(PatchError::Write)?;
            let bytes = &word.to_le_bytes()[..length];
            self.encoders
                .words
                .write(bytes)
                .map_err(PatchError::Write)?;
            self.word_bytes += length as u64;
            self.gap = 0;
            at += length;
        }
        Ok(())
    }

    fn part(&mut self, base: usize, offset: u64, length: u64) -> Result<(), PatchError> {
        // a folder has no content to copy, and readers refuse an empty part
        if length == 0 {
            return Ok(());
        }
        match &mut self.pending {
            Some(part) if part.base == base && part.offset + part.length == offset => {
                part.length += length;
            }
            _ => {
                self.end_part()?;
                self.pending = Some(PendingPart {
                    base,
                    offset,
                    length,
                });
            }
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), PatchError> {
        let Some(part) = self.pending.take() else {
            return Ok(());
        };
        self.scratch.clear();
        varint::push(&mut self.scratch, self.inserted);
        varint::push(&mut self.scratch, part.length);
        varint::push(&mut self.scratch, part.base as u64);
        let expected = &mut self.expected[part.base];
        varint::push_signed(&mut self.scratch, part.offset as i64 - *expected as i64);
        *expected = part.offset + part.length;
        self.inserted = 0;
        self.encoders
            .parts
            .write(&self.scratch)
            .map_err(PatchError::Write)
    }

    /// Ends all sections. The number of new bytes after the last part is not stored, because it can
    /// be computed from the length of the stream.
    pub(crate) fn finish(mut self) -> Result<PatchSections<W>, PatchError> {
        self.end_part()?;
        let PatchSections {
            parts,
            gaps,
            words,
            literals,
        } = self.encoders;
        let finish = || -> io::Result<_> {
            Ok(PatchSections {
                parts: parts.finish()?,
                gaps: gaps.finish()?,
                words: words.finish()?,
                literals: literals.finish()?,
            })
        };
        finish().map_err(PatchError::Write)
    }
}

/// Returns up to four bytes as a little-endian number.
pub(crate) fn word(bytes: &[u8]) -> u32 {
    let mut padded = [0; 4];
    padded[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(padded)
}
