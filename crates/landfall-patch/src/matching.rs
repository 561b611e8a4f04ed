//! Finds the parts of new bytes that resemble parts of old bytes, as bsdiff does (C. Percival,
//! "Naive differences of executable code", 2003): a part may differ in some bytes, as in a program
//! with equal code and moved addresses. bsdiff sorts all suffixes of the old bytes. This module
//! uses an index of sampled blocks instead, which needs a quarter of the memory and linear time.

/// A part of the new bytes, and the part of the old bytes that it resembles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SimilarPart {
    /// The offset in the new bytes.
    pub(crate) new: usize,
    /// The offset in the old bytes.
    pub(crate) old: usize,
    /// The length of both parts.
    pub(crate) length: usize,
}

/// The cost of a separate part in the patch, in bytes. A match is used only if it explains more
/// bytes than the sum of this cost and the bytes that the current alignment explains.
const PART_COST: usize = 12;

/// The maximum number of bytes of a match that are compared with the current alignment.
const MAX_COUNTED: usize = 1 << 16;

/// Returns the similar parts in the order of the new bytes, without overlap. The bytes between them
/// are new. Both inputs are shorter than 4 GiB.
pub(crate) fn similar_parts(old: &[u8], new: &[u8]) -> Vec<SimilarPart> {
    let index = BlockIndex::new(old);
    let mut parts = Vec::new();
    // similar files usually have similar beginnings
    let mut current = Alignment { new: 0, old: 0 };
    let mut at = 0;
    while let Some(found) = next_match(&index, old, new, current, &mut at) {
        let forward = extend_forward(&old[current.old..], &new[current.new..found.new]);
        let room = found.new - current.new;
        let backward = extend_backward(&old[..found.old], &new[current.new..found.new]);
        let (forward, backward) = if forward + backward > room {
            split_overlap(old, new, current, found, forward, backward)
        } else {
            (forward, backward)
        };
        if forward > 0 {
            parts.push(SimilarPart {
                new: current.new,
                old: current.old,
                length: forward,
            });
        }
        current = Alignment {
            new: found.new - backward,
            old: found.old - backward,
        };
    }
    let forward = extend_forward(&old[current.old..], &new[current.new..]);
    if forward > 0 {
        parts.push(SimilarPart {
            new: current.new,
            old: current.old,
            length: forward,
        });
    }
    parts
}

/// An offset in the new bytes, and the offset in the old bytes with which it is compared.
#[derive(Debug, Clone, Copy)]
struct Alignment {
    new: usize,
    old: usize,
}

/// Finds the next offset, from `at` on, at which another alignment explains the new bytes better
/// than `current`. Advances `at` past the match.
fn next_match(
    index: &BlockIndex,
    old: &[u8],
    new: &[u8],
    current: Alignment,
    at: &mut usize,
) -> Option<Alignment> {
    while *at + BLOCK <= new.len() {
        let aligned = (current.old + (*at - current.new)).min(old.len());
        let equal = common_prefix(&old[aligned..], &new[*at..]);
        if equal >= BLOCK {
            *at += equal;
            continue;
        }
        if let Some(found) = index.find(&new[*at..])
            && found != aligned
        {
            let new_rest = &new[*at..(*at + MAX_COUNTED).min(new.len())];
            let length = common_prefix(&old[found..], new_rest);
            if length >= BLOCK {
                let explained = equal_bytes(&old[aligned..], &new_rest[..length]);
                if length > explained + PART_COST {
                    let found = Alignment {
                        new: *at,
                        old: found,
                    };
                    *at += length;
                    return Some(found);
                }
            }
        }
        // a better alignment that begins within the equal bytes is found after them, and extended
        // backward over them
        *at += equal.max(1);
    }
    None
}

/// The number of offsets at which `old` and `new` have the same byte.
fn equal_bytes(old: &[u8], new: &[u8]) -> usize {
    old.iter().zip(new).filter(|(old, new)| old == new).count()
}

