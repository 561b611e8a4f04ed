//! The searches of levels 3 to 6, which differ in their tables:
//!
//! - level 4: one for hashes of four bytes, and one for hashes of seven bytes;
//! - level 3: the last two positions of each hash;
//! - levels 5 and 6: one for hashes of four bytes, and one with the last two positions of each hash
//!   of seven bytes.

use super::{
    BlockSearch, FastMatch, HistoryPlaces, KNOWN_LENGTH, MARGIN, PositionPair, TablePosition,
    TokenOutput, hash, hash_15,
};
use crate::encoder::chains::{boxed_array, load32};
use crate::encoder::klauspost::rules::{HashWidth, KlauspostRules, MatchEndRule};
use crate::symbols::{MAX_DISTANCE, MAX_LENGTH};

/// The number of bits of a hash at levels 4 to 6.
const BITS: u32 = 15;

/// The steps between positions grow by one for each 2^6 bytes without a match.
const SKIP_SHIFT: u32 = 6;

/// The search of level 4.
#[derive(Debug)]
pub(super) struct Level4 {
    short: Box<[TablePosition; 1 << BITS]>,
    long: Box<[TablePosition; 1 << BITS]>,
}

impl Level4 {
    pub(super) fn new() -> Self {
        Self {
            short: boxed_array(0),
            long: boxed_array(0),
        }
    }

    #[inline]
    fn short(&mut self, bytes: u64) -> &mut TablePosition {
        &mut self.short[hash::<4, BITS>(bytes)]
    }

    #[inline]
    fn long(&mut self, bytes: u64) -> &mut TablePosition {
        &mut self.long[hash::<7, BITS>(bytes)]
    }

    /// Enters `inside` and `inside + 1` into the table of long hashes, and `inside + 1` also into
    /// the table of short hashes.
    #[inline]
    fn enter_two(&mut self, places: HistoryPlaces<'_>, inside: usize) {
        let bytes = places.load(inside);
        *self.long(bytes) = places.position(inside);
        *self.long(bytes >> 8) = places.position(inside + 1);
        *self.short(bytes >> 8) = places.position(inside + 1);
    }

    /// Returns the place and the source of the better match: the match at `place` that the short
    /// hash found, or a match at `next` that the long hash finds.
    #[inline]
    fn choose(
        &mut self,
        places: HistoryPlaces<'_>,
        place: usize,
        source: usize,
        next: usize,
        next_bytes: u64,
    ) -> (usize, usize) {
        let candidate = *self.long(next_bytes);
        let distance = places.distance(next, candidate);
        if distance >= MAX_DISTANCE {
            return (place, source);
        }
        let next_source = next - distance;
        if load32(places.bytes, next_source) != next_bytes as u32 {
            return (place, source);
        }
        // Some releases have a bug: they use the distance as the index of the bytes to compare.
        let compared = if places.rules.mixes_up_distance {
            distance
        } else {
            next_source
        };
        if places.length(next, compared) > places.length(place, source) {
            (next, next_source)
        } else {
            (place, source)
        }
    }
}

impl BlockSearch for Level4 {
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let limit = places.limit();
        let mut place = places.start;
        let mut bytes = places.load(place);
        'block: loop {
            let mut next = place;
            let source;
            loop {
                place = next;
                next = place + 1 + ((place - output.literals) >> SKIP_SHIFT);
                if next > limit {
                    break 'block;
                }
                let position = places.position(place);
                let short = std::mem::replace(self.short(bytes), position);
                let long = std::mem::replace(self.long(bytes), position);
                let next_bytes = places.load(next);
                if let Some(found) = places.find(place, long, bytes) {
                    source = found;
                    break;
                }
                if let Some(found) = places.find(place, short, bytes) {
                    (place, source) = self.choose(places, place, found, next, next_bytes);
                    break;
                }
                bytes = next_bytes;
            }
            let length = places.length(place, source);
            output.push(
                FastMatch {
                    place,
                    source,
                    length,
                },
                places,
            );
            place = output.next_place(next);
            if place >= limit {
                if place + 8 < places.bytes.len() {
                    let bytes = places.load(place);
                    *self.short(bytes) = places.position(place);
                    *self.long(bytes) = places.position(place);
                }
                break 'block;
            }
            for inside in (next..place - 1).step_by(3) {
                self.enter_two(places, inside);
            }
            let around = places.load(place - 1);
            *self.short(around) = places.position(place - 1);
            *self.long(around) = places.position(place - 1);
            bytes = around >> 8;
        }
        output.finish(places);
    }

    fn lower(&mut self, by: TablePosition) {
        for entry in self.short.iter_mut().chain(self.long.iter_mut()) {
            *entry = entry.saturating_sub(by);
        }
    }
}

