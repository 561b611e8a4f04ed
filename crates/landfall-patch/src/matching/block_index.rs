//! An index of short blocks of the old bytes.

/// The length of an indexed block. A match of `BLOCK + stride - 1` bytes contains an indexed block,
/// except at the very end.
pub(super) const BLOCK: usize = 12;

/// The maximum number of blocks of one index: its table has 4 bytes for each, 32 MiB in all.
const MAX_BLOCKS: usize = 8 << 20;

/// The distance between blocks in short input. Smaller distances cost time and find little more.
const MIN_STRIDE: usize = 2;

/// Finds offsets in the old bytes at which a given block begins.
#[derive(Debug)]
pub(super) struct BlockIndex {
    /// For each hash, the offset of a block plus one; 0 if no block has the hash.
    offsets: Vec<u32>,
    shift: u32,
}

impl BlockIndex {
    /// Indexes `old`, which is shorter than 4 GiB. Long input is sampled: its blocks are further
    /// apart.
    pub(super) fn new(old: &[u8]) -> BlockIndex {
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
    pub(super) fn find(&self, bytes: &[u8]) -> Option<usize> {
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
