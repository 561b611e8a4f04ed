//! zlib 1.2 and 1.3, and the programs that share its search and its Huffman codes: GNU gzip, and
//! pigz, which runs zlib on blocks in parallel.
//!
//! All follow the same plan. A window of up to 32 KiB with hash chains finds matches
//! ([`dictionary`], [`engine`]); tokens are collected until the block is full; the block is written
//! in the shortest of three forms, with codes whose lengths depend on a particular order of ties
//! ([`blocks`]).
//!
//! A zlib block is full at 2^(m + 6) - 1 tokens, where m is the memory level: 16,383 by default.
//! The hash has m + 7 bits.
//!
//! A flush ends the block and writes an empty stored block; a full flush also drops all earlier
//! input and empties the window.
//!
//! The output of zlib does not depend on how the input is split between calls, with one exception:
//! the window moves at the first call at which it can. The encoder here moves it as zlib does if
//! zlib gets all input at once, or in pieces whose size divides 32 KiB. The streams of programs
//! that pass pieces of other sizes differ only if a piece ends 262 bytes before the window's end,
//! and a match is found there at the greatest distance.

mod blocks;
mod dictionary;
mod engine;
pub(crate) mod pigz;

use self::blocks::{BlockChoice, Tokens};
use self::dictionary::WANTED_AHEAD;
use self::engine::{Dialect, Effort, Engine, Parsing};
use super::huffman::{Token, distance_extra_bits};
use super::{Encoder, StreamHints};
use crate::bits::BitWriter;
use crate::symbols::distance_symbol;

/// zlib's strategies, in the order of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ZlibStrategy {
    Default,
    /// Matches of at most five bytes are dropped.
    Filtered,
    /// All bytes are literals.
    HuffmanOnly,
    /// Matches of distance 1 only.
    RunLength,
    /// No dynamic blocks. Stored blocks are chosen as in zlib 1.2.13 and later.
    Fixed,
}

impl ZlibStrategy {
    const ALL: [Self; 5] = [
        Self::Default,
        Self::Filtered,
        Self::HuffmanOnly,
        Self::RunLength,
        Self::Fixed,
    ];
}

/// The parameters of zlib's `deflateInit2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ZlibDeflate {
    /// From 1 to 9.
    level: u8,
    /// The base-2 logarithm of the window's size, 9 to 15.
    window_bits: u8,
    /// From 1 to 9.
    memory_level: u8,
    strategy: ZlibStrategy,
    /// Whether a flush is a full flush, which forgets all earlier input.
    full_flush: bool,
}

impl ZlibDeflate {
    /// Returns `None` if zlib does not have such an encoder.
    pub(crate) fn new(
        level: u8,
        window_bits: u8,
        memory_level: u8,
        strategy: ZlibStrategy,
    ) -> Option<Self> {
        let exists = (1..=9).contains(&level)
            && (9..=15).contains(&window_bits)
            && (1..=9).contains(&memory_level);
        exists.then_some(Self {
            level,
            window_bits,
            memory_level,
            strategy,
            full_flush: false,
        })
    }

    /// The same encoder, with full flushes.
    fn with_full_flush(self) -> Self {
        Self {
            full_flush: true,
            ..self
        }
    }

    /// The encoders of this family that may have written a stream, the likeliest first. All have
    /// the default strategy. Encoders with other strategies are rare and not tried: the tokens of
    /// their streams are stored as differences from a prediction (see `prediction`).
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        let levels: &[u8] = match (hints.zlib_header, hints.gzip_extra_flags) {
            (Some([_, flags]), _) => match flags >> 6 {
                0 => &[1],
                1 => &[5, 4, 3, 2],
                2 => &[6],
                _ => &[9, 8, 7],
            },
            // older versions of Python set the flag of the best compression at every level
            (None, Some(2)) => &[9, 6, 1, 5, 4, 7, 8, 3, 2],
            (None, Some(4)) => &[1],
            (None, _) => &[6, 9, 1, 5, 4, 7, 8, 3, 2],
        };
        let memory_levels = match hints.first_block_tokens {
            Some(tokens) => memory_level(tokens).into_iter().collect(),
            // the first block is stored, or a flush or the end of the stream ended it early
            None => vec![8, 9],
        };
        let window_bits = match hints.zlib_header {
            Some([method, _]) => (method >> 4) + 8,
            None => window_bits(hints.longest_distance),
        };
        let mut candidates = Vec::new();
        // the largest window is tried too, because far matches can be missing by chance
        let windows = [15]
            .into_iter()
            .chain((window_bits < 15).then_some(window_bits));
        for window_bits in windows {
            for &memory_level in &memory_levels {
                for &level in levels {
                    let spec = Self::new(level, window_bits, memory_level, ZlibStrategy::Default);
                    candidates.extend(spec);
                    candidates.extend(
                        spec.filter(|_| hints.has_flushes)
                            .map(Self::with_full_flush),
                    );
                }
            }
        }
        candidates
    }

    pub(crate) fn to_bytes(self) -> [u8; 3] {
        let strategy = self.strategy as u8 | u8::from(self.full_flush) << 7;
        [
            self.level,
            self.window_bits << 4 | self.memory_level,
            strategy,
        ]
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[level, sizes, strategy] = bytes else {
            return None;
        };
        let full_flush = strategy >> 7 == 1;
        let strategy = *ZlibStrategy::ALL.get(usize::from(strategy & 0x7f))?;
        let spec = Self::new(level, sizes >> 4, sizes & 15, strategy)?;
        Some(Self { full_flush, ..spec })
    }

    pub(crate) fn start(self) -> Box<dyn Encoder> {
        Box::new(self.engine())
    }

    fn engine(self) -> Engine<ZlibDialect> {
        let mut effort = Effort::of_level(self.level);
        match self.strategy {
            ZlibStrategy::Default => {}
            ZlibStrategy::Filtered => effort.shortest_dropped = 5,
            ZlibStrategy::HuffmanOnly => effort.parsing = Parsing::Literals,
            ZlibStrategy::RunLength => effort.parsing = Parsing::Runs,
            ZlibStrategy::Fixed => effort.blocks = BlockChoice::WithoutDynamic,
        }
        let dialect = ZlibDialect {
            block_tokens: block_tokens_of(self.memory_level),
            full_flush: self.full_flush,
        };
        Engine::new(dialect, effort, self.window_bits, self.memory_level + 7)
    }
}