// Level 3: a table with the last two positions of each hash.

/// The number of bits of a hash at level 3.
const PAIR_BITS: u32 = 16;

/// The value of `BYTES` for the first variant, which hashes four bytes to 15 bits.
const FIRST: u32 = 0;

/// Farther entries are not used.
const REACH: usize = MAX_DISTANCE - KNOWN_LENGTH;

pub(super) fn level_3(rules: KlauspostRules) -> Box<dyn BlockSearch> {
    match rules.hashes {
        HashWidth::First => Box::new(Level3::<FIRST>::new()),
        HashWidth::FourBytes => Box::new(Level3::<4>::new()),
        HashWidth::FiveBytes => Box::new(Level3::<5>::new()),
    }
}

/// The search of level 3, with hashes of `BYTES` bytes, or in its first variant.
#[derive(Debug)]
struct Level3<const BYTES: u32> {
    table: Box<[PositionPair; 1 << PAIR_BITS]>,
}

impl<const BYTES: u32> Level3<BYTES> {
    /// The steps between positions grow by one for each 2^`SKIP_SHIFT` bytes without a match.
    const SKIP_SHIFT: u32 = if BYTES == 5 { 7 } else { 6 };
    /// The step between the positions inside a match that enter the table.
    const INSIDE_STEP: usize = if BYTES == 5 { 6 } else { 5 };
    /// A match begins at least this many bytes before the end of a block.
    const MARGIN: usize = if BYTES == 5 { MARGIN } else { 7 };
    /// The position after the last match enters the table only if more than this many bytes remain.
    const LOAD: usize = if BYTES == 5 { 8 } else { 4 };

    fn new() -> Self {
        Self {
            table: boxed_array(PositionPair::default()),
        }
    }

    #[inline]
    fn load(places: HistoryPlaces<'_>, place: usize) -> u64 {
        if BYTES == 5 {
            places.load(place)
        } else {
            u64::from(load32(places.bytes, place))
        }
    }

    #[inline]
    fn slot(&mut self, bytes: u64) -> &mut PositionPair {
        let index = if BYTES == FIRST {
            hash_15(bytes)
        } else {
            hash::<BYTES, PAIR_BITS>(bytes)
        };
        &mut self.table[index]
    }

    /// The place of the better of two entries, or `None` if neither matches.
    #[inline]
    fn choose(
        places: HistoryPlaces<'_>,
        place: usize,
        candidates: PositionPair,
        bytes: u64,
    ) -> Option<usize> {
        if places.distance(place, candidates.last) > REACH {
            return None;
        }
        let before = |reach| places.find_within(place, candidates.before, bytes, reach);
        let Some(last) = places.find_within(place, candidates.last, bytes, REACH) else {
            return before(REACH - 1);
        };
        let Some(before) = before(REACH) else {
            return Some(last);
        };
        let is_longer = places.length(place, before) > places.length(place, last);
        Some(if is_longer { before } else { last })
    }
}

impl<const BYTES: u32> BlockSearch for Level3<BYTES> {
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let limit = places.bytes.len() - Self::MARGIN;
        let mut place = places.start;
        let mut bytes = Self::load(places, place);
        'block: loop {
            let mut next = place;
            let mut source;
            loop {
                place = next;
                next = place + 1 + ((place - output.literals) >> Self::SKIP_SHIFT);
                if next > limit {
                    break 'block;
                }
                let slot = self.slot(bytes);
                let candidates = *slot;
                slot.push(places.position(place));
                if let Some(found) = Self::choose(places, place, candidates, bytes) {
                    source = found;
                    break;
                }
                bytes = Self::load(places, next);
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
                    let end = found.source + found.length;
                    if end + Self::LOAD < places.bytes.len() {
                        self.slot(Self::load(places, end))
                            .push(places.position(end));
                    }
                    break 'block;
                }
                if BYTES == FIRST {
                    self.slot(places.load(place - 3))
                        .push(places.position(place - 3));
                } else {
                    let inside = place - found.length + 2..place - 5;
                    for inside in inside.step_by(Self::INSIDE_STEP) {
                        self.slot(Self::load(places, inside))
                            .push(places.position(inside));
                    }
                }
                let around = places.load(place - 2);
                self.slot(around).push(places.position(place - 2));
                self.slot(around >> 8).push(places.position(place - 1));
                let here = around >> 16;
                let slot = self.slot(here);
                let candidates = *slot;
                slot.push(places.position(place));
                // `before` is tried only if `last` is in reach
                let again = if places.distance(place, candidates.last) < REACH {
                    let find = |entry| places.find_within(place, entry, here, REACH - 1);
                    match find(candidates.last) {
                        // the first variant skips this match and continues one position later
                        Some(_) if BYTES == FIRST => None,
                        Some(last) => Some(last),
                        None => find(candidates.before),
                    }
                } else {
                    None
                };
                match again {
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
        for pair in self.table.iter_mut() {
            pair.last = pair.last.saturating_sub(by);
            pair.before = pair.before.saturating_sub(by);
        }
    }
}

