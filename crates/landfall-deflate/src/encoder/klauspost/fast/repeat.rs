//! Levels 5 and 6: a table for hashes of four bytes, and one with the last two positions of each
//! hash of seven bytes.

use super::{
    BlockSearch, FastMatch, HistoryPlaces, PositionPair, TablePosition, TokenOutput, hash,
};
use crate::encoder::bytes::{boxed_array, load32};
use crate::encoder::klauspost::rules::MatchEndRule;
use crate::encoder::symbols::{MAX_DISTANCE, MAX_LENGTH};

const BITS: u32 = 15;
/// Level 5 looks for a better match at the end of a match only if the match is shorter than this.
const MAX_IMPROVED: usize = 30;

/// The tables of both levels.
#[derive(Debug)]
struct HashTables {
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

impl HashTables {
    fn new() -> Self {
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
    /// `next`. At level 6, `repeat` is the distance of the previous match.
    #[inline]
    fn find(
        &mut self,
        places: HistoryPlaces<'_>,
        place: usize,
        bytes: u64,
        next: usize,
        repeat: Option<usize>,
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
        if let Some(repeat) = repeat {
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
                    if repeat.is_none() {
                        break;
                    }
                }
            }
        }
        best.length = Some(best_length);
        Some(best)
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

/// The search of level 5.
#[derive(Debug)]
pub(super) struct Level5 {
    tables: HashTables,
}

impl Level5 {
    /// The steps between positions grow by one for each 2^6 bytes without a match.
    const SKIP_SHIFT: u32 = 6;

    pub(super) fn new() -> Self {
        Self {
            tables: HashTables::new(),
        }
    }
}

impl BlockSearch for Level5 {
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let tables = &mut self.tables;
        let limit = places.limit();
        let mut place = places.start;
        let mut bytes = places.load(place);
        'block: loop {
            let mut next = place;
            let found = loop {
                place = next;
                next = place + 1 + ((place - output.literals) >> Self::SKIP_SHIFT);
                if next > limit {
                    break 'block;
                }
                if let Some(found) = tables.find(places, place, bytes, next, None) {
                    break found;
                }
                bytes = places.load(next);
            };
            let mut found = extend(places, found);
            let end = found.place + found.length;
            if found.length < MAX_IMPROVED && end < limit {
                let entry = tables.long(places.load(end)).last;
                let start = found.place;
                improve(places, &mut found, start, entry);
            }
            let found = output.push(found, places);
            place = output.next_place(next);
            if place >= limit {
                break 'block;
            }
            let mut inside = place - found.length + 1;
            if inside < place - 1 {
                let around = places.load(inside);
                tables.enter(around, places.position(inside));
                tables.long(around >> 8).push(places.position(inside + 1));
                *tables.short(around >> 16) = places.position(inside + 2);
                inside += 4;
                while inside < place - 1 {
                    let around = places.load(inside);
                    tables.long(around).push(places.position(inside));
                    *tables.short(around >> 8) = places.position(inside + 1);
                    inside += 3;
                }
            }
            let around = places.load(place - 1);
            tables.enter(around, places.position(place - 1));
            bytes = around >> 8;
        }
        output.finish(places);
    }

    fn lower(&mut self, by: TablePosition) {
        self.tables.lower(by);
    }
}

/// The search of level 6.
#[derive(Debug)]
pub(super) struct Level6 {
    tables: HashTables,
}

impl Level6 {
    /// The steps between positions grow by one for each 2^7 bytes without a match.
    const SKIP_SHIFT: u32 = 7;

    pub(super) fn new() -> Self {
        Self {
            tables: HashTables::new(),
        }
    }
}

impl BlockSearch for Level6 {
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let tables = &mut self.tables;
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
                if let Some(found) = tables.find(places, place, bytes, next, Some(repeat)) {
                    break found;
                }
                bytes = places.load(next);
            };
            let mut found = extend(places, found);
            let end = found.place + found.length;
            if end < limit {
                let pair = *tables.long(places.load(end));
                let start = found.place;
                if improve(places, &mut found, start, pair.last) {
                    improve(places, &mut found, start, pair.before);
                }
            }
            let found = output.push(found, places);
            repeat = found.place - found.source;
            place = output.next_place(next);
            if place >= limit {
                let end = places.bytes.len().saturating_sub(8);
                for inside in (next + 1..end).step_by(2) {
                    tables.enter(places.load(inside), places.position(inside));
                }
                break 'block;
            }
            for inside in (next + 1..place - 1).step_by(2) {
                let around = places.load(inside);
                tables.enter(around, places.position(inside));
                tables.long(around >> 8).push(places.position(inside + 1));
            }
            bytes = places.load(place);
        }
        output.finish(places);
    }

    fn lower(&mut self, by: TablePosition) {
        self.tables.lower(by);
    }
}
