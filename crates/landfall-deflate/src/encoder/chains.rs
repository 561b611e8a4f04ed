//! Hash chains over a window of 64 KiB, for Go's levels 2 and 3, which do not insert all positions.

use super::bytes::{boxed_array, load32};
use super::symbols::MAX_DISTANCE;

/// The number of bytes in a window.
pub(crate) const WINDOW: usize = 2 * MAX_DISTANCE;
/// The number of positions in the links of a position.
pub(crate) const LINKS: usize = 4;
/// A window, and some bytes after it, so that loads need no bounds check.
pub(crate) type ChainWindow = [u8; WINDOW + 512];

pub(super) const HASH_BITS: u32 = 17;

/// An empty window.
pub(crate) fn new_window() -> Box<ChainWindow> {
    boxed_array(0)
}

/// The hash of four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainHash {
    /// The first byte is the most significant: Go up to 1.26.
    BigEndian,
    /// The first byte is the least significant: `klauspost/compress`.
    LittleEndian,
}

impl ChainHash {
    #[inline]
    pub(super) fn of(self, bytes: u32) -> usize {
        let product = match self {
            Self::BigEndian => bytes.swap_bytes().wrapping_mul(0x1e35_a7bd),
            Self::LittleEndian => bytes.wrapping_mul(2_654_435_761),
        };
        (product >> (32 - HASH_BITS)) as usize
    }
}

/// Positions in the window by the hash of their four bytes.
///
/// Both tables hold positions + 1; 0 means that there is no position. When the window moves, all
/// entries are lowered by the same amount, so that 16 bits suffice.
#[derive(Debug)]
pub(crate) struct Chains {
    hash: ChainHash,
    /// The last position of each hash.
    heads: Box<[u16; 1 << HASH_BITS]>,
    /// For each position modulo 32 KiB, the four previous positions with the same hash, the nearest
    /// in the lowest bits. So a search needs one load per four positions, not four loads that
    /// depend on each other. Entries after a position that is out of reach are meaningless.
    links: Box<[u64; MAX_DISTANCE]>,
}

impl Chains {
    pub(crate) fn new(hash: ChainHash) -> Self {
        Self {
            hash,
            heads: boxed_array(0),
            links: boxed_array(0),
        }
    }

    /// Inserts a position and returns the links to the earlier positions with the same hash.
    #[inline]
    pub(crate) fn insert(&mut self, window: &ChainWindow, position: usize) -> u64 {
        let hash = self.hash.of(load32(window, position));
        let before = std::mem::replace(&mut self.heads[hash], (position + 1) as u16);
        let older = self.links[usize::from(before.wrapping_sub(1)) % MAX_DISTANCE];
        let links = if before == 0 {
            0
        } else {
            older << 16 | u64::from(before)
        };
        self.links[position % MAX_DISTANCE] = links;
        links
    }

    /// The links of an inserted position that is less than 32 KiB before the last inserted one.
    #[inline]
    pub(crate) fn links(&self, position: usize) -> u64 {
        self.links[position % MAX_DISTANCE]
    }

    /// Lowers all entries by 32 KiB, because the window moves.
    pub(crate) fn slide(&mut self) {
        for head in self.heads.iter_mut() {
            *head = head.saturating_sub(MAX_DISTANCE as u16);
        }
        for links in self.links.iter_mut() {
            *links = lower_links(*links);
        }
    }
}

/// Lowers four positions + 1 by 32 KiB.
#[inline]
pub(super) fn lower_links(links: u64) -> u64 {
    const { assert!(MAX_DISTANCE == 1 << 15) };
    // an entry whose highest bit is set loses this bit; every other entry becomes 0
    let highest = links & 0x8000_8000_8000_8000;
    links & (highest - (highest >> 15))
}