// Levels 5 and 6: a table for hashes of four bytes, and one with the last two positions of each
// hash of seven bytes.

/// Level 5 looks for a better match at the end of a match only if the match is shorter than this.
const MAX_IMPROVED: usize = 30;

/// The search of level `LEVEL`, 5 or 6.
#[derive(Debug)]
pub(super) struct HashTables<const LEVEL: u8> {
    short: Box<[TablePosition; 1 << BITS]>,
    long: Box<[PositionPair; 1 << BITS]>,
}

/// A candidate for a match. If `length` is `None`, only its first four bytes were compared.
#[derive(Debug, Clone, Copy)]
struct FoundCandidate {
    place: usize,
    source: usize,
    length: Option<usize>,
}

impl<const LEVEL: u8> HashTables<LEVEL> {
    /// The steps between positions grow by one for each 2^`SKIP_SHIFT` bytes without a match.
    const SKIP_SHIFT: u32 = if LEVEL == 5 { 6 } else { 7 };

    pub(super) fn new() -> Self {
        Self {
            short: boxed_array(0),
            long: boxed_array(PositionPair::default()),
        }
    }

    #[inline]
    fn short(&mut self, bytes: u64) -> &mut TablePosition {
        &mut self.short[hash::<4, BITS>(bytes)]
    }

    #[inline]
    fn long(&mut self, bytes: u64) -> &mut PositionPair {
        &mut self.long[hash::<7, BITS>(bytes)]
    }

    #[inline]
    fn enter(&mut self, bytes: u64, position: TablePosition) {
        *self.short(bytes) = position;
        self.long(bytes).push(position);
    }

    /// Finds a match at `place`, or a longer one that begins after `place`, but not after `next`.
    /// `next` is the place to try after `place`. Enters `place` and, if there is a match, also
    /// `next`. `repeat` is the distance of the previous match, which level 5 does not use.
    #[inline]
    fn find(
        &mut self,
        places: HistoryPlaces<'_>,
        place: usize,
        bytes: u64,
        next: usize,
        repeat: usize,
    ) -> Option<FoundCandidate> {
        let short = *self.short(bytes);
        let long = *self.long(bytes);
        self.enter(bytes, places.position(place));
        if places.distance(place, long.last) < MAX_DISTANCE {
            let last = places.find(place, long.last, bytes);
            let before = places.find(place, long.before, bytes);
            if let Some(source) = last.or(before) {
                self.enter(places.load(next), places.position(next));
                let mut found = FoundCandidate {
                    place,
                    source,
                    length: None,
                };
                if let (Some(last), Some(before)) = (last, before) {
                    let last_length = places.limited_length(place, last);
                    let before_length = places.limited_length(place, before);
                    if before_length > last_length {
                        found.source = before;
                    }
                    found.length = Some(before_length.max(last_length));
                }
                return Some(found);
            }
        }
        let source = places.find(place, short, bytes)?;
        let mut best = FoundCandidate {
            place,
            source,
            length: None,
        };
        let mut best_length = places.limited_length(place, source);
        let next_bytes = places.load(next);
        let next_long = *self.long(next_bytes);
        self.enter(next_bytes, places.position(next));
        if LEVEL == 6 {
            let source = place + 1 - repeat;
            if load32(places.bytes, source) == (bytes >> 8) as u32 {
                let length = places.limited_length(place + 1, source);
                if length > best_length {
                    return Some(FoundCandidate {
                        place: place + 1,
                        source,
                        length: Some(length),
                    });
                }
            }
        }
        if places.distance(next, next_long.last) < MAX_DISTANCE {
            for candidate in [next_long.last, next_long.before] {
                let Some(source) = places.find(next, candidate, next_bytes) else {
                    continue;
                };
                let length = places.limited_length(next, source);
                if length > best_length {
                    best_length = length;
                    best.place = next;
                    best.source = source;
                    // level 5 stops at the first candidate that is better
                    if LEVEL == 5 {
                        break;
                    }
                }
            }
        }
        best.length = Some(best_length);
        Some(best)
    }
}

