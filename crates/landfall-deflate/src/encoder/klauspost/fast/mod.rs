//! Levels 1 to 6: tables of hashes over a history of several blocks, and blocks of 65,535 bytes.

mod tables;

use super::blocks::KlauspostBlockWriter;
use super::rules::{HashWidth, KlauspostRules};
use crate::bits::BitWriter;
use crate::encoder::block::MAX_STORED;
use crate::encoder::chains::{boxed_array, load32, load64, match_length};
use crate::encoder::huffman::Token;
use crate::encoder::{Encoder, RestartEncoder};
use crate::symbols::{MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH};

/// The number of bytes of a block.
const BLOCK: usize = MAX_STORED;

/// Smaller blocks are not searched.
const MIN_SEARCHED: usize = MARGIN + 2;

/// In most releases, a flush of fewer bytes than this is not searched, and clears the history.
const SMALL: usize = 128;

/// A flush that is not searched is stored uncompressed if it has at most this many bytes.
const MAX_FLUSH_STORED: usize = 32;

/// When positions have grown beyond this, all entries are lowered.
const MAX_BASE: u32 = 1 << 30;

/// The encoder of levels 1 to 6.
#[derive(Debug)]
pub(super) struct FastEncoder {
    rules: KlauspostRules,
    block: Vec<u8>,
    history: Vec<u8>,
    /// The position of the first byte of the history.
    base: TablePosition,
    search: Box<dyn BlockSearch>,
    tokens: Vec<Token>,
    blocks: KlauspostBlockWriter,
}

impl FastEncoder {
    /// The encoder of a level from 1 to 6. Lower levels get the encoder of level 1, and higher
    /// levels get the encoder of level 6.
    pub(super) fn new(level: i8, rules: KlauspostRules) -> Self {
        let search: Box<dyn BlockSearch> = match level {
            ..=1 if rules.hashes == HashWidth::FiveBytes => Level1::<5>::search(),
            ..=1 => Level1::<4>::search(),
            2 if rules.hashes == HashWidth::FiveBytes => Level2::<5>::search(),
            2 => Level2::<4>::search(),
            3 => tables::level_3(rules),
            4 => Box::new(tables::Level4::new()),
            5 => Box::new(tables::HashTables::<5>::new()),
            6.. => Box::new(tables::HashTables::<6>::new()),
        };
        Self {
            rules,
            block: Vec::with_capacity(BLOCK),
            history: Vec::with_capacity(rules.history_blocks * BLOCK),
            base: MAX_DISTANCE as u32 + 1,
            search,
            tokens: Vec::with_capacity(BLOCK),
            blocks: KlauspostBlockWriter::new(rules, rules.penalty_shift),
        }
    }

    /// Puts all entries out of reach.
    fn forget(&mut self) {
        self.base += (MAX_DISTANCE + self.history.len()) as u32;
        self.history.clear();
    }

    /// Appends the block to the history, and splits it into tokens.
    fn find_tokens(&mut self) {
        self.tokens.clear();
        if self.base > MAX_BASE {
            let lower_by = self.base - (MAX_DISTANCE as u32 + 1);
            self.search.lower(lower_by);
            self.base -= lower_by;
        }
        if self.history.len() + self.block.len() > self.rules.history_blocks * BLOCK {
            let moved = self.history.len() - MAX_DISTANCE;
            self.history.copy_within(moved.., 0);
            self.history.truncate(MAX_DISTANCE);
            self.base += moved as u32;
        }
        let start = self.history.len();
        self.history.extend_from_slice(&self.block);
        if self.block.len() >= MIN_SEARCHED {
            let places = HistoryPlaces {
                bytes: &self.history,
                start,
                base: self.base,
                rules: self.rules,
            };
            let output = TokenOutput {
                tokens: &mut self.tokens,
                literals: start,
            };
            self.search.search(places, output);
        }
    }

    /// Writes the bytes that were collected. `is_flush` means that a flush or the end of the stream
    /// follows, `is_last` that the end follows.
    fn write_block(&mut self, is_flush: bool, is_last: bool, out: &mut BitWriter) {
        let length = self.block.len();
        if length == 0 {
            return;
        }
        let is_small = is_flush && length < SMALL;
        let keeps_history = self.rules.flushes_keep_history;
        if is_small && (!keeps_history || is_last && self.history.is_empty()) {
            if length <= MAX_FLUSH_STORED {
                self.blocks.write_stored(&self.block, out);
            } else {
                self.blocks.write_literals(&self.block, true, out);
            }
            self.block.clear();
            self.forget();
            return;
        }
        self.find_tokens();
        let is_unmatched = self.tokens.is_empty();
        if length < MIN_SEARCHED || is_unmatched && !is_small {
            self.blocks.write_stored(&self.block, out);
        } else if is_unmatched || self.tokens.len() > length - (length >> 4) {
            self.blocks.write_literals(&self.block, is_flush, out);
        } else {
            self.blocks
                .write_tokens(&self.tokens, Some(&self.block), is_flush, out);
        }
        self.block.clear();
    }
}

