//! Level 4: a table for hashes of four bytes and one for hashes of seven bytes.

use super::{BlockSearch, FastMatch, HistoryPlaces, TablePosition, TokenOutput, hash};
use crate::encoder::bytes::{boxed_array, load32};
use crate::encoder::symbols::MAX_DISTANCE;

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
