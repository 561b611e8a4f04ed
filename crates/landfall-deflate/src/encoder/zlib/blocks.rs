//! The choice among stored, fixed and dynamic blocks.
//!
//! Sizes are compared in whole bytes, including the three bits of the header: a fixed block is
//! chosen if it is not longer than a dynamic one, and a stored block if its plain bytes and four
//! bytes of lengths are not longer than the shorter of the two. A stored block needs the block's
//! plain bytes, which the window may have dropped by then.
//!
//! The runs of code lengths in the header of a dynamic block do not cross from the literal code to
//! the distance code.

use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DynamicHeader, count_header_symbols, push_run, write_fixed_header, write_stored,
};
use crate::encoder::chains::boxed_array;
use crate::encoder::huffman::{MAX_HEADER_BITS, SymbolCounts, Token};
use crate::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LENGTH_CODE_SYMBOLS, LITERAL_SYMBOLS, LONGEST_CODE,
};
use std::array;
use std::sync::LazyLock;

/// Computed once, because low memory levels have many small blocks.
static FIXED_CODES: LazyLock<BlockCodes> = LazyLock::new(BlockCodes::fixed);

/// The kinds of blocks that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockChoice {
    /// The shortest of all three kinds.
    Shortest,
    /// The shorter of a stored and a fixed block.
    WithoutDynamic,
}

/// Writes one block of `tokens`, which encode `plain_size` bytes. `plain` holds these bytes unless
/// the window has dropped them.
pub(super) fn write_block(
    tokens: &[Token],
    plain: Option<&[u8]>,
    plain_size: usize,
    choice: BlockChoice,
    last: bool,
    out: &mut BitWriter,
) {
    let mut counts = SymbolCounts::of_tokens(tokens);
    counts.literals[END_OF_BLOCK] = 1;
    let fixed_size = 3 + coded_size(&FIXED_CODES, &counts);
    let (dynamic, header) = dynamic_codes(&counts);
    let dynamic_size = header.size + coded_size(&dynamic, &counts);

    let in_bytes = |bits: u64| bits.div_ceil(8);
    let is_fixed =
        choice == BlockChoice::WithoutDynamic || in_bytes(fixed_size) <= in_bytes(dynamic_size);
    let size = if is_fixed { fixed_size } else { dynamic_size };
    if let Some(plain) = plain
        && plain_size as u64 + 4 <= in_bytes(size)
    {
        write_stored(plain, last, out);
        return;
    }
    let codes = if is_fixed {
        write_fixed_header(last, out);
        &*FIXED_CODES
    } else {
        header.write(last, out);
        &dynamic
    };
    codes.write_tokens(tokens, out);
    codes.write_end(out);
}

/// The size in bits of all tokens and the end of the block, without a header.
fn coded_size(codes: &BlockCodes, counts: &SymbolCounts) -> u64 {
    codes.literals.size(&counts.literals)
        + codes.distances.size(&counts.distances)
        + counts.extra_bits()
}

fn dynamic_codes(counts: &SymbolCounts) -> (BlockCodes, DynamicHeader) {
    let mut literals = [0; LITERAL_SYMBOLS];
    let mut distances = [0; DISTANCE_SYMBOLS];
    let literals_used = 1 + code_lengths(
        &counts.literals[..LITERAL_SYMBOLS],
        LONGEST_CODE,
        &mut literals,
    );
    let distances_used = 1 + code_lengths(
        &counts.distances[..DISTANCE_SYMBOLS],
        LONGEST_CODE,
        &mut distances,
    );
    let mut codes = BlockCodes::EMPTY;
    codes.literals.set_lengths(&literals);
    codes.distances.set_lengths(&distances);

    let mut symbols = Vec::with_capacity(literals_used + distances_used);
    for used in [&literals[..literals_used], &distances[..distances_used]] {
        for run in used.chunk_by(|a, b| a == b) {
            push_run(run[0], run.len(), &mut symbols);
        }
    }
    let mut lengths = [0; LENGTH_CODE_SYMBOLS];
    code_lengths(
        &count_header_symbols(&symbols),
        MAX_HEADER_BITS,
        &mut lengths,
    );
    let header = DynamicHeader::with_symbols(literals_used, distances_used, symbols, &lengths);
    (codes, header)
}

