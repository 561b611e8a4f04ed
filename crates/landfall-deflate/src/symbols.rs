//! The alphabet of deflate: symbols of lengths and distances with their extra bits, and the fixed
//! codes (RFC 1951, section 3.2).

/// The symbol that ends a block.
pub(crate) const END_OF_BLOCK: usize = 256;
/// The symbol of the shortest match length.
pub(crate) const FIRST_LENGTH_SYMBOL: usize = 257;
/// The number of symbols that a literal and length code can use.
pub(crate) const LITERAL_SYMBOLS: usize = 286;
/// The number of symbols that a distance code can use.
pub(crate) const DISTANCE_SYMBOLS: usize = 30;
/// The number of symbols of the code for code lengths.
pub(crate) const LENGTH_CODE_SYMBOLS: usize = 19;
/// The shortest and the longest match.
pub(crate) const MIN_LENGTH: usize = 3;
pub(crate) const MAX_LENGTH: usize = 258;
/// The longest distance of a match.
pub(crate) const MAX_DISTANCE: usize = 32768;
/// The longest code of a literal, length or distance, in bits.
pub(crate) const LONGEST_CODE: usize = 15;
/// The order in which a dynamic block lists the lengths of the code for code lengths.
pub(crate) const LENGTH_CODE_ORDER: [u8; LENGTH_CODE_SYMBOLS] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// The values that share one symbol: `1 << extra` consecutive values from `base` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymbolRange {
    /// The smallest value of the symbol.
    pub(crate) base: u16,
    /// The number of extra bits after the symbol.
    pub(crate) extra: u8,
}

/// The range of the symbol with this index, in groups of `group` symbols that have equally many
/// extra bits; the first two groups have none. `least` is the value of the first symbol.
const fn symbol_range(index: usize, group: usize, least: u16) -> SymbolRange {
    if index < group {
        return SymbolRange {
            base: least + index as u16,
            extra: 0,
        };
    }
    let extra = index / group - 1;
    SymbolRange {
        base: least + (((group + index % group) as u16) << extra),
        extra: extra as u8,
    }
}

/// The match lengths of symbols 257 to 285.
pub(crate) const LENGTHS: [SymbolRange; 29] = {
    let mut ranges = [SymbolRange {
        base: 258,
        extra: 0,
    }; 29];
    let mut at = 0;
    while at < 28 {
        ranges[at] = symbol_range(at, 4, 3);
        at += 1;
    }
    ranges
};

/// The distances of symbols 0 to 29.
pub(crate) const DISTANCES: [SymbolRange; DISTANCE_SYMBOLS] = {
    let mut ranges = [SymbolRange { base: 1, extra: 0 }; DISTANCE_SYMBOLS];
    let mut at = 1;
    while at < DISTANCE_SYMBOLS {
        ranges[at] = symbol_range(at, 2, 1);
        at += 1;
    }
    ranges
};

/// The symbol of each match length, as an index of [`LENGTHS`], by length minus 3.
pub(crate) const LENGTH_INDEXES: [u8; 256] = {
    let mut indexes = [0; 256];
    let mut at = 0;
    while at < LENGTHS.len() {
        let first = LENGTHS[at].base as usize - MIN_LENGTH;
        let mut offset = 0;
        while offset < 1 << LENGTHS[at].extra && first + offset < 256 {
            indexes[first + offset] = at as u8;
            offset += 1;
        }
        at += 1;
    }
    indexes
};

/// The index in [`LENGTHS`] of a match length between 3 and 258.
#[inline]
pub(crate) fn length_index(length: usize) -> usize {
    usize::from(LENGTH_INDEXES[length - MIN_LENGTH])
}

/// The symbol of a distance between 1 and 32768.
#[inline]
pub(crate) fn distance_symbol(distance: usize) -> usize {
    let value = distance - 1;
    if value < 4 {
        return value;
    }
    let top = value.ilog2() as usize;
    2 * top + ((value >> (top - 1)) & 1)
}

/// The code lengths of the literals and lengths of a fixed block.
pub(crate) const FIXED_LITERAL_LENGTHS: [u8; 288] = {
    let mut lengths = [8; 288];
    let mut symbol = 144;
    while symbol < 280 {
        lengths[symbol] = if symbol < 256 { 9 } else { 7 };
        symbol += 1;
    }
    lengths
};

/// The code lengths of the distances of a fixed block.
pub(crate) const FIXED_DISTANCE_LENGTHS: [u8; 32] = [5; 32];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_cover_all_lengths_and_distances() {
        for length in MIN_LENGTH..=MAX_LENGTH {
            let range = LENGTHS[length_index(length)];
            let offset = length - usize::from(range.base);
            assert!(offset < 1 << range.extra, "{length}");
        }
        assert_eq!(length_index(257), 27);
        assert_eq!(length_index(258), 28);
        for distance in 1..=MAX_DISTANCE {
            let range = DISTANCES[distance_symbol(distance)];
            let offset = distance - usize::from(range.base);
            assert!(offset < 1 << range.extra, "{distance}");
        }
    }
}
