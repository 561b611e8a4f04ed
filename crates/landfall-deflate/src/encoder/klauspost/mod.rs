//! The `flate` package of `github.com/klauspost/compress`, and `pgzip`, which podman, buildah,
//! skopeo and others use. Go's standard library has had the same encoder since 1.27.
//!
//! Levels 1 to 6 cut the stream into blocks of 65,535 bytes and search each from left to right,
//! with tables of hashes ([`fast`]). Levels 7 to 9 have hash chains over a window of 64 KiB, and
//! decide about each match when the next position has been searched ([`lazy`]). The tokens of a
//! block are appended to the previous block if the codes of that block suit them ([`blocks`]). A
//! stream ends with an empty fixed block.
//!
//! Releases differ in details; [`rules`] lists them. `pgzip` compresses pieces of a stream in
//! parallel.
//!
//! The output does not depend on how the input is split between calls: bytes are collected until
//! the block or the window is full.

mod blocks;
mod fast;
mod lazy;
pub(crate) mod rules;

use self::blocks::KlauspostBlockWriter;
use self::fast::FastEncoder;
use self::lazy::LazyEncoder;
use self::rules::{KlauspostGeneration, KlauspostRules};
use super::block::MAX_STORED;
use super::{BlockSize, Encoder, RestartEncoder, StreamHints};
use crate::bits::BitWriter;

/// The way in which a stream is cut into pieces that are compressed in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PgzipPieces {
    /// The stream is not cut.
    One,
    /// `pgzip` cuts it into pieces of this many bytes, which must be more than 16 KiB.
    Parallel(u32),
}

impl PgzipPieces {
    /// The sizes that programs use: the default of `pgzip`, and its former default.
    const USUAL: [Self; 2] = [Self::Parallel(1 << 20), Self::Parallel(250_000)];
}

/// An encoder of `klauspost/compress`, or `pgzip` with this encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KlauspostFlate {
    generation: KlauspostGeneration,
    /// −2 or 0 to 9. The default level is 5.
    level: i8,
    pieces: PgzipPieces,
}

impl KlauspostFlate {
    /// The encoder with these parameters, or `None` if there is none. If several releases write the
    /// same streams at this level, one of them represents all.
    pub(crate) fn new(
        generation: KlauspostGeneration,
        level: i8,
        pieces: PgzipPieces,
    ) -> Option<Self> {
        let level = if level == -1 { 5 } else { level };
        let is_valid = (-2..=9).contains(&level)
            && (level < 7 || generation.has_lazy_levels())
            && match pieces {
                PgzipPieces::One => true,
                PgzipPieces::Parallel(size) => size > DICTIONARY as u32,
            };
        let generation = generation.representative(level, pieces != PgzipPieces::One);
        is_valid.then_some(Self {
            generation,
            level,
            pieces,
        })
    }

    /// Returns an encoder at the beginning of a stream.
    pub(crate) fn start(self) -> Box<dyn Encoder> {
        match self.pieces {
            PgzipPieces::One => start(self.generation, self.level),
            PgzipPieces::Parallel(size) => Box::new(ParallelEncoder::new(
                start_piece(self.generation, self.level),
                size as usize,
            )),
        }
    }

    /// The encoders that can have written a stream, the most likely first. Omits encoders that
    /// [`GoFlate`](super::go::GoFlate) also has.
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        let levels: &[i8] = match (hints.zlib_header, hints.gzip_extra_flags) {
            (Some([_, flags]), _) => match flags >> 6 {
                0 => &[1, -2],
                1 => &[5, 4, 3, 2],
                2 => &[6],
                _ => &[9, 8, 7],
            },
            (None, Some(2)) => &[9],
            (None, Some(4)) => &[1],
            (None, Some(0)) => &[5, 6, 4, 3, 2, 7, 8, -2],
            (None, _) => &[5, 6, 1, 9, 4, 3, 2, 7, 8, -2],
        };
        // the encoders of parallel pieces write gzip only
        let pieces: &[PgzipPieces] = match hints.zlib_header {
            Some(_) => &[PgzipPieces::One],
            None => &[
                PgzipPieces::USUAL[0],
                PgzipPieces::One,
                PgzipPieces::USUAL[1],
            ],
        };
        let mut candidates = Vec::new();
        for level in levels {
            for pieces in pieces {
                for generation in KlauspostGeneration::ALL {
                    let is_possible = hints
                        .full_block
                        .is_none_or(|size| can_be_full(generation, *level, size));
                    let is_also_go = *pieces == PgzipPieces::One
                        && generation.representative(*level, false)
                            == KlauspostGeneration::Go1_27.representative(*level, false);
                    let candidate = Self::new(generation, *level, *pieces);
                    candidates.extend(candidate.filter(|candidate| {
                        is_possible && !is_also_go && candidate.generation == generation
                    }));
                }
            }
        }
        candidates
    }

    /// The parameters in a recipe.
    pub(crate) fn to_bytes(self) -> [u8; 6] {
        let size = match self.pieces {
            PgzipPieces::One => 0,
            PgzipPieces::Parallel(size) => size,
        };
        let [a, b, c, d] = size.to_le_bytes();
        let [level] = self.level.to_le_bytes();
        [self.generation as u8, level, a, b, c, d]
    }

    /// Reads the parameters from a recipe, or returns `None` if they are unknown.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[number, level, a, b, c, d] = bytes else {
            return None;
        };
        let generation = KlauspostGeneration::ALL
            .into_iter()
            .find(|generation| *generation as u8 == number)?;
        let pieces = match u32::from_le_bytes([a, b, c, d]) {
            0 => PgzipPieces::One,
            size => PgzipPieces::Parallel(size),
        };
        let parameters = Self::new(generation, i8::from_le_bytes([level]), pieces)?;
        // each encoder has one representation
        (parameters.to_bytes() == bytes).then_some(parameters)
    }
}

