//! Levels 1 and 2: a table with the last position of each hash.

use super::{BlockSearch, FastMatch, HistoryPlaces, TablePosition, TokenOutput, hash, hash_15};
use crate::encoder::bytes::boxed_array;
use crate::encoder::klauspost::rules::{HashWidth, KlauspostRules};
use crate::encoder::symbols::MAX_DISTANCE;

/// The steps between positions grow by one for each 2^5 bytes without a match.
const SKIP_SHIFT: u32 = 5;
/// The shortest step. Each step is followed by a step of one.
const STEP: usize = 2;

pub(super) fn level_1(rules: KlauspostRules) -> Box<dyn BlockSearch> {
    if rules.hashes == HashWidth::FiveBytes {
        Box::new(Level1::<5>::new())
    } else {
        Box::new(Level1::<4>::new())
    }
}

pub(super) fn level_2(rules: KlauspostRules) -> Box<dyn BlockSearch> {
    if rules.hashes == HashWidth::FiveBytes {
        Box::new(Level2::<5>::new())
    } else {
        Box::new(Level2::<4>::new())
    }
}

/// The search of level 1, with hashes of `BYTES` bytes.
#[derive(Debug)]
struct Level1<const BYTES: u32> {
    table: Box<[TablePosition; 1 << 15]>,
}

impl<const BYTES: u32> Level1<BYTES> {
    fn new() -> Self {
        Self {
            table: boxed_array(0),
        }
    }

    #[inline]
    fn hash(bytes: u64) -> usize {
        if BYTES == 4 {
            hash_15(bytes)
        } else {
            hash::<BYTES, 15>(bytes)
        }
    }
}

impl<const BYTES: u32> BlockSearch for Level1<BYTES> {
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
                    table[next_slot] = places.position(next);
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
                let around = places.load(place - 2);
                table[Self::hash(around)] = places.position(place - 2);
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

/// The search of level 2, with hashes of `BYTES` bytes.
#[derive(Debug)]
struct Level2<const BYTES: u32> {
    table: Box<[TablePosition; 1 << 17]>,
}

impl<const BYTES: u32> Level2<BYTES> {
    fn new() -> Self {
        Self {
            table: boxed_array(0),
        }
    }

    #[inline]
    fn hash(bytes: u64) -> usize {
        hash::<BYTES, 17>(bytes)
    }
}

impl<const BYTES: u32> BlockSearch for Level2<BYTES> {
    fn search(&mut self, places: HistoryPlaces<'_>, mut output: TokenOutput<'_>) {
        let table = &mut self.table;
        let limit = places.limit();
        let mut place = places.start;
        let mut bytes = places.load(place);
        'block: loop {
            let mut next = place;
            let mut source;
            loop {
                let slot = Self::hash(bytes);
                place = next;
                next = place + STEP + ((place - output.literals) >> SKIP_SHIFT);
                if next > limit {
                    break 'block;
                }
                let candidate = table[slot];
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
                    source = found;
                    break;
                }
                bytes = next_bytes;
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
                    if BYTES == 4 && place + found.length + 4 < places.bytes.len() {
                        table[Self::hash(places.load(place))] = places.position(place);
                    }
                    break 'block;
                }
                // enters some of the positions inside the match
                for inside in (place - found.length + 2..place - 5).step_by(7) {
                    let around = places.load(inside);
                    for offset in [0, 2, 4] {
                        let slot = Self::hash(around >> (8 * offset));
                        table[slot] = places.position(inside + offset);
                    }
                }
                let around = places.load(place - 2);
                table[Self::hash(around)] = places.position(place - 2);
                table[Self::hash(around >> 8)] = places.position(place - 1);
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
