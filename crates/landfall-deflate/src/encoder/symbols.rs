//! Tokens of a deflate stream, and the symbols that encode them (RFC 1951, section 3.2.5).

pub(crate) use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LITERAL_SYMBOLS, LONGEST_MATCH as MAX_LENGTH,
    SHORTEST_MATCH as MIN_LENGTH, WINDOW as MAX_DISTANCE,
};
use crate::symbols::{FIRST_LENGTH_SYMBOL, distance_symbol};

const MATCH: u32 = 1 << 31;

/// A literal byte or a match, in 32 bits.
///
/// A literal is its byte. A match has bit 31 set, its length − 3 in bits 16 to 23 and its
/// distance − 1 in bits 0 to 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u32);

impl Token {
    #[inline]
    pub(crate) fn literal(byte: u8) -> Self {
        Self(u32::from(byte))
    }

    /// A match of 3 to 258 bytes at a distance of 1 to 32,768.
    #[inline]
    pub(crate) fn matched(length: usize, distance: usize) -> Self {
        debug_assert!((MIN_LENGTH..=MAX_LENGTH).contains(&length));
        debug_assert!((1..=MAX_DISTANCE).contains(&distance));
        Self(MATCH | ((length - MIN_LENGTH) << 16 | (distance - 1)) as u32)
    }

    /// The literal byte, or `None` if the token is a match.
    #[inline]
    pub(crate) fn as_literal(self) -> Option<u8> {
        (self.0 & MATCH == 0).then_some(self.0 as u8)
    }

    /// The length of a match, minus 3.
    #[inline]
    pub(crate) fn short_length(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The distance of a match, minus 1.
    #[inline]
    pub(crate) fn short_distance(self) -> u16 {
        self.0 as u16
    }

    /// The distance of a match.
    #[inline]
    pub(crate) fn distance(self) -> usize {
        usize::from(self.short_distance()) + 1
    }
}

/// The number of extra bits after length code `code`. Symbol 257 has length code 0.
pub(crate) const fn length_extra_bits(code: usize) -> u32 {
    match code {
        8..28 => (code as u32 >> 2) - 1,
        _ => 0,
    }
}

/// The smallest length − 3 that length code `code` encodes.
pub(crate) const fn length_base(code: usize) -> usize {
    match code {
        0..8 => code,
        // length 258 has a code of its own
        28 => MAX_LENGTH - MIN_LENGTH,
        _ => (4 + (code & 3)) << length_extra_bits(code),
    }
}

/// The length code of each length − 3. Symbol 257 has length code 0.
pub(crate) const LENGTH_CODES: [u8; 256] = {
    let mut codes = [0; 256];
    let mut code = 0;
    while code < 28 {
        let base = length_base(code);
        let mut length = base;
        while length < base + (1 << length_extra_bits(code)) && length < 255 {
            codes[length] = code as u8;
            length += 1;
        }
        code += 1;
    }
    codes[255] = 28;
    codes
};

/// The number of extra bits after distance symbol `code`.
pub(crate) const fn distance_extra_bits(code: usize) -> u32 {
    match code {
        0..4 => 0,
        _ => (code as u32 >> 1) - 1,
    }
}

/// The number of occurrences of each symbol in a block.
#[derive(Debug, Clone)]
pub(crate) struct SymbolCounts {
    /// Literals, the end of the block, and lengths. The last two entries are never used.
    pub(crate) literals: [u32; LITERAL_SYMBOLS + 2],
    /// Distances. The last two entries are never used.
    pub(crate) distances: [u32; DISTANCE_SYMBOLS + 2],
}

impl SymbolCounts {
    /// Counts of zero for every symbol.
    pub(crate) const ZERO: Self = Self {
        literals: [0; LITERAL_SYMBOLS + 2],
        distances: [0; DISTANCE_SYMBOLS + 2],
    };

    /// The symbols of `tokens`, without an end of block.
    pub(crate) fn of_tokens(tokens: &[Token]) -> Self {
        let mut counts = Self::ZERO;
        for token in tokens {
            if let Some(byte) = token.as_literal() {
                counts.literals[usize::from(byte)] += 1;
            } else {
                let code = usize::from(LENGTH_CODES[usize::from(token.short_length())]);
                counts.literals[FIRST_LENGTH_SYMBOL + code] += 1;
                counts.distances[distance_symbol(token.distance())] += 1;
            }
        }
        counts
    }

    /// The literals of `plain`, without an end of block.
    pub(crate) fn of_literals(plain: &[u8]) -> Self {
        // In a run of one byte, each increment would wait for the previous one of the same counter;
        // four tables in turn avoid this.
        let mut tables = [[0_u32; 256]; 4];
        let (fours, rest) = plain.as_chunks::<4>();
        for four in fours {
            for (table, byte) in tables.iter_mut().zip(four) {
                table[usize::from(*byte)] += 1;
            }
        }
        for byte in rest {
            tables[0][usize::from(*byte)] += 1;
        }
        let mut counts = Self::ZERO;
        for table in &tables {
            for (count, part) in counts.literals.iter_mut().zip(table) {
                *count += part;
            }
        }
        counts
    }

    /// The number of literal symbols up to the last that is used, at least 257.
    pub(crate) fn used_literals(&self) -> usize {
        self.literals
            .iter()
            .rposition(|count| *count != 0)
            .map_or(0, |last| last + 1)
            .max(FIRST_LENGTH_SYMBOL)
    }

    /// The number of distance symbols up to the last that is used.
    pub(crate) fn used_distances(&self) -> usize {
        self.distances
            .iter()
            .rposition(|count| *count != 0)
            .map_or(0, |last| last + 1)
    }

    /// The number of extra bits after all lengths and distances.
    pub(crate) fn extra_bits(&self) -> u64 {
        let lengths = self.literals[FIRST_LENGTH_SYMBOL..]
            .iter()
            .enumerate()
            .map(|(code, count)| u64::from(*count) * u64::from(length_extra_bits(code)));
        let distances = self.distances[..DISTANCE_SYMBOLS]
            .iter()
            .enumerate()
            .map(|(code, count)| u64::from(*count) * u64::from(distance_extra_bits(code)));
        lengths.chain(distances).sum()
    }
}

/// The symbol of length code `code`.
pub(crate) const fn length_symbol(code: usize) -> usize {
    FIRST_LENGTH_SYMBOL + code
}