/// The capacity for the tokens of a block. The largest blocks, those of zlib's memory level 9 and
/// of GNU gzip, have one token fewer.
const MAX_TOKENS: usize = 1 << 15;

/// Collects the tokens of a block.
#[derive(Debug)]
pub(super) struct Tokens {
    tokens: Box<[Token; MAX_TOKENS]>,
    len: usize,
}

impl Tokens {
    pub(super) fn new() -> Self {
        Self {
            tokens: boxed_array(Token::literal(0)),
            len: 0,
        }
    }

    /// Appends a token to a block that is not full.
    #[inline]
    pub(super) fn push(&mut self, token: Token) {
        self.tokens[self.len % MAX_TOKENS] = token;
        self.len += 1;
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_slice(&self) -> &[Token] {
        &self.tokens[..self.len]
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

// The lengths of a Huffman code, as zlib and GNU gzip find them.
//
// Codes of equal cost differ between programs, so the order in which nodes of equal weight are
// joined is part of the result. The rules:
//
// - At least two symbols always have a code. While fewer symbols occur, another one gets weight 1:
//   if the highest symbol so far is 0 or 1, the symbol after it, and otherwise symbol 0.
// - Nodes wait in a binary heap. A node goes before another if its weight is lower, or if the
//   weights are equal and its subtree is not deeper. The symbols are put into the heap
//   in ascending order; then the heap is ordered, entry by entry from its middle to its top. To
//   join two nodes, the top node is removed and the last one takes its place; the node that is
//   then at the top is replaced in place by the node that joins both.
// - A node that would be deeper than the limit is put at the limit. For every two such nodes, one
//   leaf moves down by one level, from the deepest level that has a leaf and is not the limit.
//   Then the lengths are assigned again, the longest to the leaves that were removed first.

/// The heap entries hold the weight above these bits.
const WEIGHT_SHIFT: u32 = 32;
/// The heap entries hold the depth above these bits, and the node below.
const DEPTH_SHIFT: u32 = 16;

/// The maximum number of symbols of an alphabet.
const MAX_SYMBOLS: usize = 286;

/// Finds the code length of each symbol, none above `limit`. Writes 0 for symbols without a code.
/// Returns the highest symbol that has a code.
///
/// `counts` and `lengths` have the same number of elements, at most 286, and the counts add up to
/// less than 2^31.
pub(crate) fn code_lengths(counts: &[u32], limit: usize, lengths: &mut [u8]) -> usize {
    let symbols = counts.len();
    debug_assert!(symbols <= MAX_SYMBOLS && lengths.len() == symbols);
    let mut heap = NodeHeap::new();
    let mut highest = None;
    for (symbol, &count) in counts.iter().enumerate() {
        if count > 0 {
            heap.push_unordered(u64::from(count), symbol);
            highest = Some(symbol);
        }
    }
    while heap.len < 2 {
        let symbol = match highest {
            None => 0,
            Some(symbol @ (0 | 1)) => symbol + 1,
            Some(_) => 0,
        };
        highest = highest.max(Some(symbol));
        heap.push_unordered(1, symbol);
    }
    heap.order();

    // the nodes in the order of their removal, without the root
    let mut removed = [0_u16; 2 * MAX_SYMBOLS];
    let mut parents = [0_u16; 2 * MAX_SYMBOLS];
    let mut removals = 0;
    let mut joined = symbols;
    while heap.len >= 2 {
        let first = heap.remove_first();
        let second = heap.entries[1];
        for entry in [first, second] {
            removed[removals] = entry as u16;
            parents[usize::from(entry as u16)] = joined as u16;
            removals += 1;
        }
        let weight = (first >> WEIGHT_SHIFT) + (second >> WEIGHT_SHIFT);
        let depth = ((first >> DEPTH_SHIFT) & 0xffff).max((second >> DEPTH_SHIFT) & 0xffff) + 1;
        heap.entries[1] = weight << WEIGHT_SHIFT | depth << DEPTH_SHIFT | joined as u64;
        heap.sink(1);
        joined += 1;
    }
    limit_depths(&removed[..removals], &parents, limit, lengths);
    highest.unwrap_or(0)
}

/// Turns parents into depths, from the root down, and limits depths to `limit`.
fn limit_depths(
    removed: &[u16],
    parents: &[u16; 2 * MAX_SYMBOLS],
    limit: usize,
    lengths: &mut [u8],
) {
    let mut depths = [0_u8; 2 * MAX_SYMBOLS];
    let mut leaves_at = [0_usize; 16];
    let mut too_deep = 0_usize;
    lengths.fill(0);
    for &node in removed.iter().rev() {
        let node = usize::from(node);
        let mut depth = usize::from(depths[usize::from(parents[node])]) + 1;
        if depth > limit {
            depth = limit;
            too_deep += 1;
        }
        depths[node] = depth as u8;
        if let Some(length) = lengths.get_mut(node) {
            *length = depth as u8;
            leaves_at[depth] += 1;
        }
    }
    if too_deep == 0 {
        return;
    }
    while too_deep > 0 {
        let Some(level) = (1..limit).rev().find(|&level| leaves_at[level] > 0) else {
            break;
        };
        leaves_at[level] -= 1;
        leaves_at[level + 1] += 2;
        leaves_at[limit] -= 1;
        too_deep = too_deep.saturating_sub(2);
    }
    let symbols = lengths.len();
    let mut leaves = removed
        .iter()
        .map(|&node| usize::from(node))
        .filter(|&node| node < symbols);
    for level in (1..=limit).rev() {
        for node in leaves.by_ref().take(leaves_at[level]) {
            lengths[node] = level as u8;
        }
    }
}

/// A binary heap with its first entry at index 1, so that the children of `n` are at `2n` and
/// `2n + 1`. An entry holds weight, depth and node.
struct NodeHeap {
    entries: [u64; MAX_SYMBOLS + 2],
    len: usize,
}

impl NodeHeap {
    fn new() -> Self {
        Self {
            entries: array::from_fn(|_| 0),
            len: 0,
        }
    }

    fn push_unordered(&mut self, weight: u64, node: usize) {
        self.len += 1;
        self.entries[self.len] = weight << WEIGHT_SHIFT | node as u64;
    }

    fn order(&mut self) {
        for at in (1..=self.len / 2).rev() {
            self.sink(at);
        }
    }

    fn remove_first(&mut self) -> u64 {
        let first = self.entries[1];
        self.entries[1] = self.entries[self.len];
        self.len -= 1;
        self.sink(1);
        first
    }

    /// Moves the entry at `at` down until none of its children goes before it.
    fn sink(&mut self, mut at: usize) {
        let moving = self.entries[at];
        let key = |entry: u64| entry >> DEPTH_SHIFT;
        let mut child = 2 * at;
        while child <= self.len {
            // of two equal children, the second goes first
            if child < self.len && key(self.entries[child + 1]) <= key(self.entries[child]) {
                child += 1;
            }
            if key(moving) <= key(self.entries[child]) {
                break;
            }
            self.entries[at] = self.entries[child];
            at = child;
            child *= 2;
        }
        self.entries[at] = moving;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths_of(counts: &[u32], limit: usize) -> (Vec<u8>, usize) {
        let mut lengths = vec![0; counts.len()];
        let highest = code_lengths(counts, limit, &mut lengths);
        (lengths, highest)
    }

    #[test]
    fn there_are_always_two_codes() {
        assert_eq!(lengths_of(&[0, 0, 0, 0], 15), (vec![1, 1, 0, 0], 1));
        assert_eq!(lengths_of(&[9, 0, 0, 0], 15), (vec![1, 1, 0, 0], 1));
        assert_eq!(lengths_of(&[0, 9, 0, 0], 15), (vec![0, 1, 1, 0], 2));
        assert_eq!(lengths_of(&[0, 0, 0, 9], 15), (vec![1, 0, 0, 1], 3));
    }

    #[test]
    fn lengths_keep_to_the_limit_and_fill_the_code() {
        // Fibonacci numbers make the deepest tree
        let mut counts = vec![1_u32, 1];
        while counts.len() < 22 {
            counts.push(counts[counts.len() - 1] + counts[counts.len() - 2]);
        }
        for limit in [5, 7, 15] {
            let (lengths, highest) = lengths_of(&counts, limit);
            assert_eq!(highest, 21);
            assert!(
                lengths
                    .iter()
                    .all(|&length| (1..=limit).contains(&usize::from(length)))
            );
            let filled: u32 = lengths
                .iter()
                .map(|&length| 1 << (limit - usize::from(length)))
                .sum();
            assert_eq!(filled, 1 << limit);
        }
    }
}
