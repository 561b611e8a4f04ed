//! pigz, which compresses blocks of the input in parallel with zlib.
//!
//! Each block is compressed separately, with the 32 KiB before it as dictionary. The deflate blocks
//! of a block end at a byte boundary. If an even number of bits is missing, empty fixed blocks of
//! ten bits each lead to the boundary, otherwise an empty stored block. Before zlib 1.2.6, the
//! empty stored block was always written.
//!
//! With one thread, the stream is compressed as a whole, but its blocks end in the same way. If
//! blocks are independent (`-i`), there is no dictionary, and each block but the last ends with two
//! empty stored blocks.

use super::engine::Engine;
use super::{ZlibDeflate, ZlibDialect, ZlibStrategy, block_tokens_of, levels_of_gzip};
use crate::bits::BitWriter;
use crate::encoder::block::{write_fixed_header, write_stored};
use crate::encoder::{Encoder, StreamHints};

/// The maximum size of a dictionary in bytes.
const DICTIONARY_BYTES: usize = 32 << 10;
/// The default size of a block, in KiB.
const BLOCK_KIBIBYTES: u16 = 128;

/// How the blocks of the input are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PigzBlocks {
    /// In parallel, with a dictionary.
    Parallel,
    /// Compressed with one thread.
    Serial,
    /// In parallel, without dictionaries (`-i`).
    Independent,
    /// In parallel, with a dictionary, by a pigz that uses a zlib before 1.2.6.
    ParallelBefore126,
}

impl PigzBlocks {
    const ALL: [Self; 4] = [
        Self::Parallel,
        Self::Serial,
        Self::Independent,
        Self::ParallelBefore126,
    ];
}

/// The program `pigz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Pigz {
    zlib: ZlibDeflate,
    blocks: PigzBlocks,
    /// The size of a block in KiB, at least 32.
    block_kibibytes: u16,
}

impl Pigz {
    /// Returns `None` if there is no such encoder.
    pub(crate) fn new(level: u8, blocks: PigzBlocks, block_kibibytes: u16) -> Option<Self> {
        let zlib = ZlibDeflate::new(level, 15, 8, ZlibStrategy::Default)?;
        (block_kibibytes >= 32).then_some(Self {
            zlib,
            blocks,
            block_kibibytes,
        })
    }

    /// The encoders of this family that may have written a stream, the likeliest first.
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        // the first block has fewer tokens if the first 128 KiB of the input are highly
        // compressible
        let longest = block_tokens_of(8) as u64;
        if hints
            .first_block_tokens
            .is_some_and(|tokens| tokens > longest)
        {
            return Vec::new();
        }
        let levels = levels_of_gzip(hints);
        PigzBlocks::ALL
            .iter()
            .flat_map(|blocks| levels.iter().map(|level| (*level, *blocks)))
            .filter_map(|(level, blocks)| Self::new(level, blocks, BLOCK_KIBIBYTES))
            .collect()
    }

    /// The parameters in a recipe.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        let [low, high] = self.block_kibibytes.to_le_bytes();
        [self.zlib.level, self.blocks as u8, low, high]
    }

    /// Reads the parameters from a recipe, or returns `None` if they are unknown.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[level, blocks, low, high] = bytes else {
            return None;
        };
        let blocks = *PigzBlocks::ALL.get(usize::from(blocks))?;
        Self::new(level, blocks, u16::from_le_bytes([low, high]))
    }

    /// Returns an encoder at the beginning of a stream.
    pub(crate) fn start(self) -> Box<dyn Encoder> {
        Box::new(PigzEncoder {
            engine: self.zlib.engine(),
            blocks: self.blocks,
            block_bytes: usize::from(self.block_kibibytes) << 10,
            written: 0,
            dictionary: Vec::new(),
        })
    }
}

/// The state of the encoder.
#[derive(Debug)]
struct PigzEncoder {
    engine: Engine<ZlibDialect>,
    blocks: PigzBlocks,
    block_bytes: usize,
    /// The number of bytes of the current block that are written.
    written: usize,
    /// The last bytes of the input so far, if the next block needs them as its dictionary.
    dictionary: Vec<u8>,
}

impl PigzEncoder {
    /// Ends a block that is not the last one of the stream.
    fn end_block(&mut self, out: &mut BitWriter) {
        self.engine.end_block(out);
        let has_dictionary = self.blocks != PigzBlocks::Independent;
        let bits = out.bits_past_byte();
        if bits % 2 == 1 || !has_dictionary || self.blocks == PigzBlocks::ParallelBefore126 {
            write_stored(&[], false, out);
        } else {
            while out.bits_past_byte() != 0 {
                write_fixed_header(false, out);
                // the end of the block is seven zeros
                out.write(0, 7);
            }
        }
        match self.blocks {
            PigzBlocks::Serial => {}
            PigzBlocks::Independent => {
                write_stored(&[], false, out);
                self.engine.restart(&[]);
            }
            PigzBlocks::Parallel | PigzBlocks::ParallelBefore126 => {
                self.engine.restart(&self.dictionary);
            }
        }
        self.written = 0;
    }

    fn keep_dictionary(&mut self, plain: &[u8]) {
        if !matches!(
            self.blocks,
            PigzBlocks::Parallel | PigzBlocks::ParallelBefore126
        ) {
            return;
        }
        let kept = DICTIONARY_BYTES
            .saturating_sub(plain.len())
            .min(self.dictionary.len());
        self.dictionary.drain(..self.dictionary.len() - kept);
        self.dictionary
            .extend_from_slice(&plain[plain.len().saturating_sub(DICTIONARY_BYTES)..]);
    }
}

impl Encoder for PigzEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            // a full block may be the last of the stream, so it ends only if more bytes follow
            if self.written == self.block_bytes {
                self.end_block(out);
            }
            let count = plain.len().min(self.block_bytes - self.written);
            let (part, rest) = plain.split_at(count);
            self.engine.write(part, out);
            self.keep_dictionary(part);
            self.written += count;
            plain = rest;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.engine.flush(out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.engine.finish(out);
    }

    fn writes_empty_blocks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::vectors;

    fn parse(parameters: &str) -> Pigz {
        let (level, blocks) = parameters.split_once(' ').unwrap();
        let (blocks, size) = match blocks {
            "parallel" => (PigzBlocks::Parallel, 128),
            "serial" => (PigzBlocks::Serial, 128),
            "independent" => (PigzBlocks::Independent, 128),
            "small" => (PigzBlocks::Parallel, 32),
            other => panic!("unknown blocks: {other}"),
        };
        Pigz::new(level.parse().unwrap(), blocks, size).unwrap()
    }

    #[test]
    fn streams_are_those_of_pigz() {
        let table = include_str!("../../../tests/vectors/pigz.txt");
        vectors::check(table, |parameters| parse(parameters).start());
    }

    #[test]
    fn parameters_are_read_back_from_a_recipe() {
        for blocks in PigzBlocks::ALL {
            let spec = Pigz::new(9, blocks, 1024).unwrap();
            assert_eq!(Pigz::from_bytes(&spec.to_bytes()), Some(spec));
        }
        for bytes in [[0, 0, 128, 0], [6, 4, 128, 0], [6, 0, 31, 0]] {
            assert_eq!(Pigz::from_bytes(&bytes), None);
        }
    }
}
