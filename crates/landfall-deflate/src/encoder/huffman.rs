//! Canonical Huffman codes of limited length (RFC 1951, section 3.2.2).
//!
//! [`code_lengths`] builds the same optimal code as Go's `compress/flate` and its descendants:
//! symbols are sorted by their counts, then by their values, and subtrees are joined starting with
//! the smallest; [`TieOrder`] decides between subtrees of the same weight. The tree gives the
//! number of codes of each length. The longest codes go to the rarest symbols, and among equally
//! rare symbols to those with the smallest values. If the tree is deeper than the limit, the
//! numbers come from package-merge (Larmore and Hirschberg 1990) instead, in which a package
//! precedes a symbol of the same weight.

/// The maximum length in bits of a code word for literals, lengths and distances.
pub(crate) const MAX_BITS: usize = 15;
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
        let mut next = [0_u32; MAX_BITS + 2];
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

    /// Replaces the code by the optimal code of at most `limit` bits for these counts.
    pub(crate) fn set_counts(&mut self, counts: &[u32], limit: usize, ties: TieOrder) {
        let mut lengths = [0; N];
        code_lengths(counts, limit, ties, &mut lengths);
        self.set_lengths(&lengths);
    }

    /// The code word of a symbol and its length in bits, 0 if it has none.
    #[inline]
    pub(crate) fn word(&self, symbol: usize) -> (u32, u32) {
        let word = self.words[symbol];
        (word & 0xffff, word >> 16)
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
) -> Option<[usize; MAX_BITS + 1]> {
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
    let mut of_length = [0; MAX_BITS + 1];
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
fn merged_length_counts(sorted: &[u32], limit: usize) -> [usize; MAX_BITS + 1] {
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
    let mut of_length = [0; MAX_BITS + 1];
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
