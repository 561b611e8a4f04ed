//! The dictionary for the search with lazy matching. It contains all positions.
//!
//! Every position enters the dictionary, whatever the search decides, so positions are entered in
//! advance: each has a link to the latest earlier position with the same hash of three bytes. zlib
//! follows the same chains.
//!
//! Only a few positions on a long chain improve the match that is already known. A better match
//! agrees in all bytes up to the one after the best length. The last four of these bytes are a
//! *gram*, which is rare. So positions also have a link to the latest earlier position with the
//! same hash of four bytes, and the search follows the links of that gram. If a gram never occurred
//! before, the search ends at once.
//!
//! zlib considers a limited number of positions of its chain. Each position has a rank on that
//! chain, so the difference of two ranks shows whether zlib would have reached a candidate.
//! Candidates within the limit are compared in the same order, nearest first, so the result is the
//! same.

use super::chains::follow_chain;
use super::window::{
    EXTENT, FARTHEST_OF_SHORTEST, Match, Search, ThreeByteHash, WindowBytes, lowest_match,
};
use crate::encoder::bytes::{boxed_array, first_bytes_mask};
use crate::encoder::symbols::MIN_LENGTH;

const HEADS: usize = 1 << 16;
/// The number of bytes of a gram.
const GRAM: usize = 4;
/// The number of bits of a gram's hash.
const GRAM_BITS: u32 = 16;
const GRAM_HEADS: usize = 1 << GRAM_BITS;

/// A link to an earlier position on a chain, and the rank of the position that has the link: the
/// number of positions before it on the chain, modulo 2^16.
#[derive(Debug, Clone, Copy, Default)]
struct Link(u32);

impl Link {
    #[inline]
    fn new(position: usize, rank: u32) -> Self {
        Self((position as u32 & 0xffff) | rank << 16)
    }

    #[inline]
    fn position(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline]
    fn rank(self) -> u32 {
        self.0 >> 16
    }

    /// The link after the window has moved by 32 KiB: a position without the highest bit becomes 0.
    #[inline]
    fn slid_by_32_kib(self) -> Self {
        let highest = self.0 & 0x8000;
        Self(self.0 & ((highest - (highest >> 15)) | 0xffff_0000))
    }

    #[inline]
    fn slid(self, size: u32) -> Self {
        Self((self.0 & 0xffff).saturating_sub(size) | self.0 & 0xffff_0000)
    }
}

#[derive(Debug)]
pub(super) struct PositionIndex {
    /// The latest position of each hash of three bytes, and the rank of the next position with
    /// this hash.
    heads: Box<[Link; HEADS]>,
    /// The previous position on the chain of each position, and the rank of the position.
    links: Box<[Link; EXTENT]>,
    /// The number of positions that have a link.
    linked: usize,
    /// The latest position of each gram's hash.
    gram_heads: Box<[u16; GRAM_HEADS]>,
    /// For each position, the previous position whose gram has the same hash.
    gram_links: Box<[u16; EXTENT]>,
    /// The number of positions that have a gram link.
    gram_linked: usize,
    window_size: usize,
    hash: ThreeByteHash,
}

impl PositionIndex {
    pub(super) fn new(window_size: usize, hash: ThreeByteHash) -> Self {
        Self {
            heads: boxed_array(Link::default()),
            links: boxed_array(Link::default()),
            linked: 0,
            gram_heads: boxed_array(0),
            gram_links: boxed_array(0),
            gram_linked: 0,
            window_size,
            hash,
        }
    }

    pub(super) fn forget(&mut self) {
        self.heads[..self.hash.slots()].fill(Link::default());
        self.gram_heads.fill(0);
        self.linked = 0;
        self.gram_linked = 0;
    }

    /// Moves the links of the window's upper half to the lower one. Positions in the lower half
    /// leave their chains.
    pub(super) fn slide(&mut self) {
        let size = self.window_size;
        let heads = &mut self.heads[..self.hash.slots()];
        let (lower, upper) = self.links.split_at_mut(size);
        let moves = lower.iter_mut().zip(upper);
        if size == 1 << 15 {
            heads
                .iter_mut()
                .for_each(|head| *head = head.slid_by_32_kib());
            moves.for_each(|(link, moved)| *link = moved.slid_by_32_kib());
        } else {
            heads
                .iter_mut()
                .for_each(|head| *head = head.slid(size as u32));
            moves.for_each(|(link, moved)| *link = moved.slid(size as u32));
        }
        for head in self.gram_heads.iter_mut() {
            *head = head.saturating_sub(size as u16);
        }
        let (lower, upper) = self.gram_links.split_at_mut(size);
        for (link, moved) in lower.iter_mut().zip(upper) {
            *link = moved.saturating_sub(size as u16);
        }
        self.linked = self.linked.saturating_sub(size);
        self.gram_linked = self.gram_linked.saturating_sub(size);
    }

