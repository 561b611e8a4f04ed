//! A faster way to the match that the hash chains lead to.
//!
//! With a long chain, nearly all positions that a search considers cannot improve the match that
//! is already known. A better match has the same bytes up to the one after the best length, thus
//! also the same *gram* of the last four of them, and that is rare. So positions are also chained
//! by a hash of four bytes, and the search follows the chain of that gram. Where a gram was never
//! seen, the search is over at once.
//!
//! The original considers only so many positions of its own chain. Each position has a rank on
//! that chain, so that the difference of two ranks tells how many positions lie between them, and
//! whether the original's search would have come so far. Within that, candidates are met in the
//! same order, nearest first, and the result is the same.

use super::chains::HashChains;
use super::window::{Match, Search, WindowBytes};
use crate::encoder::bytes::boxed_array;
use crate::encoder::symbols::MIN_LENGTH;

const HEAD_BITS: u32 = 16;
const HEADS: usize = 1 << HEAD_BITS;
const LINKS: usize = 1 << 15;
/// The number of bytes of a gram.
const GRAM: usize = 4;

#[derive(Debug)]
pub(super) struct GramChains {
    /// The latest position of each hash.
    heads: Box<[u16; HEADS]>,
    /// By position modulo the window's size: the position before it on its chain.
    links: Box<[u16; LINKS]>,
    /// All positions below are on their chains.
    inserted: usize,
    window_size: usize,
}

impl GramChains {
    pub(super) fn new(window_size: usize) -> Self {
        Self {
            heads: boxed_array(0),
            links: boxed_array(0),
            inserted: 0,
            window_size,
        }
    }

    pub(super) fn forget(&mut self) {
        self.heads.fill(0);
        self.inserted = 0;
    }

    pub(super) fn slide(&mut self) {
        let size = self.window_size as u16;
        for head in self.heads.iter_mut() {
            *head = head.saturating_sub(size);
        }
        for link in &mut self.links[..self.window_size] {
            *link = link.saturating_sub(size);
        }
        // positions that were not inserted in time are out of reach
        self.inserted = self.inserted.saturating_sub(self.window_size);
    }

    #[inline(always)]
    fn slot(word: u32) -> usize {
        (word.wrapping_mul(0x9e37_79b1) >> (32 - HEAD_BITS)) as usize
    }

    #[inline(always)]
    fn head(&self, word: u32) -> usize {
        usize::from(self.heads[Self::slot(word) & (HEADS - 1)])
    }

    #[inline(always)]
    fn link(&self, at: usize) -> usize {
        usize::from(self.links[at & (self.window_size - 1) & (LINKS - 1)])
    }

    /// Inserts all positions below `end` that are not inserted yet.
    #[inline]
    fn insert_up_to(&mut self, bytes: &WindowBytes, end: usize) {
        while self.inserted < end {
            let at = self.inserted;
            let head = &mut self.heads[Self::slot(bytes.word(at)) & (HEADS - 1)];
            self.links[at & (self.window_size - 1) & (LINKS - 1)] = *head;
            *head = at as u16;
            self.inserted += 1;
        }
    }

    /// See [`super::window::Window::longest_match_by_grams`].
    #[inline]
    pub(super) fn longest_match(
        &mut self,
        bytes: &WindowBytes,
        chains: &HashChains,
        at: usize,
        head: usize,
        search: Search,
    ) -> Option<Match> {
        if search.nice < GRAM {
            return chains.longest_match(bytes, at, head, search);
        }
        let lowest = chains.lowest(at, head);
        let mut found: Option<Match> = None;
        // candidates are below
        let mut nearest = at;
        // the last four bytes that a better match must have
        let mut tail_at = search.longer_than.max(MIN_LENGTH) - MIN_LENGTH;
        let mut tail = bytes.word(at + tail_at);
        // the chain of a gram with this offset in the match: that of the tail, or an earlier one
        let mut offset = tail_at;
        self.insert_up_to(bytes, at + offset);
        let mut link = self.head(tail);
        let mut steps = 0;
        while link >= lowest + offset {
            let candidate = link - offset;
            link = self.link(link);
            if candidate >= nearest {
                continue;
            }
            steps += 1;
            if bytes.word(candidate + tail_at) == tail {
                let length = bytes.common_length(candidate, at);
                if length >= tail_at + GRAM {
                    if chains.steps(at, candidate) > search.chain {
                        break;
                    }
                    found = Some(Match {
                        length,
                        position: candidate,
                    });
                    if length >= search.nice {
                        break;
                    }
                    nearest = candidate;
                    tail_at = length - MIN_LENGTH;
                    tail = bytes.word(at + tail_at);
                    self.insert_up_to(bytes, at + tail_at);
                    // the chain of the new tail is shorter, unless it begins with candidates that
                    // were already seen
                    let head = self.head(tail);
                    if head < candidate + tail_at {
                        link = head;
                        offset = tail_at;
                    }
                    continue;
                }
            }
            if steps >= search.chain {
                let same_chain = bytes.word(candidate) == bytes.word(at);
                if same_chain && chains.steps(at, candidate) >= search.chain {
                    break;
                }
                // this chain is no shorter than the original's
                let longer_than = found.map_or(search.longer_than, |found| found.length);
                let rest = Search {
                    longer_than,
                    ..search
                };
                return chains.longest_match(bytes, at, head, rest).or(found);
            }
        }
        if found.is_none() && search.longer_than < MIN_LENGTH {
            return chains.nearest_shortest_match(bytes, at, head, search.chain);
        }
        found
    }
}
