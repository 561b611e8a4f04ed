//! Estimates the size of a block with codes of its own, without building them.
//!
//! The estimate is a sum of single-precision numbers in a fixed order, with a logarithm that is
//! a polynomial of the mantissa. Each operation affects the result. Programs that Go compiled for
//! arm64 round less often, because they fuse multiplications and additions (`klauspost/compress`
//! 1.20.4 avoids this). Their estimates differ by a few bits. This changes the decision for at most
//! one of many thousands of blocks, and is not reproduced.

use crate::encoder::symbols::{
    DISTANCE_SYMBOLS, END_OF_BLOCK, LITERAL_SYMBOLS, SymbolCounts, distance_extra_bits,
    length_extra_bits, length_symbol,
};

/// The estimated total bits of `count` occurrences of a symbol among `1 / inverse_total` symbols.
fn bits(count: u32, inverse_total: f32, bounds: BitBounds) -> f32 {
    let count = count as f32;
    let each = -fast_log2(count * inverse_total);
    let bounded = match bounds {
        BitBounds::None => each,
        BitBounds::AtLeastOne => each.max(1.0),
        BitBounds::OneToFifteen => each.clamp(1.0, 15.0),
    };
    bounded * count
}

/// The limits on the estimated bits for one occurrence of a symbol.
#[derive(Debug, Clone, Copy)]
enum BitBounds {
    None,
    AtLeastOne,
    OneToFifteen,
}

/// The binary logarithm of a positive number, to about two digits.
fn fast_log2(value: f32) -> f32 {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 128;
    // the mantissa as a number of 1 to 2
    let mantissa = f32::from_bits((bits & 0x807f_ffff) + (127 << 23));
    #[expect(clippy::excessive_precision, reason = "the digits of the original")]
    let fraction = (-0.344_848_43_f32 * mantissa + 2.024_665_78) * mantissa - 0.674_877_59;
    exponent as f32 + fraction
}

/// The estimated size in bits of literals with these counts. `total` is the number of literals. It
/// may also count one literal for each symbol that does not occur.
pub(super) fn estimated_literal_bits(counts: &[u32], total: usize) -> u64 {
    let inverse_total = 1.0 / total as f32;
    let mut sum = 0.0_f32;
    for count in counts.iter().filter(|count| **count > 0) {
        sum += bits(*count, inverse_total, BitBounds::AtLeastOne);
    }
    (sum + 0.99) as u64
}

/// The estimated size in bits of `added` literals, each of which occurs once among `total`.
pub(super) fn estimated_rare_bits(added: usize, total: usize) -> u64 {
    let each = bits(1, 1.0 / total as f32, BitBounds::AtLeastOne);
    let mut sum = 0.0_f32;
    for _ in 0..added {
        sum += each;
    }
    (sum + 0.99) as u64
}

/// The estimated size in bits of a block with `tokens` tokens that have these counts. The end of
/// the block is counted as 15 bits. If `is_bounded` is set, each symbol costs 1 to 15 bits.
pub(super) fn estimated_bits(counts: &SymbolCounts, tokens: usize, is_bounded: bool) -> u64 {
    let bounds = if is_bounded {
        BitBounds::OneToFifteen
    } else {
        BitBounds::None
    };
    let mut sum = 0.0_f32;
    let mut extra_bits = 0;
    let mut matches = 0;
    if tokens > 0 {
        let inverse_total = 1.0 / tokens as f32;
        let used = |(_, count): &(usize, &u32)| **count > 0;
        let literals = &counts.literals;
        for (_, count) in literals[..END_OF_BLOCK].iter().enumerate().filter(used) {
            sum += bits(*count, inverse_total, bounds);
        }
        sum += 15.0;
        let lengths = &literals[length_symbol(0)..LITERAL_SYMBOLS];
        for (code, count) in lengths.iter().enumerate().filter(used) {
            sum += bits(*count, inverse_total, bounds);
            extra_bits += u64::from(length_extra_bits(code)) * u64::from(*count);
            matches += count;
        }
    }
    if matches > 0 {
        let inverse_total = 1.0 / matches as f32;
        let distances = &counts.distances[..DISTANCE_SYMBOLS];
        for (code, count) in distances.iter().enumerate() {
            if *count > 0 {
                sum += bits(*count, inverse_total, bounds);
                extra_bits += u64::from(distance_extra_bits(code)) * u64::from(*count);
            }
        }
    }
    sum as u64 + extra_bits
}