    /// Links all positions whose bytes are below `end`.
    pub(super) fn link_up_to(&mut self, bytes: &WindowBytes, end: usize) {
        let linked_end = end.saturating_sub(MIN_LENGTH - 1).min(EXTENT);
        if self.linked < linked_end {
            let heads = &mut *self.heads;
            let links = &mut *self.links;
            for at in self.linked..linked_end {
                let head = &mut heads[self.hash.slot(bytes.word(at)) & (HEADS - 1)];
                links[at & (EXTENT - 1)] = *head;
                *head = Link::new(at, head.rank().wrapping_add(1));
            }
            self.linked = linked_end;
        }
        let gram_end = end.saturating_sub(GRAM - 1).min(EXTENT);
        if self.gram_linked < gram_end {
            let heads = &mut *self.gram_heads;
            let links = &mut *self.gram_links;
            for at in self.gram_linked..gram_end {
                let hash = bytes.word(at).wrapping_mul(0x9e37_79b1) >> (32 - GRAM_BITS);
                let head = &mut heads[hash as usize & (GRAM_HEADS - 1)];
                links[at & (EXTENT - 1)] = *head;
                *head = at as u16;
            }
            self.gram_linked = gram_end;
        }
    }

    #[inline]
    fn link(&self, at: usize) -> Link {
        self.links[at & (EXTENT - 1)]
    }

    #[inline]
    fn gram_link(&self, at: usize) -> usize {
        usize::from(self.gram_links[at & (EXTENT - 1)])
    }

    /// The position before `at` on its chain, 0 if there is none.
    #[inline]
    pub(super) fn head(&self, at: usize) -> usize {
        if at < self.linked {
            self.link(at).position()
        } else {
            0
        }
    }

    /// The number of steps from `at` to `candidate`, which is earlier on the same chain.
    #[inline]
    fn steps(&self, at: usize, candidate: usize) -> u32 {
        self.link(at)
            .rank()
            .wrapping_sub(self.link(candidate).rank())
            & 0xffff
    }

    /// Finds the longest match of the bytes at `at`, whose chain begins at `head`. Among equally
    /// long matches, returns the nearest. Returns `None` if no match is longer than
    /// `search.longer_than`.
    #[inline]
    pub(super) fn longest_match(
        &self,
        bytes: &WindowBytes,
        at: usize,
        head: usize,
        search: Search,
    ) -> Option<Match> {
        if search.nice < GRAM {
            return self.follow_chain(bytes, at, head, search);
        }
        let lowest = lowest_match(at, head, self.window_size);
        let mut found: Option<Match> = None;
        let mut best = search.longer_than.max(MIN_LENGTH);
        // The positions on the chain of a gram nearly always agree in the gram, but seldom in the
        // bytes before it. So the beginning is compared first: up to eight bytes that a better
        // match shares.
        let beginning = bytes.double_word(at);
        let mut mask = first_bytes_mask(best + 1);
        // the links that are followed are those of the gram with this offset in the match
        let mut offset = best - MIN_LENGTH;
        let mut link = self.gram_link(at + offset);
        let mut steps = 0;
        while link >= lowest + offset {
            let candidate = (link - offset) & (EXTENT - 1);
            link = self.gram_link(link);
            steps += 1;
            if (bytes.double_word(candidate) ^ beginning) & mask == 0 {
                let length = bytes.common_length(candidate, at);
                if length > best {
                    if self.steps(at, candidate) > search.chain {
                        break;
                    }
                    found = Some(Match {
                        length,
                        position: candidate,
                    });
                    if length >= search.nice {
                        break;
                    }
                    best = length;
                    mask = first_bytes_mask(best + 1);
                    // the new gram is rarer; its links are followed unless they lead to positions
                    // that were passed already
                    let new_offset = best - MIN_LENGTH;
                    let newest = self.gram_link(at + new_offset);
                    if newest < candidate + new_offset {
                        link = newest;
                        offset = new_offset;
                    }
                    continue;
                }
            }
            if steps >= search.chain {
                let same_chain = bytes.word(candidate) == bytes.word(at);
                if same_chain && self.steps(at, candidate) >= search.chain {
                    break;
                }
                // the chain that zlib follows may be shorter than the chain of the gram
                let longer_than = found.map_or(search.longer_than, |found| found.length);
                let rest = Search {
                    longer_than,
                    ..search
                };
                return self.follow_chain(bytes, at, head, rest).or(found);
            }
        }
        if found.is_none() && search.longer_than < MIN_LENGTH {
            return self.nearest_shortest_match(bytes, at, head, search.chain);
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn follow_chain(
        &self,
        bytes: &WindowBytes,
        at: usize,
        head: usize,
        search: Search,
    ) -> Option<Match> {
        let link = |position| self.link(position).position();
        follow_chain(bytes, at, head, self.window_size, search, link)
    }

    /// Finds the nearest match of exactly three bytes that is near enough to be useful, within
    /// `chain` positions. The caller has checked that there are no matches of more bytes.
    #[inline]
    fn nearest_shortest_match(
        &self,
        bytes: &WindowBytes,
        at: usize,
        head: usize,
        chain: u32,
    ) -> Option<Match> {
        let lowest =
            lowest_match(at, head, self.window_size).max(at.saturating_sub(FARTHEST_OF_SHORTEST));
        let word = bytes.word(at);
        let mut candidate = head;
        for _ in 0..chain {
            if candidate < lowest {
                break;
            }
            // the fourth byte may differ
            if bytes.word(candidate) << 8 == word << 8 {
                return Some(Match {
                    length: MIN_LENGTH,
                    position: candidate,
                });
            }
            candidate = self.link(candidate).position();
        }
        None
    }
}
