//! The history, the tables' entries for it, and the tokens that a search writes.

use crate::encoder::bytes::{load32, load64, match_length};
use crate::encoder::klauspost::rules::KlauspostRules;
use crate::encoder::symbols::{MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH, Token};

/// A match begins at least this many bytes before the end of a block.
pub(super) const MARGIN: usize = 11;
/// A match is found by this many bytes, and then extended.
pub(super) const KNOWN_LENGTH: usize = 4;

/// A hash of `BITS` bits for the lowest `BYTES` bytes.
#[inline]
pub(super) fn hash<const BYTES: u32, const BITS: u32>(bytes: u64) -> usize {
    const PRIME_4: u32 = 2_654_435_761;
    const PRIME_5: u64 = 889_523_592_379;
    const PRIME_7: u64 = 58_295_818_150_454_627;
    match BYTES {
        5 => ((bytes << 24).wrapping_mul(PRIME_5) >> (64 - BITS)) as usize,
        7 => ((bytes << 8).wrapping_mul(PRIME_7) >> (64 - BITS)) as usize,
        _ => ((bytes as u32).wrapping_mul(PRIME_4) >> (32 - BITS)) as usize,
    }
}

/// A hash of 15 bits for the lowest four bytes, with the multiplier of Go's level 1. It is used by
/// level 1 if its hashes have four bytes, and by the first variant of level 3.
#[inline]
pub(super) fn hash_15(bytes: u64) -> usize {
    ((bytes as u32).wrapping_mul(0x1e35_a7bd) >> (32 - 15)) as usize
}

/// An entry of a table: the position of a place in the history. 0 is out of reach of all places.
pub(super) type TablePosition = u32;

/// Two entries of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PositionPair {
    pub(super) last: TablePosition,
    pub(super) before: TablePosition,
}

impl PositionPair {
    #[inline]
    pub(super) fn push(&mut self, position: TablePosition) {
        self.before = self.last;
        self.last = position;
    }
}

/// The bytes that matches refer to; the block that is searched is at their end. A *place* is an
/// index into these bytes; a *position* does not change when the history moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryPlaces<'h> {
    pub(super) bytes: &'h [u8],
    /// The index in `bytes` at which the block begins.
    pub(super) start: usize,
    /// The position of the first byte.
    pub(super) base: TablePosition,
    pub(super) rules: KlauspostRules,
}

impl HistoryPlaces<'_> {
    /// The last place where a match may begin.
    pub(super) fn limit(&self) -> usize {
        self.bytes.len() - MARGIN
    }

    #[inline]
    pub(super) fn position(&self, place: usize) -> TablePosition {
        self.base.wrapping_add(place as u32)
    }

    /// The distance from an entry to `place`.
    #[inline]
    pub(super) fn distance(&self, place: usize, entry: TablePosition) -> usize {
        self.position(place).wrapping_sub(entry) as usize
    }

    /// The place of `entry`, if it is less than 32 KiB before `place` and its four bytes equal the
    /// lowest four of `bytes`.
    #[inline]
    pub(super) fn find(&self, place: usize, entry: TablePosition, bytes: u64) -> Option<usize> {
        self.find_within(place, entry, bytes, MAX_DISTANCE - 1)
    }

    /// Like [`Self::find`], for an entry that is at most `reach` bytes before `place`.
    #[inline]
    pub(super) fn find_within(
        &self,
        place: usize,
        entry: TablePosition,
        bytes: u64,
        reach: usize,
    ) -> Option<usize> {
        let distance = self.distance(place, entry);
        if distance > reach {
            return None;
        }
        let source = place.wrapping_sub(distance);
        (load32(self.bytes, source) == bytes as u32).then_some(source)
    }

    /// The length of a match whose first four bytes are known to be equal.
    #[inline]
    pub(super) fn length(&self, place: usize, source: usize) -> usize {
        KNOWN_LENGTH + self.more(place + KNOWN_LENGTH, source + KNOWN_LENGTH)
    }

    /// The number of equal bytes at `place` and `source`, up to the end of the block.
    #[inline]
    pub(super) fn more(&self, place: usize, source: usize) -> usize {
        match_length(self.bytes, source, place, self.bytes.len() - place)
    }

    /// Like [`Self::length`], up to the longest match of deflate.
    #[inline]
    pub(super) fn limited_length(&self, place: usize, source: usize) -> usize {
        let place = place + KNOWN_LENGTH;
        let source = source + KNOWN_LENGTH;
        let limit = (self.bytes.len() - place).min(MAX_LENGTH - KNOWN_LENGTH);
        KNOWN_LENGTH + match_length(self.bytes, source, place, limit)
    }

    #[inline]
    pub(super) fn load(&self, place: usize) -> u64 {
        load64(self.bytes, place)
    }
}

/// A match in the history.
#[derive(Debug, Clone, Copy)]
pub(super) struct FastMatch {
    pub(super) place: usize,
    pub(super) source: usize,
    pub(super) length: usize,
}

/// The tokens of a block, and the first place that none of them covers.
#[derive(Debug)]
pub(super) struct TokenOutput<'t> {
    pub(super) tokens: &'t mut Vec<Token>,
    pub(super) literals: usize,
}

impl TokenOutput<'_> {
    /// Extends a match backwards over bytes that are not yet written, then writes the literals
    /// before the match and the match itself. Returns the match that was written.
    #[inline]
    pub(super) fn push(&mut self, mut found: FastMatch, places: HistoryPlaces<'_>) -> FastMatch {
        let bytes = places.bytes;
        while found.source > 0
            && found.place > self.literals
            && bytes[found.source - 1] == bytes[found.place - 1]
        {
            found.place -= 1;
            found.source -= 1;
            found.length += 1;
        }
        let literals = &bytes[self.literals..found.place];
        let literals = literals.iter().map(|byte| Token::literal(*byte));
        self.tokens.extend(literals);
        self.literals = found.place + found.length;
        let distance = found.place - found.source;
        let mut rest = found.length;
        while rest > MAX_LENGTH {
            // the remainder must be at least as long as the shortest match
            let piece = if rest > MAX_LENGTH + MIN_LENGTH && places.rules.splits_evenly {
                MAX_LENGTH
            } else {
                MAX_LENGTH - MIN_LENGTH
            };
            self.tokens.push(Token::matched(piece, distance));
            rest -= piece;
        }
        self.tokens.push(Token::matched(rest, distance));
        found
    }

    /// The place at which the search continues after a match; without the match, it would have
    /// tried `next`. `next` was entered into the tables already, so no search begins there.
    #[inline]
    pub(super) fn next_place(&self, next: usize) -> usize {
        if next >= self.literals {
            next + 1
        } else {
            self.literals
        }
    }

    /// Writes the remainder of the block as literals. A block without a match has no tokens.
    pub(super) fn finish(self, places: HistoryPlaces<'_>) {
        if !self.tokens.is_empty() {
            let literals = &places.bytes[self.literals..];
            self.tokens
                .extend(literals.iter().map(|byte| Token::literal(*byte)));
        }
    }
}

/// The tables of a level.
pub(super) trait BlockSearch: std::fmt::Debug {
    /// Finds the tokens of the block at the end of `places`. The block has at least 13 bytes.
    fn search(&mut self, places: HistoryPlaces<'_>, output: TokenOutput<'_>);

    /// Lowers all entries by `by`, but not below 0.
    fn lower(&mut self, by: TablePosition);
}