/// Extends a match to its end.
#[inline]
fn extend(places: HistoryPlaces<'_>, found: FoundCandidate) -> FastMatch {
    let FoundCandidate {
        place,
        source,
        length,
    } = found;
    let length = match length {
        None => places.length(place, source),
        Some(MAX_LENGTH) => MAX_LENGTH + places.more(place + MAX_LENGTH, source + MAX_LENGTH),
        Some(length) => length,
    };
    FastMatch {
        place,
        source,
        length,
    }
}

/// Replaces the match `found`, which was first found at the place `start`, by a longer match if
/// there is one. The longer match is found by `entry`, an earlier position of the bytes after
/// `found`. If the rule skips the first bytes of a match, these bytes are not
/// compared. Returns whether the
/// entry is in reach.
#[inline]
fn improve(
    places: HistoryPlaces<'_>,
    found: &mut FastMatch,
    start: usize,
    entry: TablePosition,
) -> bool {
    let skipped = match places.rules.match_end {
        MatchEndRule::Unused => return false,
        MatchEndRule::Whole => 0,
        MatchEndRule::Skipping => 2,
    };
    let place = start + skipped;
    // negative if the entry is after the end, because the next place was entered too
    let distance = places.position(start + found.length).wrapping_sub(entry);
    let distance = distance.cast_signed() as isize;
    if distance >= MAX_DISTANCE as isize {
        return false;
    }
    if let Some(source) = place.checked_sub_signed(distance)
        && distance > 0
    {
        let length = places.more(place, source);
        if length > found.length {
            *found = FastMatch {
                place,
                source,
                length,
            };
        }
    }
    true
}

impl<const LEVEL: u8> BlockSearch for HashTables<LEVEL> {
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let limit = places.limit();
        let mut place = places.start;
        let mut bytes = places.load(place);
        let mut repeat = 1;
        'block: loop {
            let mut next = place;
            let found = loop {
                place = next;
                next = place + 1 + ((place - output.literals) >> Self::SKIP_SHIFT);
                if next > limit {
                    break 'block;
                }
                if let Some(found) = self.find(places, place, bytes, next, repeat) {
                    break found;
                }
                bytes = places.load(next);
            };
            let mut found = extend(places, found);
            let end = found.place + found.length;
            if end < limit && (LEVEL == 6 || found.length < MAX_IMPROVED) {
                let pair = *self.long(places.load(end));
                let start = found.place;
                if improve(places, &mut found, start, pair.last) && LEVEL == 6 {
                    improve(places, &mut found, start, pair.before);
                }
            }
            let found = output.push(found, places);
            repeat = found.place - found.source;
            place = output.next_place(next);
            if place >= limit {
                if LEVEL == 6 {
                    let end = places.bytes.len().saturating_sub(8);
                    for inside in (next + 1..end).step_by(2) {
                        self.enter(places.load(inside), places.position(inside));
                    }
                }
                break 'block;
            }
            if LEVEL == 6 {
                for inside in (next + 1..place - 1).step_by(2) {
                    let around = places.load(inside);
                    self.enter(around, places.position(inside));
                    self.long(around >> 8).push(places.position(inside + 1));
                }
                bytes = places.load(place);
                continue;
            }
            let mut inside = place - found.length + 1;
            if inside < place - 1 {
                let around = places.load(inside);
                self.enter(around, places.position(inside));
                self.long(around >> 8).push(places.position(inside + 1));
                *self.short(around >> 16) = places.position(inside + 2);
                inside += 4;
                while inside < place - 1 {
                    let around = places.load(inside);
                    self.long(around).push(places.position(inside));
                    *self.short(around >> 8) = places.position(inside + 1);
                    inside += 3;
                }
            }
            let around = places.load(place - 1);
            self.enter(around, places.position(place - 1));
            bytes = around >> 8;
        }
        output.finish(places);
    }

    fn lower(&mut self, by: TablePosition) {
        for entry in self.short.iter_mut() {
            *entry = entry.saturating_sub(by);
        }
        for pair in self.long.iter_mut() {
            pair.last = pair.last.saturating_sub(by);
            pair.before = pair.before.saturating_sub(by);
        }
    }
}
