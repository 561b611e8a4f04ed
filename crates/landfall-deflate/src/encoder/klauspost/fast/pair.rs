//! Level 3: a table with the last two positions of each hash.

use super::{
    BlockSearch, FastMatch, HistoryPlaces, KNOWN_LENGTH, MARGIN, PositionPair, TablePosition,
    TokenOutput, hash, hash_15,
};
use crate::encoder::bytes::{boxed_array, load32};
use crate::encoder::klauspost::rules::{HashWidth, KlauspostRules};
use crate::encoder::symbols::MAX_DISTANCE;

const BITS: u32 = 16;
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
    table: Box<[PositionPair; 1 << BITS]>,
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
            hash::<BYTES, BITS>(bytes)
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
