//! The dictionary of zlib and GNU gzip: positions, chained by a hash of three bytes.
//!
//! Each byte is shifted left so far that it leaves the hash after three steps, and the three are
//! combined by exclusive or. The chain of a position leads to earlier positions with the same
//! hash, whether or not their bytes are equal. A search considers a limited number of them.

use super::engine::FARTHEST_OF_SHORTEST;
use super::window::{Match, Search, WANTED_AHEAD, WindowBytes};
use crate::encoder::bytes::boxed_array;
use crate::encoder::symbols::MIN_LENGTH;

const HEADS: usize = 1 << 16;
const LINKS: usize = 1 << 15;

/// A position of a chain, and its rank: the number of positions that were on the chain before it,
/// modulo 2^16.
#[derive(Debug, Clone, Copy, Default)]
struct Link(u32);

impl Link {
    #[inline(always)]
    fn new(position: usize, rank: u32) -> Self {
        Self((position as u32 & 0xffff) | rank << 16)
    }

    #[inline(always)]
    fn position(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline(always)]
    fn rank(self) -> u32 {
        self.0 >> 16
    }

    #[inline(always)]
    fn slid(self, size: u32) -> Self {
        Self((self.0 & 0xffff).saturating_sub(size) | self.0 & 0xffff_0000)
    }
}

#[derive(Debug)]
pub(super) struct HashChains {
    /// The latest position of each hash, and the rank of the next one.
    heads: Box<[Link; HEADS]>,
    /// By position modulo the window's size: the position before it on its chain, and its rank.
    links: Box<[Link; LINKS]>,
    window_size: usize,
    hash_shift: u32,
    hash_mask: u32,
}

impl HashChains {
    pub(super) fn new(window_size: usize, hash_bits: u8) -> Self {
        Self {
            heads: boxed_array(Link::default()),
            links: boxed_array(Link::default()),
            window_size,
            hash_shift: u32::from(hash_bits).div_ceil(3),
            hash_mask: (1 << hash_bits.clamp(8, 16)) - 1,
        }
    }

    pub(super) fn forget(&mut self) {
        self.heads[..=self.hash_mask as usize].fill(Link::default());
    }

    /// Takes the window's size off all positions. Those below leave their chains.
    pub(super) fn slide(&mut self) {
        let size = self.window_size as u32;
        for head in &mut self.heads[..=self.hash_mask as usize] {
            *head = head.slid(size);
        }
        for link in &mut self.links[..self.window_size] {
            *link = link.slid(size);
        }
    }

    /// Puts the position at the head of its chain. Returns the previous head, 0 if there is none.
    #[inline(always)]
    pub(super) fn insert(&mut self, bytes: &WindowBytes, at: usize) -> usize {
        let word = bytes.word(at);
        let shift = self.hash_shift;
        // the other bytes of the first term are shifted out of the mask
        let hash = (word << (2 * shift)) ^ (((word >> 8) & 0xff) << shift) ^ ((word >> 16) & 0xff);
        let head = &mut self.heads[(hash & self.hash_mask) as usize & (HEADS - 1)];
        let previous = *head;
        *head = Link::new(at, previous.rank().wrapping_add(1));
        self.links[at & (self.window_size - 1) & (LINKS - 1)] = previous;
        previous.position()
    }

    #[inline(always)]
    fn link(&self, at: usize) -> Link {
        self.links[at & (self.window_size - 1) & (LINKS - 1)]
    }

    /// How many steps lead from `at` to `candidate`, which is earlier on the same chain.
    #[inline(always)]
    pub(super) fn steps(&self, at: usize, candidate: usize) -> u32 {
        self.link(at)
            .rank()
            .wrapping_sub(self.link(candidate).rank())
            & 0xffff
    }

    /// The lowest position that may be matched from `at`. Only the head of the chain may be at the
    /// greatest distance.
    #[inline(always)]
    pub(super) fn lowest(&self, at: usize, head: usize) -> usize {
        let limit = at.saturating_sub(self.window_size - WANTED_AHEAD);
        (limit + usize::from(head != limit)).max(1)
    }

    /// Finds the nearest match of exactly three bytes that is not too far to be of use, where no
    /// longer one is within `chain` positions.
    #[inline]
    pub(super) fn nearest_shortest_match(
        &self,
        bytes: &WindowBytes,
        at: usize,
        head: usize,
        chain: u32,
    ) -> Option<Match> {
        let lowest = self
            .lowest(at, head)
            .max(at.saturating_sub(FARTHEST_OF_SHORTEST));
        let word = bytes.word(at);
        let mut candidate = head;
        for _ in 0..chain {
            if candidate < lowest {
                break;
            }
            if (bytes.word(candidate) ^ word) & 0xff_ffff == 0 {
                return Some(Match {
                    length: MIN_LENGTH,
                    position: candidate,
                });
            }
            candidate = self.link(candidate).position();
        }
        None
    }

    /// Follows the chain. See [`super::window::Window::longest_match`].
    #[inline]
    pub(super) fn longest_match(
        &self,
        bytes: &WindowBytes,
        at: usize,
        head: usize,
        search: Search,
    ) -> Option<Match> {
        let lowest = self.lowest(at, head);
        let mut found = None;
        let mut chain = search.chain;
        let mut best = search.longer_than;
        // a longer match has the same four bytes up to the one after the best length; of the
        // shortest match, which has only three, the fourth is masked
        let mut tail_at = best.max(3) - 3;
        let mut tail_mask = if best < 3 { 0xff_ffff } else { u32::MAX };
        let mut tail = bytes.word(at + tail_at);
        let mut candidate = head;
        loop {
            if (bytes.word(candidate + tail_at) ^ tail) & tail_mask == 0 {
                let length = bytes.common_length(candidate, at);
                if length > best {
                    best = length;
                    found = Some(Match {
                        length,
                        position: candidate,
                    });
                    if length >= search.nice {
                        break;
                    }
                    tail_at = best - 3;
                    tail_mask = u32::MAX;
                    tail = bytes.word(at + tail_at);
                }
            }
            candidate = self.link(candidate).position();
            chain -= 1;
            if candidate < lowest || chain == 0 {
                break;
            }
        }
        found
    }
}
