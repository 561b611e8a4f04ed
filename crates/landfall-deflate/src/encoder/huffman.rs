//! Tokens of a deflate stream, their symbols, and the Huffman codes of the symbols.

use crate::bits::BitWriter;
use crate::symbols::{
    DISTANCE_SYMBOLS, FIRST_LENGTH_SYMBOL, LENGTH_INDEXES, LITERAL_SYMBOLS, LONGEST_CODE,
    MAX_DISTANCE, MAX_LENGTH, MIN_LENGTH, distance_symbol,
};

// Tokens of a deflate stream, and the symbols that encode them (RFC 1951, section 3.2.5).

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
                let code = usize::from(LENGTH_INDEXES[usize::from(token.short_length())]);
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

// Canonical Huffman codes of limited length (RFC 1951, section 3.2.2).
//
// [`code_lengths`] builds the same optimal code as Go's `compress/flate` and its descendants:
// symbols are sorted by their counts, then by their values, and subtrees are joined starting with
// the smallest; [`TieOrder`] decides between subtrees of the same weight. The tree gives the
// number of codes of each length. The longest codes go to the rarest symbols, and among equally
// rare symbols to those with the smallest values. If the tree is deeper than the limit, the
// numbers come from package-merge (Larmore and Hirschberg 1990) instead, in which a package
// precedes a symbol of the same weight.

/// The maximum length in bits of a code word for code lengths.
pub(crate) const MAX_HEADER_BITS: usize = 7;

/// Which of two subtrees of the same weight is joined first. The order changes the lengths of the
/// codes, but not the size of the coded symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TieOrder {
    /// The subtree that was joined before: the tree becomes deeper.
    SubtreeFirst,
    /// A single symbol: the tree stays flat.
    SymbolFirst,
}

/// The maximum number of symbols of an alphabet.
const MAX_SYMBOLS: usize = 288;

/// The number of low bits of a list entry that contain the symbol. The higher bits are its count.
const SYMBOL_BITS: u32 = 9;

/// A code word and its length for each symbol of an alphabet of up to `N` symbols.
#[derive(Debug, Clone)]
pub(crate) struct Code<const N: usize> {
    /// The code word in the order of transmission in bits 0 to 15; its length above.
    words: [u32; N],
}

impl<const N: usize> Code<N> {
    /// A code without symbols.
    pub(crate) const EMPTY: Self = Self { words: [0; N] };

    /// Replaces the code by the canonical code of these lengths. Symbols beyond `lengths` have no
    /// code word.
    pub(crate) fn set_lengths(&mut self, lengths: &[u8]) {
        let mut next = [0_u32; LONGEST_CODE + 2];
        for length in lengths {
            next[usize::from(*length) + 1] += 1;
        }
        // length 0 means that a symbol has no code word
        next[1] = 0;
        for bits in 1..next.len() {
            next[bits] = (next[bits] + next[bits - 1]) << 1;
        }
        self.words = [0; N];
        for (word, length) in self.words.iter_mut().zip(lengths) {
            if *length > 0 {
                let code = &mut next[usize::from(*length)];
                let reversed = (*code << (16 - *length)).reverse_bits() >> 16;
                *word = reversed | u32::from(*length) << 16;
                *code += 1;
            }
        }
    }

    /// Replaces the code by the optimal code of at most 15 bits for these counts.
    pub(crate) fn set_counts(&mut self, counts: &[u32], ties: TieOrder) {
        let mut lengths = [0; N];
        code_lengths(counts, LONGEST_CODE, ties, &mut lengths);
        self.set_lengths(&lengths);
    }

    /// The code word of a symbol and its length in bits, 0 if it has none.
    #[inline]
    pub(crate) fn word(&self, symbol: usize) -> (u32, u32) {
        let word = self.words[symbol];
        (word & 0xffff, word >> 16)
    }

    /// Writes the code word of a symbol.
    #[inline]
    pub(crate) fn write(&self, symbol: usize, out: &mut BitWriter) {
        let (word, bits) = self.word(symbol);
        out.write(word, bits);
    }

    /// The length of a symbol's code word in bits, 0 if it has none.
    #[inline]
    pub(crate) fn length(&self, symbol: usize) -> u32 {
        self.words[symbol] >> 16
    }

    /// The lengths of the first `count` symbols' code words.
    pub(crate) fn lengths(&self, count: usize) -> impl Iterator<Item = u8> {
        self.words[..count].iter().map(|word| (word >> 16) as u8)
    }

    /// The size in bits of symbols that occur as often as `counts` says. Symbols without a code
    /// word cost nothing.
    pub(crate) fn size(&self, counts: &[u32]) -> u64 {
        let sizes = self.words.iter().zip(counts);
        sizes
            .map(|(word, count)| u64::from(word >> 16) * u64::from(*count))
            .sum()
    }

    /// Whether each symbol that occurs has a code word.
    pub(crate) fn covers(&self, counts: &[u32]) -> bool {
        let mut symbols = self.words.iter().zip(counts);
        symbols.all(|(word, count)| *count == 0 || *word != 0)
    }
}

