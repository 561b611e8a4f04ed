//! The dictionary of the search without lazy matching: positions, chained by a hash of three bytes.
//!
//! The chain of a position leads to earlier positions with the same hash, whether or not their
//! bytes are equal. Positions inside of long matches are missing.

use super::window::{Match, Search, ThreeByteHash, WindowBytes, lowest_match};
use crate::encoder::bytes::boxed_array;
use crate::encoder::symbols::MIN_LENGTH;

const HEADS: usize = 1 << 16;
const LINKS: usize = 1 << 15;

#[derive(Debug)]
pub(super) struct HashChains {
    /// The latest position of each hash.
    heads: Box<[u16; HEADS]>,
    /// The previous position on the chain of each position, indexed by the position modulo the
    /// window's size.
    links: Box<[u16; LINKS]>,
    window_size: usize,
    hash: ThreeByteHash,
}

impl HashChains {
    pub(super) fn new(window_size: usize, hash: ThreeByteHash) -> Self {
        Self {
            heads: boxed_array(0),
            links: boxed_array(0),
            window_size,
            hash,
        }
    }

    pub(super) fn forget(&mut self) {
        self.heads[..self.hash.slots()].fill(0);
    }

    /// Subtracts the window's size from all positions. Lower positions leave their chains.
    pub(super) fn slide(&mut self) {
        let size = self.window_size as u16;
        for head in &mut self.heads[..self.hash.slots()] {
            *head = head.saturating_sub(size);
        }
        for link in &mut self.links[..self.window_size] {
            *link = link.saturating_sub(size);
        }
    }

    /// Puts the position at the head of its chain. Returns the previous head, 0 if there is none.
    #[inline]
    pub(super) fn insert(&mut self, bytes: &WindowBytes, at: usize) -> usize {
        let slot = self.hash.slot(bytes.word(at));
        let head = &mut self.heads[slot & (HEADS - 1)];
        let previous = *head;
        *head = at as u16;
        self.links[at & (self.window_size - 1) & (LINKS - 1)] = previous;
        usize::from(previous)
    }

    /// Finds the longest match of the bytes at `at`, on the chain that begins at `head`. Among
    /// equally long matches, returns the nearest. Returns `None` if no match is longer than
    /// `search.longer_than`.
    #[inline]
    pub(super) fn longest_match(
        &self,
        bytes: &WindowBytes,
        at: usize,
        head: usize,
        search: Search,
    ) -> Option<Match> {
        let mask = (self.window_size - 1) & (LINKS - 1);
        follow_chain(bytes, at, head, self.window_size, search, |position| {
            usize::from(self.links[position & mask])
        })
    }
}

/// Finds the longest match of the bytes at `at`, on the chain that begins at `head`. `link` returns
/// the previous position on the chain.
#[inline]
pub(super) fn follow_chain(
    bytes: &WindowBytes,
    at: usize,
    head: usize,
    window_size: usize,
    search: Search,
    link: impl Fn(usize) -> usize,
) -> Option<Match> {
    let lowest = lowest_match(at, head, window_size);
    let mut found = None;
    let mut chain = search.chain;
    let mut best = search.longer_than;
    // A longer match also agrees in the byte after the best length. The four bytes that end with
    // that byte are compared. The shortest match has only three bytes, so the fourth is masked.
    let mut tail_at = best.max(MIN_LENGTH) - MIN_LENGTH;
    let mut tail_mask = if best < MIN_LENGTH {
        0xff_ffff
    } else {
        u32::MAX
    };
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
                tail_at = best - MIN_LENGTH;
                tail_mask = u32::MAX;
                tail = bytes.word(at + tail_at);
            }
        }
        candidate = link(candidate);
        chain -= 1;
        if candidate < lowest || chain == 0 {
            break;
        }
    }
    found
}
