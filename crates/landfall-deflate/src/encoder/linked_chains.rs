//! Hash chains that are linked in advance, for searches that insert every position: Go's levels 4
//! to 9 and levels 7 to 9 of `klauspost/compress`.
//!
//! Every position is on a chain, whatever the search decides. Therefore positions can be linked as
//! soon as their bytes have arrived, and the search can follow the chains of
//! [grams](super::chain_search). Each position has a rank on its chain, so that the difference of
//! the ranks of two positions is the number of steps between them.

use super::bytes::{boxed_array, load32};
use super::chain_search::{ChainMatch, ChainSearch, best_match};
use super::chains::{ChainHash, ChainWindow, HASH_BITS, LINKS, WINDOW, lower_links};
use super::symbols::MAX_DISTANCE;

/// The number of heads that are replaced at once, so that their loads overlap.
const PLANNED: usize = 64;
/// A search that tries fewer positions follows only the chain of the first gram.
const MIN_TRIES: usize = 100;

/// Positions in the window by the hash of their four bytes.
///
/// The tables hold positions + 1; 0 means that there is no position.
#[derive(Debug)]
pub(crate) struct LinkedChains {
    hash: ChainHash,
    /// The last position of each hash.
    heads: Box<[u16; 1 << HASH_BITS]>,
    /// By position: the four previous positions with the same hash, the nearest in the lowest bits.
    /// So a search needs one load per four positions, not four loads that depend on each other.
    links: Box<[u64; WINDOW]>,
    /// By position: its rank on its chain, counted from 1, modulo 2^16.
    ranks: Box<[u16; WINDOW]>,
    /// The end of the positions that are linked.
    linked: usize,
    /// The end of the last positions that were left out.
    skipped_to: usize,
    /// The end of the last gap between linked positions: the value of `skipped_to` when the first
    /// position after the gap was linked.
    gap_end: usize,
}

impl LinkedChains {
    pub(crate) fn new(hash: ChainHash) -> Self {
        Self {
            hash,
            heads: boxed_array(0),
            links: boxed_array(0),
            ranks: boxed_array(0),
            linked: 0,
            skipped_to: 0,
            gap_end: 0,
        }
    }

    /// Links all positions below `end`. The four bytes at each position must be in the window.
    pub(crate) fn link_up_to(&mut self, window: &ChainWindow, end: usize) {
        if self.linked < end {
            self.gap_end = self.skipped_to;
        }
        let mut planned = [0; PLANNED];
        while self.linked < end {
            let count = (end - self.linked).min(PLANNED);
            for (offset, before) in planned[..count].iter_mut().enumerate() {
                let position = self.linked + offset;
                let hash = self.hash.of(load32(window, position));
                *before = std::mem::replace(&mut self.heads[hash], (position + 1) as u16);
            }
            for (offset, before) in planned[..count].iter().enumerate() {
                let position = self.linked + offset;
                let source = usize::from(before.wrapping_sub(1));
                let older = self.links[source];
                self.links[position % WINDOW] = if *before == 0 {
                    0
                } else {
                    older << 16 | u64::from(*before)
                };
                self.ranks[position % WINDOW] = self.ranks[source].wrapping_add(1);
            }
            self.linked += count;
        }
    }

    /// Leaves out the positions up to `end`, whose four bytes were not complete at a flush or at
    /// the end of a dictionary.
    pub(crate) fn skip_to(&mut self, end: usize) {
        if self.linked < end {
            self.links[self.linked..end].fill(0);
            self.linked = end;
            self.skipped_to = end;
        }
    }

    /// Whether an earlier position has the hash of this one.
    #[inline]
    pub(crate) fn has_candidate(&self, position: usize) -> bool {
        self.links(position) != 0
    }

    /// The last position up to `last` with the hash of the bytes at `position`. `position` must be
    /// linked.
    pub(crate) fn last_up_to(&self, last: usize, position: usize) -> Option<usize> {
        let mut links = self.links(position);
        loop {
            let mut found = 0;
            for _ in 0..LINKS {
                found = usize::from(links as u16).checked_sub(1)?;
                if found <= last {
                    return Some(found);
                }
                links >>= 16;
            }
            links = self.links(found);
        }
    }

    /// Forgets all positions.
    pub(crate) fn clear(&mut self) {
        self.heads.fill(0);
        self.links.fill(0);
        self.linked = 0;
        self.skipped_to = 0;
        self.gap_end = 0;
    }

    /// Lowers all positions by 32 KiB, because the window moves.
    pub(crate) fn slide(&mut self) {
        for head in self.heads.iter_mut() {
            *head = head.saturating_sub(MAX_DISTANCE as u16);
        }
        let (lower, upper) = self.links.split_at_mut(MAX_DISTANCE);
        for (links, moved) in lower.iter_mut().zip(upper) {
            *links = lower_links(*moved);
        }
        self.ranks.copy_within(MAX_DISTANCE.., 0);
        self.linked = self.linked.saturating_sub(MAX_DISTANCE);
        self.skipped_to = self.skipped_to.saturating_sub(MAX_DISTANCE);
        self.gap_end = self.gap_end.saturating_sub(MAX_DISTANCE);
    }

    /// The first of the best matches: a longer match is better if `is_better` returns true for it.
    /// The distance is 0 if there is no match.
    #[inline]
    pub(crate) fn best_match(
        &self,
        window: &ChainWindow,
        search: ChainSearch,
        is_better: impl FnMut(ChainMatch) -> bool,
    ) -> ChainMatch {
        let first = search.position.saturating_sub(MAX_DISTANCE);
        // A match that begins before a gap can extend into it. The positions in the gap are on no
        // chain, so the search for a gram would miss that match.
        let is_gapless = self.gap_end == 0 || self.gap_end <= first;
        let links = |position| self.links(position);
        let steps = |from, to| self.steps(from, to);
        if search.tries >= MIN_TRIES && is_gapless {
            best_match::<true>(window, search, links, steps, is_better)
        } else {
            best_match::<false>(window, search, links, steps, is_better)
        }
    }

    #[inline]
    fn links(&self, position: usize) -> u64 {
        self.links[position % WINDOW]
    }

    /// The number of steps from `position` to `candidate`, which is earlier on the same chain.
    #[inline]
    fn steps(&self, position: usize, candidate: usize) -> usize {
        usize::from(self.ranks[position % WINDOW].wrapping_sub(self.ranks[candidate % WINDOW]))
    }
}