/// Writes the lengths of the optimal code for `counts` into `lengths`, which has at least as many
/// entries. One or two symbols get codes of one bit. Counts are less than 2^23, and `limit` is at
/// most 15.
pub(crate) fn code_lengths(counts: &[u32], limit: usize, ties: TieOrder, lengths: &mut [u8]) {
    lengths.fill(0);
    let mut sorted = [0_u32; MAX_SYMBOLS];
    let mut used = 0;
    for (symbol, count) in counts.iter().enumerate() {
        if *count > 0 {
            sorted[used] = count << SYMBOL_BITS | symbol as u32;
            used += 1;
        }
    }
    let sorted = &mut sorted[..used];
    if used <= 2 {
        for entry in sorted {
            lengths[symbol_of(*entry)] = 1;
        }
        return;
    }
    sorted.sort_unstable();
    let of_length = tree_length_counts(sorted, limit, ties)
        .unwrap_or_else(|| merged_length_counts(sorted, limit));
    let mut rarest = sorted.iter();
    for length in (1..=limit).rev() {
        for entry in rarest.by_ref().take(of_length[length]) {
            lengths[symbol_of(*entry)] = length as u8;
        }
    }
}

fn symbol_of(entry: u32) -> usize {
    (entry & ((1 << SYMBOL_BITS) - 1)) as usize
}

/// The number of codes of each length in the Huffman tree, or `None` if one is longer than `limit`.
fn tree_length_counts(
    sorted: &[u32],
    limit: usize,
    ties: TieOrder,
) -> Option<[usize; LONGEST_CODE + 1]> {
    // a symbol precedes a joint (an inner node) if the joint's weight is greater by at least this
    let more = u32::from(ties == TieOrder::SubtreeFirst);
    let joints = sorted.len() - 1;
    let mut weights = [0_u32; MAX_SYMBOLS];
    // for each joint, the joint that it is part of; joints are created in the order of weight
    let mut parents = [0_u16; MAX_SYMBOLS];
    let mut leaves_of = [0_u8; MAX_SYMBOLS];
    let mut next_leaf = 0;
    let mut next_joint = 0;
    for joint in 0..joints {
        for _ in 0..2 {
            let leaf = sorted.get(next_leaf).map(|entry| entry >> SYMBOL_BITS);
            match leaf {
                Some(leaf) if next_joint == joint || leaf + more <= weights[next_joint] => {
                    weights[joint] += leaf;
                    leaves_of[joint] += 1;
                    next_leaf += 1;
                }
                _ => {
                    weights[joint] += weights[next_joint];
                    parents[next_joint] = joint as u16;
                    next_joint += 1;
                }
            }
        }
    }
    let mut of_length = [0; LONGEST_CODE + 1];
    let mut depths = [0_usize; MAX_SYMBOLS];
    for joint in (0..joints).rev() {
        // the last joint is the root
        if joint + 1 < joints {
            depths[joint] = depths[usize::from(parents[joint])] + 1;
        }
        if leaves_of[joint] > 0 {
            if depths[joint] >= limit {
                return None;
            }
            of_length[depths[joint] + 1] += usize::from(leaves_of[joint]);
        }
    }
    Some(of_length)
}

/// The number of codes of each length in the optimal code with a limit, by package-merge.
fn merged_length_counts(sorted: &[u32], limit: usize) -> [usize; LONGEST_CODE + 1] {
    let mut packages: Vec<u32> = Vec::new();
    // for each length, from the longest: whether each item of the merged list is a symbol
    let mut lists: Vec<Vec<bool>> = Vec::with_capacity(limit);
    for _ in 0..limit {
        let mut items = Vec::with_capacity(sorted.len() + packages.len());
        let mut are_symbols = Vec::with_capacity(items.capacity());
        let mut symbols = sorted.iter().map(|entry| entry >> SYMBOL_BITS).peekable();
        let mut pairs = packages.iter().copied().peekable();
        loop {
            let is_symbol = match (symbols.peek(), pairs.peek()) {
                (Some(symbol), Some(pair)) => symbol < pair,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            items.extend(if is_symbol {
                symbols.next()
            } else {
                pairs.next()
            });
            are_symbols.push(is_symbol);
        }
        packages = items
            .chunks_exact(2)
            .map(|pair| pair[0] + pair[1])
            .collect();
        lists.push(are_symbols);
    }
    let mut of_length = [0; LONGEST_CODE + 1];
    let mut taken = 2 * sorted.len() - 2;
    for (length, list) in (1..).zip(lists.iter().rev()) {
        let symbols = list[..taken].iter().filter(|symbol| **symbol).count();
        // `symbols` is the number of codes of at least this length
        of_length[length] += symbols;
        of_length[length - 1] = of_length[length - 1].saturating_sub(symbols);
        taken = 2 * (taken - symbols);
    }
    of_length[0] = 0;
    of_length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_codes_are_those_of_the_standard() {
        // the example of RFC 1951, section 3.2.2
        let mut code: Code<8> = Code::EMPTY;
        code.set_lengths(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let expected: [(u16, u32); 8] = [
            (0b010, 3),
            (0b011, 3),
            (0b100, 3),
            (0b101, 3),
            (0b110, 3),
            (0b00, 2),
            (0b1110, 4),
            (0b1111, 4),
        ];
        for (symbol, (bits, length)) in expected.into_iter().enumerate() {
            let word = u32::from(bits.reverse_bits() >> (16 - length));
            assert_eq!(code.word(symbol), (word, length));
        }
    }
}