fn start_piece(generation: KlauspostGeneration, level: i8) -> Box<dyn RestartEncoder> {
    let rules = generation.rules();
    match level {
        ..=-1 => Box::new(KlauspostPlainEncoder::literals(rules)),
        0 => Box::new(KlauspostPlainEncoder::stored(rules)),
        1..=6 => Box::new(FastEncoder::new(level, rules)),
        7.. => Box::new(LazyEncoder::new(level, rules)),
    }
}

/// Whether a stream at this level can begin with a full block of this size. The size of a block to
/// which later tokens were appended is a multiple of a full block.
pub(crate) fn can_be_full(generation: KlauspostGeneration, level: i8, size: BlockSize) -> bool {
    match level {
        ..=0 => {
            let block = generation.rules().literal_block as u64;
            size.plain_bytes.is_multiple_of(block)
        }
        1..=6 => size.plain_bytes.is_multiple_of(MAX_STORED as u64),
        7.. => size.tokens.is_multiple_of(lazy::BLOCK_TOKENS as u64),
    }
}

/// Starts a stream at a level of −2 or 0 to 9.
pub(crate) fn start(generation: KlauspostGeneration, level: i8) -> Box<dyn Encoder> {
    start_piece(generation, level)
}

// Levels 0 and −2: blocks without matches.

/// The encoder of levels 0 and −2.
#[derive(Debug)]
struct KlauspostPlainEncoder {
    block: Vec<u8>,
    block_size: usize,
    is_stored: bool,
    blocks: KlauspostBlockWriter,
}

impl KlauspostPlainEncoder {
    /// Level 0: stores all bytes.
    fn stored(rules: KlauspostRules) -> Self {
        Self::new(rules, MAX_STORED, true)
    }

    /// Level −2: codes the literals of a block unless a stored block is about as small.
    fn literals(rules: KlauspostRules) -> Self {
        Self::new(rules, rules.literal_block, false)
    }

    fn new(rules: KlauspostRules, block_size: usize, is_stored: bool) -> Self {
        Self {
            block: Vec::with_capacity(block_size),
            block_size,
            is_stored,
            blocks: KlauspostBlockWriter::new(rules, rules.literal_penalty_shift),
        }
    }

    fn write_block(&mut self, is_flush: bool, out: &mut BitWriter) {
        if self.block.is_empty() {
            return;
        }
        if self.is_stored {
            self.blocks.write_stored(&self.block, out);
        } else {
            self.blocks.write_literals(&self.block, is_flush, out);
        }
        self.block.clear();
    }
}

impl Encoder for KlauspostPlainEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block.len() == self.block_size {
                self.write_block(false, out);
            }
            let room = self.block_size - self.block.len();
            let (now, later) = plain.split_at(plain.len().min(room));
            self.block.extend_from_slice(now);
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.write_block(true, out);
        self.blocks.write_stored(&[], out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.write_block(true, out);
        self.blocks.finish(out);
    }
}

impl RestartEncoder for KlauspostPlainEncoder {
    fn restart(&mut self, _dictionary: &[u8]) {
        self.block.clear();
        self.blocks.reset();
    }
}

// `pgzip`: pieces of a stream that are compressed in parallel.
//
// The stream is cut into pieces of equal size. The dictionary of a piece is the last 16 KiB of the
// previous piece; there is none if that piece had at most 16 KiB. Each piece ends with an empty
// stored block. The last piece, which may be empty, is followed by the end of the stream. A flush
// ends a piece early.

/// The number of bytes of a dictionary. The size of the pieces must be larger.
const DICTIONARY: usize = 16_384;

