//! Describes the tokens of a stream relative to a prediction, for encoders that are not replayed.
//!
//! For each token, the window offers a match at its position and one at the next position. A model
//! learns how the encoder decides between a literal, the longest match and other matches, and an
//! arithmetic coder writes the encoder's actual decisions. The decisions of an encoder with simple
//! rules take up almost no space. Block boundaries and the headers of dynamic blocks are coded in
//! the same way. The code lengths in a header are coded relative to those that are computed from
//! the tokens.
//!
//! [`TokenWriter`] and [`TokenReader`] run the same model with a coder for each direction. All
//! predictions depend only on the plain bytes before a position and on the
//! [`LOOKAHEAD`] bytes after it, so both directions stream.
//!
//! 1. `coder`: the arithmetic coder;
//! 2. `model`: tokens, blocks and the headers of dynamic blocks;
//! 3. `writer` and `reader`: the two directions.
//!
//! This file searches the matches that the window offers.

mod coder;
mod model;
mod reader;
mod writer;

use self::model::{BlockModel, HeaderModel, TokenModel};
use crate::encoder::chains::{boxed_array, common_length};
use crate::inflate::DecodedToken;
use crate::symbols::{MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH};

pub(crate) use self::reader::TokenReader;
pub(crate) use self::writer::TokenWriter;

/// The search for matches that an encoder seems to use. The model learns other properties, such as
/// lazy matching, from the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PredictionSpec {
    /// The number of bytes that the positions of a chain share, 3 or 4: the shortest match.
    hashed_bytes: u8,
    /// The binary logarithm of the number of positions that a search compares.
    chain_log: u8,
    /// A match of at least this length ends the search.
    nice_length: u16,
    /// After a match of at least this length, the search one byte later compares only a quarter of
    /// the positions.
    good_length: u16,
    /// After a match that is shorter than this, a match one byte later is searched.
    lazy_length: u16,
    /// If a match is longer than this, the positions inside of it cannot be found later; 0 if there
    /// is no such limit.
    longest_inserted: u8,
    /// Whether the longest 262 distances of the window are used.
    uses_whole_window: bool,
}

/// The longest distance of encoders whose window also contains the next 262 bytes: the longest
/// match and a few more.
const USUAL_DISTANCE: usize = MAX_DISTANCE - 262;

impl PredictionSpec {
    /// An encoder that uses each match at once, without a search one byte later.
    const fn greedy(chain_log: u8, nice_length: u16, longest_inserted: u8) -> Self {
        Self {
            hashed_bytes: 3,
            chain_log,
            nice_length,
            good_length: 258,
            lazy_length: 0,
            longest_inserted,
            uses_whole_window: false,
        }
    }

    /// An encoder that searches for a longer match one byte later.
    const fn lazy(chain_log: u8, nice_length: u16, good_length: u16, lazy_length: u16) -> Self {
        Self {
            hashed_bytes: 3,
            chain_log,
            nice_length,
            good_length,
            lazy_length,
            longest_inserted: 0,
            uses_whole_window: false,
        }
    }

    /// The same encoder with chains of positions that share four bytes.
    const fn with_four_bytes(mut self) -> Self {
        self.hashed_bytes = 4;
        self
    }

    /// The parameters that are tried, from fast to slow, including those of zlib's levels.
    const CANDIDATES: [Self; 15] = [
        Self::greedy(0, 258, 0).with_four_bytes(),
        Self::greedy(0, 258, 0),
        Self::lazy(0, 258, 258, 258),
        Self::greedy(1, 258, 0).with_four_bytes(),
        Self::lazy(1, 258, 258, 258).with_four_bytes(),
        Self::greedy(2, 8, 4),
        Self::greedy(3, 16, 5),
        Self::lazy(4, 16, 4, 4),
        Self::greedy(5, 32, 6),
        Self::lazy(5, 32, 8, 16),
        Self::lazy(5, 258, 258, 258).with_four_bytes(),
        Self::lazy(7, 128, 8, 16),
        Self::lazy(8, 128, 8, 32),
        Self::lazy(10, 258, 32, 128),
        Self::lazy(12, 258, 32, 258),
    ];

    /// These parameters with the window that the tokens need.
    fn for_tokens(mut self, tokens: &[DecodedToken]) -> Self {
        let mut matches = tokens.iter().filter_map(|token| token.as_match());
        self.uses_whole_window = matches.any(|(_, distance)| distance > USUAL_DISTANCE);
        self
    }

    /// The longest distance that is searched.
    fn longest_distance(self) -> usize {
        if self.uses_whole_window {
            MAX_DISTANCE
        } else {
            USUAL_DISTANCE
        }
    }