/// The memory level whose blocks have this number of tokens.
fn memory_level(block_tokens: u64) -> Option<u8> {
    (1..=9).find(|&memory_level| block_tokens == block_tokens_of(memory_level) as u64)
}

/// The number of tokens in a block of a memory level.
fn block_tokens_of(memory_level: u8) -> usize {
    (1 << (memory_level + 6)) - 1
}

/// The base-2 logarithm of the smallest window that can have matches at this distance.
fn window_bits(longest_distance: u32) -> u8 {
    let fits = |bits: &u8| longest_distance as usize + WANTED_AHEAD <= 1 << bits;
    (9..15).find(fits).unwrap_or(15)
}

/// The rules of zlib, which ends each block at a fixed number of tokens.
#[derive(Debug)]
struct ZlibDialect {
    block_tokens: usize,
    full_flush: bool,
}

impl Dialect for ZlibDialect {
    const READS_PAST_END: bool = false;

    #[inline]
    fn ends_block(&mut self, tokens: &Tokens, _plain_size: usize) -> bool {
        tokens.len() == self.block_tokens
    }

    fn forgets_at_flush(&self) -> bool {
        self.full_flush
    }
}

impl<D: Dialect> Encoder for Engine<D> {
    fn write(&mut self, plain: &[u8], out: &mut BitWriter) {
        Engine::write(self, plain, out);
    }

    fn flush(&mut self, out: &mut BitWriter) {
        Engine::flush(self, out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        Engine::finish(self, out);
    }
}

// GNU gzip since 1.2.4, and programs that descend from it.
//
// It differs from zlib in two points:
//
// - A block has up to 32,767 tokens. From level 3, it also ends at a multiple of 4,096 tokens if
//   this looks profitable: if less than half of the tokens are matches, and the estimated size is
//   less than half of the plain size. The estimate is 8 bits for each token, and 5 bits plus the
//   extra bits for each distance. The plain size is counted up to the position of the search,
//   which is one byte after the start of a lazy match.
// - Near the end of the input, the search also compares the bytes that follow the input in the
//   window: two zeros, then remains of earlier input. A match that exceeds the input is cut; among
//   several such matches, the one that was the longest before the cut is used.

/// The maximum number of tokens in a block.
const BLOCK_TOKENS: usize = (1 << 15) - 1;

/// A block may end each time this number of tokens was written.
const JUDGED_TOKENS: usize = 1 << 12;

/// The levels with which a program that writes gzip only may have written a stream, the likeliest
/// first.
fn levels_of_gzip(hints: &StreamHints) -> &'static [u8] {
    match hints.gzip_extra_flags {
        Some(2) => &[9],
        Some(4) => &[1],
        Some(0) => &[6, 5, 4, 7, 8, 3, 2],
        _ => &[],
    }
}

/// The program `gzip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GnuGzip {
    /// The level, 1 to 9.
    level: u8,
}

impl GnuGzip {
    /// Returns `None` if there is no such level.
    pub(crate) fn new(level: u8) -> Option<Self> {
        (1..=9).contains(&level).then_some(Self { level })
    }

    /// The encoders of this family that may have written a stream, the likeliest first.
    pub(crate) fn candidates(hints: &StreamHints) -> Vec<Self> {
        let may_end = |tokens: u64| {
            tokens.is_multiple_of(JUDGED_TOKENS as u64) || tokens == BLOCK_TOKENS as u64
        };
        if !hints.first_block_tokens.is_none_or(may_end) {
            return Vec::new();
        }
        levels_of_gzip(hints)
            .iter()
            .filter_map(|level| Self::new(*level))
            .collect()
    }

