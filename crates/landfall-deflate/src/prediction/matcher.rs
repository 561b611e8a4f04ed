//! Searches for matches in the window, as zlib does: positions with the same hash of three or four
//! bytes are in a chain, and the nearest ones are compared first.

use super::PredictionSpec;
use crate::encoder::bytes::boxed_array;
use crate::symbols::{LONGEST_MATCH, SHORTEST_MATCH, WINDOW};

/// The number of plain bytes after a position that affect the prediction of its token.
pub(super) const LOOKAHEAD: usize = LONGEST_MATCH + 4;
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
    previous: Box<[u32; WINDOW]>,
}

impl MatchSearch {
    pub(super) fn new(spec: PredictionSpec) -> Self {
        Self {
            spec,
            data: Vec::new(),
            at: 0,
            next_inserted: 0,
            // so that number 0, which is not a position, is too far away
            number_offset: WINDOW as u32 + 1,
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
        self.number_offset = WINDOW as u32 + 1;
        self.heads.fill(0);
    }

    /// Adds plain bytes at the end.
    pub(super) fn extend(&mut self, plain: &[u8]) {
        if self.at >= KEPT_BYTES {
            let removed = self.at - WINDOW;
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
        self.at.min(WINDOW)
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
                self.previous[number as usize % WINDOW] = self.heads[hash];
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
        let longest = (self.data.len() - index).min(LONGEST_MATCH);
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
            let length = common_length(earlier, ahead);
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
    previous: &'a [u32; WINDOW],
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
        self.next = self.previous[self.next as usize % WINDOW];
        Some(distance as usize)
    }
}

/// The last four of the first `length` bytes, or all three if `length` is 3.
#[inline]
fn tail(bytes: &[u8], length: usize) -> u32 {
    if length == SHORTEST_MATCH {
        return u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    }
    let word = bytes[length - 4..].first_chunk();
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// The number of equal bytes at the beginning of `earlier` and `ahead`, at most the length of
/// `ahead`.
fn common_length(earlier: &[u8], ahead: &[u8]) -> usize {
    let earlier = &earlier[..ahead.len()];
    let (ahead_words, _) = ahead.as_chunks::<8>();
    let (earlier_words, _) = earlier.as_chunks::<8>();
    let mut length = 0;
    for (a, b) in ahead_words.iter().zip(earlier_words) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return length + (difference.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let rest = ahead[length..].iter().zip(&earlier[length..]);
    length + rest.take_while(|(a, b)| a == b).count()
}