    /// The encoding of the parameters in recipes.
    pub(crate) fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[0] = self.hashed_bytes;
        bytes[1] = self.chain_log;
        bytes[2..4].copy_from_slice(&self.nice_length.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.good_length.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.lazy_length.to_le_bytes());
        bytes[8] = self.longest_inserted;
        bytes[9] = u8::from(self.uses_whole_window);
        bytes
    }

    /// The parameters that `to_bytes` recorded.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let &[
            hashed_bytes,
            chain_log,
            n0,
            n1,
            g0,
            g1,
            l0,
            l1,
            longest_inserted,
            window,
        ] = bytes
        else {
            return None;
        };
        let spec = Self {
            hashed_bytes,
            chain_log,
            nice_length: u16::from_le_bytes([n0, n1]),
            good_length: u16::from_le_bytes([g0, g1]),
            lazy_length: u16::from_le_bytes([l0, l1]),
            longest_inserted,
            uses_whole_window: window == 1,
        };
        let is_valid = matches!(hashed_bytes, 3 | 4)
            && chain_log <= 12
            && (3..=258).contains(&spec.nice_length)
            && spec.good_length <= 258
            && spec.lazy_length <= 258
            && window <= 1;
        is_valid.then_some(spec)
    }
}

// The state that all models have learned.

/// Everything that is learned from the streams of a file.
#[derive(Debug, Clone)]
struct PredictionModel {
    tokens: TokenModel,
    blocks: BlockModel,
    headers: HeaderModel,
}

impl PredictionModel {
    fn new() -> Self {
        Self {
            tokens: TokenModel::new(),
            blocks: BlockModel::new(),
            headers: HeaderModel::new(),
        }
    }
}

// Searches for matches in the window, as zlib does: positions with the same hash of three or four
// bytes are in a chain, and the nearest ones are compared first.

/// The number of plain bytes after a position that affect the prediction of its token.
pub(super) const LOOKAHEAD: usize = MAX_LENGTH + 4;

/// The maximum number of positions that a search for matches of a given length compares.
const LONGEST_WALK: usize = 1024;

/// The number of bytes after which the window is moved to the front.
const KEPT_BYTES: usize = 256 << 10;

/// The number of chains, one for each value of the hash.
const HASHES: usize = 1 << 15;

/// A match that the window offers. Its length is 0 if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WindowMatch {
    pub(super) length: usize,
    pub(super) distance: usize,
}

/// The plain bytes around the current position, and the chains of earlier positions.
#[derive(Debug, Clone)]
pub(super) struct MatchSearch {
    spec: PredictionSpec,
    data: Vec<u8>,
    /// The index in `data` of the current position.
    at: usize,
    /// The index of the first position that is not in a chain yet.
    next_inserted: usize,
    /// The number of the byte at index 0 of `data`. Numbers wrap around.
    number_offset: u32,
    /// The number of the latest position with each hash.
    heads: Box<[u32; HASHES]>,
    /// For each position in the window, the number of the one before it with the same hash.
    previous: Box<[u32; MAX_DISTANCE]>,
}

impl MatchSearch {
    pub(super) fn new(spec: PredictionSpec) -> Self {
        Self {
            spec,
            data: Vec::new(),
            at: 0,
            next_inserted: 0,
            // so that number 0, which is not a position, is too far away
            number_offset: MAX_DISTANCE as u32 + 1,
            heads: boxed_array(0),
            previous: boxed_array(0),
        }
    }

    /// Empties the window, for the beginning of a stream.
    pub(super) fn restart(&mut self, spec: PredictionSpec) {
        self.spec = spec;
        self.data.clear();
        self.at = 0;
        self.next_inserted = 0;
        self.number_offset = MAX_DISTANCE as u32 + 1;
        self.heads.fill(0);
    }

    /// Adds plain bytes at the end.
    pub(super) fn extend(&mut self, plain: &[u8]) {
        if self.at >= KEPT_BYTES {
            let removed = self.at - MAX_DISTANCE;
            self.insert_up_to(removed);
            self.data.drain(..removed);
            self.at -= removed;
            self.next_inserted -= removed;
            self.number_offset = self.number_offset.wrapping_add(removed as u32);
        }
        self.data.extend_from_slice(plain);
    }