impl Encoder for FastEncoder {
    fn write(&mut self, mut plain: &[u8], out: &mut BitWriter) {
        while !plain.is_empty() {
            if self.block.len() == BLOCK {
                self.write_block(false, false, out);
            }
            let (now, later) = plain.split_at(plain.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            plain = later;
        }
    }

    fn flush(&mut self, out: &mut BitWriter) {
        self.write_block(true, false, out);
        self.blocks.write_stored(&[], out);
    }

    fn finish(&mut self, out: &mut BitWriter) {
        self.write_block(true, true, out);
        self.blocks.finish(out);
    }
}

impl RestartEncoder for FastEncoder {
    fn restart(&mut self, dictionary: &[u8]) {
        self.blocks.reset();
        self.block.clear();
        self.forget();
        let reached = dictionary.len().saturating_sub(MAX_DISTANCE);
        self.block.extend_from_slice(&dictionary[reached..]);
        self.find_tokens();
        self.block.clear();
    }
}

/// A match begins at least this many bytes before the end of a block.
const MARGIN: usize = 11;

/// A match is found by this many bytes, and then extended.
const KNOWN_LENGTH: usize = 4;

/// A hash of `BITS` bits for the lowest `BYTES` bytes.
#[inline]
fn hash<const BYTES: u32, const BITS: u32>(bytes: u64) -> usize {
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
fn hash_15(bytes: u64) -> usize {
    ((bytes as u32).wrapping_mul(0x1e35_a7bd) >> (32 - 15)) as usize
}

/// An entry of a table: the position of a place in the history. 0 is out of reach of all places.
type TablePosition = u32;

/// Two entries of a table.
#[derive(Debug, Clone, Copy, Default)]
struct PositionPair {
    last: TablePosition,
    before: TablePosition,
}

impl PositionPair {
    #[inline]
    fn push(&mut self, position: TablePosition) {
        self.before = self.last;
        self.last = position;
    }
}

/// The bytes that matches refer to; the block that is searched is at their end. A *place* is an
/// index into these bytes; a *position* does not change when the history moves.
#[derive(Debug, Clone, Copy)]
struct HistoryPlaces<'h> {
    bytes: &'h [u8],
    /// The index in `bytes` at which the block begins.
    start: usize,
    /// The position of the first byte.
    base: TablePosition,
    rules: KlauspostRules,
}

impl HistoryPlaces<'_> {
    /// The last place where a match may begin.
    fn limit(&self) -> usize {
        self.bytes.len() - MARGIN
    }

    #[inline]
    fn position(&self, place: usize) -> TablePosition {
        self.base.wrapping_add(place as u32)
    }

    /// The distance from an entry to `place`.
    #[inline]
    fn distance(&self, place: usize, entry: TablePosition) -> usize {
        self.position(place).wrapping_sub(entry) as usize
    }

    /// The place of `entry`, if it is less than 32 KiB before `place` and its four bytes equal the
    /// lowest four of `bytes`.
    #[inline]
    fn find(&self, place: usize, entry: TablePosition, bytes: u64) -> Option<usize> {
        self.find_within(place, entry, bytes, MAX_DISTANCE - 1)
    }

    /// Like [`Self::find`], for an entry that is at most `reach` bytes before `place`.
    #[inline]
    fn find_within(
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
    fn length(&self, place: usize, source: usize) -> usize {
        KNOWN_LENGTH + self.more(place + KNOWN_LENGTH, source + KNOWN_LENGTH)
    }

    /// The number of equal bytes at `place` and `source`, up to the end of the block.
    #[inline]
    fn more(&self, place: usize, source: usize) -> usize {
        match_length(self.bytes, source, place, self.bytes.len() - place)
    }

    /// Like [`Self::length`], up to the longest match of deflate.
    #[inline]
    fn limited_length(&self, place: usize, source: usize) -> usize {
        let place = place + KNOWN_LENGTH;
        let source = source + KNOWN_LENGTH;
        let limit = (self.bytes.len() - place).min(MAX_LENGTH - KNOWN_LENGTH);
        KNOWN_LENGTH + match_length(self.bytes, source, place, limit)
    }

    #[inline]
    fn load(&self, place: usize) -> u64 {
        load64(self.bytes, place)
    }
}

/// A match in the history.
#[derive(Debug, Clone, Copy)]
struct FastMatch {
    place: usize,
    source: usize,
    length: usize,
}

/// The tokens of a block, and the first place that none of them covers.
#[derive(Debug)]
struct TokenOutput<'t> {
    tokens: &'t mut Vec<Token>,
    literals: usize,
}

