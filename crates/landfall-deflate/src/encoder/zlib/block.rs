//! The choice among stored, fixed and dynamic blocks.
//!
//! Sizes are compared in whole bytes, including the three bits of the header: a fixed block is
//! chosen if it is not longer than a dynamic one, and a stored block if its plain bytes and four
//! bytes of lengths are not longer than the shorter of the two. A stored block needs the block's
//! plain bytes, which the window may have dropped by then.
//!
//! The runs of code lengths in the header of a dynamic block do not cross from the literal code to
//! the distance code.

use super::tree::code_lengths;
use crate::bits::BitWriter;
use crate::encoder::block::{
    BlockCodes, DynamicHeader, HEADER_SYMBOLS, count_header_symbols, push_run, write_fixed_header,
    write_stored,
};
use crate::encoder::huffman::{MAX_BITS, MAX_HEADER_BITS};
use crate::encoder::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LITERAL_SYMBOLS, SymbolCounts, Token,
};
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
    let dynamic_size = header.size() + coded_size(&dynamic, &counts);

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
    let literals_used =
        1 + code_lengths(&counts.literals[..LITERAL_SYMBOLS], MAX_BITS, &mut literals);
    let distances_used = 1 + code_lengths(
        &counts.distances[..DISTANCE_SYMBOLS],
        MAX_BITS,
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
    let mut lengths = [0; HEADER_SYMBOLS];
    code_lengths(
        &count_header_symbols(&symbols),
        MAX_HEADER_BITS,
        &mut lengths,
    );
    let header = DynamicHeader::with_symbols(literals_used, distances_used, symbols, &lengths);
    (codes, header)
}
