//! The four sections of a patch. Each is compressed by itself, since bytes of the same kind
//! compress best together.

use crate::PatchError;
use std::io::{self, Read, Write};
use zstd::stream::raw::CParameter;

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

    /// Applies `change` to each section, in the order in which they are stored.
    pub(crate) fn try_map<U>(
        self,
        change: impl Fn(T) -> io::Result<U>,
    ) -> io::Result<PatchSections<U>> {
        Ok(PatchSections {
            parts: change(self.parts)?,
            gaps: change(self.gaps)?,
            words: change(self.words)?,
            literals: change(self.literals)?,
        })
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
        SectionWriter {
            encoders: PatchSections {
                parts: SectionEncoder::new(sinks.parts, SMALL_TABLES),
                gaps: SectionEncoder::new(sinks.gaps, SMALL_TABLES),
                words: SectionEncoder::new(sinks.words, SMALL_TABLES),
                literals: SectionEncoder::new(sinks.literals, LARGE_TABLES),
            },
            scratch: Vec::new(),
            expected: vec![0; bases],
            pending: None,
            inserted: 0,
            gap: 0,
        }
    }

    /// Appends bytes that no base contains.
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> Result<(), PatchError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.end_part()?;
        self.inserted += bytes.len() as u64;
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
            push(&mut self.scratch, self.gap);
            self.encoders
                .gaps
                .write(&self.scratch)
                .map_err(PatchError::Write)?;
            let bytes = &word.to_le_bytes()[..length];
            self.encoders
                .words
                .write(bytes)
                .map_err(PatchError::Write)?;
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
        push(&mut self.scratch, self.inserted);
        push(&mut self.scratch, part.length);
        push(&mut self.scratch, part.base as u64);
        let expected = &mut self.expected[part.base];
        push_signed(&mut self.scratch, part.offset as i64 - *expected as i64);
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
        let finished = self.encoders.try_map(SectionEncoder::finish);
        finished.map_err(PatchError::Write)
    }
}

/// Returns up to four bytes as a little-endian number.
pub(crate) fn word(bytes: &[u8]) -> u32 {
    let mut padded = [0; 4];
    padded[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(padded)
}

/// The base-2 logarithm of the largest window of the sections' zstd streams: 8 MiB, which bounds
/// the memory of a reader.
pub(crate) const WINDOW_LOG: u32 = 23;

/// A section of at most this many bytes is compressed as a whole.
const MAX_BUFFERED: usize = 1 << 20;

/// Tables of 60 MB, which find matches that are far away.
pub(crate) const LARGE_TABLES: &[CParameter] = &[CParameter::WindowLog(WINDOW_LOG)];

/// Tables of 16 MB, for sections that are rarely long and have no matches far away.
pub(crate) const SMALL_TABLES: &[CParameter] = &[
    CParameter::WindowLog(21),
    CParameter::ChainLog(21),
    CParameter::HashLog(20),
];

/// The slowest level that compresses 15 MB of plain bytes in a second if a tenth of them is new.
const LEVEL: i32 = 17;

/// The compressor of a section. Short sections are compressed as a whole, because a compressor that
/// does not know the size of its input allocates its tables in full.
pub(crate) struct SectionEncoder<W: Write> {
    state: EncoderState<W>,
    tables: &'static [CParameter],
}

enum EncoderState<W: Write> {
    Buffered {
        bytes: Vec<u8>,
        sink: W,
    },
    Streaming(Box<zstd::Encoder<'static, W>>),
    /// The compressor could not be created, or could not write the buffered bytes.
    Failed,
}

impl<W: Write> SectionEncoder<W> {
    pub(crate) fn new(sink: W, tables: &'static [CParameter]) -> SectionEncoder<W> {
        let state = EncoderState::Buffered {
            bytes: Vec::new(),
            sink,
        };
        SectionEncoder { state, tables }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            EncoderState::Buffered {
                bytes: buffered, ..
            } if buffered.len() + bytes.len() <= MAX_BUFFERED => {
                buffered.extend_from_slice(bytes);
                Ok(())
            }
            EncoderState::Buffered { .. } => {
                let state = std::mem::replace(&mut self.state, EncoderState::Failed);
                if let EncoderState::Buffered {
                    bytes: buffered,
                    sink,
                } = state
                {
                    let mut encoder = zstd::Encoder::new(sink, LEVEL)?;
                    for parameter in self.tables {
                        encoder.set_parameter(*parameter)?;
                    }
                    encoder.write_all(&buffered)?;
                    encoder.write_all(bytes)?;
                    self.state = EncoderState::Streaming(Box::new(encoder));
                }
                Ok(())
            }
            EncoderState::Streaming(encoder) => encoder.write_all(bytes),
            EncoderState::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        match self.state {
            EncoderState::Buffered { bytes, mut sink } => {
                let compressed = zstd::bulk::compress(&bytes, LEVEL)?;
                sink.write_all(&compressed)?;
                Ok(sink)
            }
            EncoderState::Streaming(encoder) => encoder.finish(),
            EncoderState::Failed => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

// Numbers of variable length (LEB128): seven bits a byte, the lowest first. The top bit is set in
// each byte except the last. A signed number is mapped to an unsigned one first: 0, -1, 1, -2 …
// become 0, 1, 2, 3 …

/// The length of the longest encoding of 64 bits, in bytes.
const MAX_BYTES: u32 = 10;

pub(crate) fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn push_signed(out: &mut Vec<u8>, number: i64) {
    push(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Reads a number. Fails if the input ends, or if the encoding has more than 64 bits.
pub(crate) fn read(input: &mut impl Read) -> io::Result<u64> {
    let mut number = 0_u64;
    for index in 0..MAX_BYTES {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        let bits = u64::from(byte[0] & 0x7f);
        let shifted = bits << (7 * index);
        if shifted >> (7 * index) != bits {
            break;
        }
        number |= shifted;
        if byte[0] < 0x80 {
            return Ok(number);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "a number of more than 64 bits",
    ))
}

pub(crate) fn read_signed(input: &mut impl Read) -> io::Result<i64> {
    let number = read(input)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_section_is_compressed_with_the_window_of_its_tables() {
        for (tables, window_log) in [(SMALL_TABLES, 21), (LARGE_TABLES, WINDOW_LOG)] {
            let mut encoder = SectionEncoder::new(Vec::new(), tables);
            encoder.write(&vec![0; MAX_BUFFERED + 1]).unwrap();
            let compressed = encoder.finish().unwrap();
            // the exponent of the window descriptor (RFC 8878, section 3.1.1.1.2)
            assert_eq!(10 + u32::from(compressed[5] >> 3), window_log);
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number: u64, signed: i64) {
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            push_signed(&mut bytes, signed);
            let mut input = &bytes[..];
            prop_assert_eq!(read(&mut input).unwrap(), number);
            prop_assert_eq!(read_signed(&mut input).unwrap(), signed);
            prop_assert!(input.is_empty());
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert!(read(&mut &[0xff; 11][..]).is_err());
        assert!(read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]).is_err());
        assert_eq!(
            read(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1][..]).unwrap(),
            u64::MAX
        );
    }
}