    /// The plain bytes from the current position on.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.data[self.at..]
    }

    /// The longest distance of a match at the current position.
    pub(super) fn longest_distance(&self) -> usize {
        self.at.min(MAX_DISTANCE)
    }

    /// Moves the current position past a token of `length` bytes.
    pub(super) fn advance(&mut self, length: usize) {
        self.at += length;
        let limit = usize::from(self.spec.longest_inserted);
        if limit > 0 && length > limit {
            // as in zlib, only the first position of a long match is put into a chain
            self.insert_up_to(self.at - length + 1);
            self.next_inserted = self.at;
        }
    }

    /// Moves the current position past stored bytes.
    pub(super) fn skip(&mut self, length: usize) {
        self.at += length;
    }

    #[inline]
    fn hash(&self, index: usize) -> Option<usize> {
        let bytes = &self.data[index..];
        if self.spec.hashed_bytes == 4 {
            let word = u32::from_le_bytes(*bytes.first_chunk()?);
            return Some((word.wrapping_mul(0x9e37_79b1) >> 17) as usize);
        }
        let [a, b, c] = *bytes.first_chunk()?;
        Some((usize::from(a) << 10 ^ usize::from(b) << 5 ^ usize::from(c)) % HASHES)
    }

    fn number(&self, index: usize) -> u32 {
        (index as u32).wrapping_add(self.number_offset)
    }

    /// Puts all positions before `end` into their chains.
    fn insert_up_to(&mut self, end: usize) {
        while self.next_inserted < end {
            let index = self.next_inserted;
            self.next_inserted += 1;
            if let Some(hash) = self.hash(index) {
                let number = self.number(index);
                self.previous[number as usize % MAX_DISTANCE] = self.heads[hash];
                self.heads[hash] = number;
            }
        }
    }

    /// The distances of earlier positions with the same hash, the nearest first.
    fn chain(&self, index: usize) -> MatchChain<'_> {
        let number = self.number(index);
        MatchChain {
            previous: &self.previous,
            number,
            next: self.hash(index).map_or(number, |hash| self.heads[hash]),
            last: 0,
            limit: index.min(self.spec.longest_distance()) as u32,
        }
    }

    /// Searches for the longest match at the current position, and among equally long matches for
    /// the nearest.
    pub(super) fn search(&mut self) -> WindowMatch {
        self.search_at(self.at, 0)
    }

    /// Searches for a match one byte after the current position. Returns only matches of at least
    /// `length` bytes, the length of the match at the current position.
    pub(super) fn search_next(&mut self, length: usize) -> WindowMatch {
        if length >= usize::from(self.spec.lazy_length) || self.ahead().len() <= length {
            return WindowMatch::default();
        }
        self.search_at(self.at + 1, length)
    }

    fn search_at(&mut self, index: usize, before: usize) -> WindowMatch {
        self.insert_up_to(index);
        let longest = (self.data.len() - index).min(MAX_LENGTH);
        let mut steps = 1_usize << self.spec.chain_log;
        if before >= usize::from(self.spec.good_length) {
            steps = (steps >> 2).max(1);
        }
        let mut best = WindowMatch::default();
        let mut shortest = before.max(usize::from(self.spec.hashed_bytes));
        if longest < shortest {
            return best;
        }
        let ahead = &self.data[index..index + longest];
        // a match of `shortest` bytes must end with these bytes
        let mut end = tail(ahead, shortest);
        for distance in self.chain(index).take(steps) {
            let earlier = &self.data[index - distance..];
            if tail(earlier, shortest) != end {
                continue;
            }
            let length = common_length(&earlier[..ahead.len()], ahead);
            if length >= shortest {
                best = WindowMatch { length, distance };
                if length >= usize::from(self.spec.nice_length) || length == longest {
                    break;
                }
                shortest = length + 1;
                end = tail(ahead, shortest);
            }
        }
        best
    }

    /// The distances of matches of at least `length` bytes at the current position, the nearest
    /// first.
    pub(super) fn distances(&mut self, length: usize) -> impl Iterator<Item = usize> {
        self.insert_up_to(self.at);
        let index = self.at;
        let data = &self.data;
        let ahead = &data[index..(index + length).min(data.len())];
        self.chain(index)
            .take(LONGEST_WALK)
            .filter(move |distance| {
                let earlier = &data[index - distance..];
                ahead.len() == length && earlier[..length] == *ahead
            })
    }
}

/// Iterates over the earlier positions on a chain, the nearest first.
struct MatchChain<'a> {
    previous: &'a [u32; MAX_DISTANCE],
    number: u32,
    next: u32,
    /// The last distance. A chain whose distances do not grow has run into newer positions.
    last: u32,
    limit: u32,
}

impl Iterator for MatchChain<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let distance = self.number.wrapping_sub(self.next);
        if distance <= self.last || distance > self.limit {
            return None;
        }
        self.last = distance;
        self.next = self.previous[self.next as usize % MAX_DISTANCE];
        Some(distance as usize)
    }
}

/// The last four of the first `length` bytes, or all three if `length` is 3.
#[inline]
fn tail(bytes: &[u8], length: usize) -> u32 {
    if length == MIN_LENGTH {
        return u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    }
    let word = bytes[length - 4..].first_chunk();
    word.map_or(0, |word| u32::from_le_bytes(*word))
}