/// Compresses the pieces of a stream one after the other.
#[derive(Debug)]
struct ParallelEncoder {
    piece: Box<dyn RestartEncoder>,
    piece_size: usize,
    /// The number of bytes in the piece.
    written: usize,
    /// The last bytes of the piece.
    tail: Vec<u8>,
}

impl ParallelEncoder {
    fn new(piece: Box<dyn RestartEncoder>, piece_size: usize) -> Self {
        Self {
            piece,
            piece_size,
            written: 0,
            tail: Vec::with_capacity(2 * DICTIONARY),
        }
    }

    fn end_piece(&mut self, out: &mut BitWriter) {
        self.piece.flush(out);
        if self.written <= DICTIONARY {
            self.tail.clear();
        }
        self.piece.restart(&self.tail);
        self.tail.clear();
        self.written = 0;
    }

    /// Keeps the last bytes of `plain`, from which the next piece gets its dictionary.
    fn remember(&mut self, plain: &[u8]) {
        let last = &plain[plain.len().saturating_sub(DICTIONARY)..];
        let kept = self.tail.len().min(DICTIONARY - last.len());
        self.tail.drain(..self.tail.len() - kept);
        self.tail.extend_from_slice(last);
    }
}

impl Encoder for ParallelEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            let room = self.piece_size - self.written;
            let (now, later) = plain.split_at(plain.len().min(room));
            self.piece.write(now, out);
            self.written += now.len();
            self.remember(now);
            if self.written == self.piece_size {
                self.end_piece(out);
            }
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.end_piece(out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.end_piece(out);
        self.piece.finish(out);
    }

    fn writes_empty_blocks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::vectors;

    /// Compares streams with the table's lines of one release. The parameters in a line are a
    /// level, or the size of pieces, a slash and a level.
    fn check(release: &str, generation: KlauspostGeneration) {
        let table = include_str!("../../../tests/vectors/klauspost.txt");
        vectors::check_lines(table, &format!("{release} "), |parameters| {
            let (pieces, level) = match parameters.split_once('/') {
                None => (PgzipPieces::One, parameters),
                Some((size, level)) => (PgzipPieces::Parallel(size.parse().unwrap()), level),
            };
            KlauspostFlate::new(generation, level.parse().unwrap(), pieces)
                .unwrap()
                .start()
        });
    }

    macro_rules! releases {
    ($($test:ident: $release:literal, $generation:ident;)*) => {$(
        #[test]
        fn $test() {
            check($release, KlauspostGeneration::$generation);
        }
    )*};
}

    releases! {
        streams_are_those_of_1_10_10: "1.10.10", V1_10;
        streams_are_those_of_1_11_13: "1.11.13", V1_11;
        streams_are_those_of_1_13_6: "1.13.6", V1_12;
        streams_are_those_of_1_14_4: "1.14.4", V1_14;
        streams_are_those_of_1_15_9: "1.15.9", V1_15_0;
        streams_are_those_of_1_15_10: "1.15.10", V1_15_10;
        streams_are_those_of_1_15_14: "1.15.14", V1_15_11;
        streams_are_those_of_1_17_11: "1.17.11", V1_15_15;
        streams_are_those_of_1_18_0: "1.18.0", V1_18_0;
        streams_are_those_of_1_18_1: "1.18.1", V1_18_1;
        streams_are_those_of_1_18_6: "1.18.6", V1_18_2;
        streams_are_those_of_1_20_3: "1.20.3", V1_20_0;
        streams_are_those_of_1_20_4: "1.20.4", V1_20_4;
    }

    #[test]
    fn parameters_are_read_back_from_a_recipe() {
        let candidates = KlauspostFlate::candidates(&StreamHints::default());
        for parameters in &candidates {
            let read = KlauspostFlate::from_bytes(&parameters.to_bytes());
            assert_eq!(read, Some(*parameters));
        }
        let distinct: std::collections::HashSet<_> = candidates.iter().collect();
        assert_eq!(distinct.len(), candidates.len());
        let invalid: [[u8; 6]; 5] = [
            [99, 5, 0, 0, 0, 0],
            [KlauspostGeneration::V1_15_15 as u8, 10, 0, 0, 0, 0],
            // the default level is recorded as level 5
            [KlauspostGeneration::V1_15_15 as u8, 0xff, 0, 0, 0, 0],
            // pieces that are not larger than the dictionary
            [KlauspostGeneration::V1_15_15 as u8, 5, 0, 0x40, 0, 0],
            // writes the same as 1.15.15 at level 5
            [KlauspostGeneration::V1_18_0 as u8, 5, 0, 0, 0, 0],
        ];
        for bytes in invalid {
            assert_eq!(KlauspostFlate::from_bytes(&bytes), None);
        }
    }
}