    /// The parameters in a recipe.
    pub(crate) fn to_bytes(self) -> [u8; 1] {
        [self.level]
    }

    /// Reads the parameters from a recipe, or returns `None` if they are unknown.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            &[level] => Self::new(level),
            _ => None,
        }
    }

    /// Returns an encoder at the beginning of a stream.
    pub(crate) fn start(self) -> Box<dyn Encoder> {
        let dialect = GnuDialect {
            ends_early: self.level > 2,
            matches: 0,
            distance_bits: 0,
        };
        Box::new(Engine::new(dialect, Effort::of_level(self.level), 15, 15))
    }
}

/// The rules of GNU gzip.
#[derive(Debug)]
struct GnuDialect {
    ends_early: bool,
    /// The number of matches of the block up to the last multiple of 4,096 tokens.
    matches: usize,
    /// The estimated size of the distances of these matches, in bits.
    distance_bits: usize,
}

impl GnuDialect {
    /// Whether it is profitable to end the block, which has a multiple of 4,096 tokens. Not
    /// inlined, so that `ends_block`, which is called for every token, can be inlined.
    #[inline(never)]
    fn is_profitable(&mut self, tokens: &[Token], plain_size: usize) -> bool {
        if tokens.len() == JUDGED_TOKENS {
            self.matches = 0;
            self.distance_bits = 0;
        }
        for token in &tokens[tokens.len() - JUDGED_TOKENS..] {
            if token.as_literal().is_none() {
                self.matches += 1;
                let code = distance_symbol(token.distance());
                self.distance_bits += 5 + distance_extra_bits(code) as usize;
            }
        }
        let size = (8 * tokens.len() + self.distance_bits) / 8;
        self.matches < tokens.len() / 2 && size < plain_size / 2
    }
}

impl Dialect for GnuDialect {
    const READS_PAST_END: bool = true;

    #[inline]
    fn ends_block(&mut self, tokens: &Tokens, plain_size: usize) -> bool {
        let count = tokens.len();
        if self.ends_early && count.is_multiple_of(JUDGED_TOKENS) {
            return self.is_profitable(tokens.as_slice(), plain_size);
        }
        count == BLOCK_TOKENS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::vectors;

    fn parse(parameters: &str) -> ZlibDeflate {
        let (numbers, is_full) = match parameters.strip_suffix(" full") {
            Some(numbers) => (numbers, true),
            None => (parameters, false),
        };
        let numbers: Vec<u8> = numbers
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let &[level, window_bits, memory_level, strategy] = numbers.as_slice() else {
            panic!("not four numbers: {parameters}");
        };
        let strategy = ZlibStrategy::ALL[usize::from(strategy)];
        let spec = ZlibDeflate::new(level, window_bits, memory_level, strategy).unwrap();
        if is_full {
            spec.with_full_flush()
        } else {
            spec
        }
    }

    #[test]
    fn streams_are_those_of_zlib() {
        let table = include_str!("../../../tests/vectors/zlib.txt");
        vectors::check(table, |parameters| parse(parameters).start());
    }

    #[test]
    fn parameters_are_read_back_from_a_recipe() {
        for strategy in ZlibStrategy::ALL {
            for (level, window_bits, memory_level) in [(1, 9, 1), (6, 15, 8), (9, 15, 9)] {
                let spec = ZlibDeflate::new(level, window_bits, memory_level, strategy).unwrap();
                for spec in [spec, spec.with_full_flush()] {
                    assert_eq!(ZlibDeflate::from_bytes(&spec.to_bytes()), Some(spec));
                }
            }
        }
        for bytes in [
            [0, 0xf8, 0],
            [10, 0xf8, 0],
            [6, 0x88, 0],
            [6, 0xf0, 0],
            [6, 0xfa, 0],
            [6, 0xf8, 5],
        ] {
            assert_eq!(ZlibDeflate::from_bytes(&bytes), None);
        }
    }
}

#[cfg(test)]
mod gnu_tests {
    use super::*;
    use crate::encoder::vectors;

    #[test]
    fn streams_are_those_of_gzip() {
        let table = include_str!("../../../tests/vectors/gzip.txt");
        vectors::check(table, |level| {
            GnuGzip::new(level.parse().unwrap()).unwrap().start()
        });
    }

    #[test]
    fn parameters_are_read_back_from_a_recipe() {
        for spec in (1..=9).filter_map(GnuGzip::new) {
            assert_eq!(GnuGzip::from_bytes(&spec.to_bytes()), Some(spec));
        }
        assert_eq!(GnuGzip::from_bytes(&[0]), None);
        assert_eq!(GnuGzip::from_bytes(&[10]), None);
    }
}