/// Returns the length of the beginning of `new` that best resembles the beginning of `old`: the
/// shortest beginning with the largest number of equal bytes minus different bytes.
fn extend_forward(old: &[u8], new: &[u8]) -> usize {
    best_length(old.iter().zip(new))
}

fn extend_backward(old: &[u8], new: &[u8]) -> usize {
    best_length(old.iter().rev().zip(new.iter().rev()))
}

fn best_length<'a>(pairs: impl Iterator<Item = (&'a u8, &'a u8)>) -> usize {
    let mut score = 0_isize;
    let mut best = 0;
    let mut length = 0;
    for (index, (old, new)) in pairs.enumerate() {
        score += if old == new { 1 } else { -1 };
        if score > best {
            best = score;
            length = index + 1;
        }
    }
    length
}

/// Splits two parts that overlap in the new bytes: ends the first part at the offset from which the
/// second part has more equal bytes.
fn split_overlap(
    old: &[u8],
    new: &[u8],
    first: Alignment,
    second: Alignment,
    forward: usize,
    backward: usize,
) -> (usize, usize) {
    let room = second.new - first.new;
    let overlap = forward + backward - room;
    let start = forward - overlap;
    let mut score = 0_isize;
    let mut best = 0;
    let mut length = 0;
    for step in 0..overlap {
        let byte = new[first.new + start + step];
        score += isize::from(byte == old[first.old + start + step]);
        score -= isize::from(byte == old[second.old - backward + step]);
        if score > best {
            best = score;
            length = step + 1;
        }
    }
    (start + length, backward - length)
}

/// The length of an indexed block. A match of `BLOCK + stride - 1` bytes contains an indexed block,
/// except at the very end.
const BLOCK: usize = 12;

/// The maximum number of blocks of one index: its table has 4 bytes for each, 32 MiB in all.
const MAX_BLOCKS: usize = 8 << 20;

/// The distance between blocks in short input. Smaller distances cost time and find little more.
const MIN_STRIDE: usize = 2;

/// Finds offsets in the old bytes at which a given block begins.
#[derive(Debug)]
struct BlockIndex {
    /// For each hash, the offset of a block plus one; 0 if no block has the hash.
    offsets: Vec<u32>,
    shift: u32,
}

impl BlockIndex {
    /// Indexes `old`, which is shorter than 4 GiB. Long input is sampled: its blocks are further
    /// apart.
    fn new(old: &[u8]) -> BlockIndex {
        let stride = (old.len() / MAX_BLOCKS + 1).max(MIN_STRIDE);
        let blocks = old.len() / stride + 1;
        let bits = blocks.next_power_of_two().trailing_zeros().clamp(8, 23);
        let mut index = BlockIndex {
            offsets: vec![0; 1 << bits],
            shift: 64 - bits,
        };
        let last = old.len().saturating_sub(BLOCK);
        // The first block of a long run of equal blocks gives the longest match, so it is written
        // last. The loop does not read the table, which is larger than the processor's caches.
        for offset in (0..last).step_by(stride).rev() {
            let slot = index.slot(&old[offset..]);
            index.offsets[slot] = offset as u32 + 1;
        }
        index
    }

    /// The offset of a block that probably equals the first bytes of `bytes`, which has at least
    /// [`BLOCK`] bytes.
    #[inline]
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let offset = self.offsets[self.slot(bytes)];
        (offset > 0).then(|| offset as usize - 1)
    }

    #[inline]
    fn slot(&self, bytes: &[u8]) -> usize {
        let low = load(bytes);
        let high = bytes[8..]
            .first_chunk()
            .map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
        // odd constants, derived from the golden ratio and from the square root of two
        let mixed =
            low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high.wrapping_mul(0x6a09_e667_f3bc_c909);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }
}

#[inline]
fn load(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// The number of equal bytes at the beginning of `a` and `b`.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut length = 0;
    let words = a.chunks_exact(8).zip(b.chunks_exact(8));
    for (a, b) in words {
        let difference = load(a) ^ load(b);
        if difference != 0 {
            return length + (difference.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length
        + a[length..]
            .iter()
            .zip(&b[length..])
            .take_while(|(a, b)| a == b)
            .count()
}