impl TokenOutput<'_> {
    /// Extends a match backwards over bytes that are not yet written, then writes the literals
    /// before the match and the match itself. Returns the match that was written.
    #[inline]
    fn push(&mut self, mut found: FastMatch, places: HistoryPlaces<'_>) -> FastMatch {
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
    fn next_place(&self, next: usize) -> usize {
        if next >= self.literals {
            next + 1
        } else {
            self.literals
        }
    }

    /// Writes the remainder of the block as literals. A block without a match has no tokens.
    fn finish(self, places: HistoryPlaces<'_>) {
        if !self.tokens.is_empty() {
            let literals = &places.bytes[self.literals..];
            self.tokens
                .extend(literals.iter().map(|byte| Token::literal(*byte)));
        }
    }
}

/// The tables of a level.
trait BlockSearch: std::fmt::Debug {
    /// Finds the tokens of the block at the end of `places`. The block has at least 13 bytes.
    fn search(&mut self, places: HistoryPlaces<'_>, output: TokenOutput<'_>);

    /// Lowers all entries by `by`, but not below 0.
    fn lower(&mut self, by: TablePosition);
}

// Levels 1 and 2: a table with the last position of each hash.

/// The steps between positions grow by one for each 2^5 bytes without a match.
const SKIP_SHIFT: u32 = 5;

/// The shortest step. Each step is followed by a step of one.
const STEP: usize = 2;

/// The search of level `LEVEL`, 1 or 2, with hashes of `BYTES` bytes in a table of `SIZE` entries.
#[derive(Debug)]
struct LastPositions<const LEVEL: u8, const BYTES: u32, const SIZE: usize> {
    table: Box<[TablePosition; SIZE]>,
}

type Level1<const BYTES: u32> = LastPositions<1, BYTES, { 1 << 15 }>;
type Level2<const BYTES: u32> = LastPositions<2, BYTES, { 1 << 17 }>;

impl<const LEVEL: u8, const BYTES: u32, const SIZE: usize> LastPositions<LEVEL, BYTES, SIZE> {
    fn search() -> Box<dyn BlockSearch> {
        Box::new(Self {
            table: boxed_array(0),
        })
    }

    #[inline]
    fn hash(bytes: u64) -> usize {
        match (LEVEL, BYTES) {
            (1, 4) => hash_15(bytes),
            (1, _) => hash::<BYTES, 15>(bytes),
            _ => hash::<BYTES, 17>(bytes),
        }
    }
}

impl<const LEVEL: u8, const BYTES: u32, const SIZE: usize> BlockSearch
    for LastPositions<LEVEL, BYTES, SIZE>
{
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let table = &mut self.table;
        let limit = places.limit();
        let mut place = places.start;
        let mut bytes = places.load(place);
        'block: loop {
            let mut next;
            let mut source;
            loop {
                let slot = Self::hash(bytes);
                let candidate = table[slot];
                next = place + STEP + ((place - output.literals) >> SKIP_SHIFT);
                if next > limit {
                    break 'block;
                }
                let mut next_bytes = places.load(next);
                table[slot] = places.position(place);
                let next_slot = Self::hash(next_bytes);
                if let Some(found) = places.find(place, candidate, bytes) {
                    table[next_slot] = places.position(next);
                    source = found;
                    break;
                }
                // `next` is tried too; the search then continues one place after it
                bytes = next_bytes;
                place = next;
                next += 1;
                next_bytes >>= 8;
                let candidate = table[next_slot];
                table[next_slot] = places.position(place);
                if let Some(found) = places.find(place, candidate, bytes) {
                    if LEVEL == 1 {
                        table[next_slot] = places.position(next);
                    }
                    source = found;
                    break;
                }
                bytes = next_bytes;
                place = next;
            }
            loop {
                let length = places.length(place, source);
                let found = output.push(
                    FastMatch {
                        place,
                        source,
                        length,
                    },
                    places,
                );
                place = output.next_place(next);
                if place >= limit {
                    // releases with hashes of four bytes enter one more position
                    if BYTES == 4 && place + found.length + 4 < places.bytes.len() {
                        table[Self::hash(places.load(place))] = places.position(place);
                    }
                    break 'block;
                }
                if LEVEL == 2 {
                    // enters some of the positions inside the match
                    for inside in (place - found.length + 2..place - 5).step_by(7) {
                        let around = places.load(inside);
                        for offset in [0, 2, 4] {
                            let slot = Self::hash(around >> (8 * offset));
                            table[slot] = places.position(inside + offset);
                        }
                    }
                }
                let around = places.load(place - 2);
                table[Self::hash(around)] = places.position(place - 2);
                if LEVEL == 2 {
                    table[Self::hash(around >> 8)] = places.position(place - 1);
                }
                let here = around >> 16;
                let slot = Self::hash(here);
                let candidate = table[slot];
                table[slot] = places.position(place);
                match places.find_within(place, candidate, here, MAX_DISTANCE) {
                    Some(found) => source = found,
                    None => {
                        bytes = here >> 8;
                        place += 1;
                        break;
                    }
                }
            }
        }
        output.finish(places);
    }

    fn lower(&mut self, by: TablePosition) {
        for entry in self.table.iter_mut() {
            *entry = entry.saturating_sub(by);
        }
    }
}
