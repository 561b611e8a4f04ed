//! Hash chains over a window of 64 KiB, which the encoders of Go and `klauspost/compress` share.

use crate::symbols::{MAX_DISTANCE, MAX_LENGTH};

// Hash chains for Go's levels 2 and 3, which do not insert all positions.

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
fn lower_links(links: u64) -> u64 {
    const { assert!(MAX_DISTANCE == 1 << 15) };
    // an entry whose highest bit is set loses this bit; every other entry becomes 0
    let highest = links & 0x8000_8000_8000_8000;
    links & (highest - (highest >> 15))
}

// The search for the best match in hash chains of four bytes.
//
// A match can be longer than the best one so far only if it also agrees in the four bytes that end
// one byte after the best match. This *gram* is often rarer than the gram at the beginning of the
// match. If all positions are on chains, the search follows the chain of the rarer gram. A
// position on this chain minus the offset of the gram in the match is a candidate.
//
// The original encoders try a limited number of positions in the chain of the first gram. The
// number of steps to a candidate on that chain shows whether they would try it. Within this limit,
// candidates are tried in the same order, nearest first, and the result is the same.

/// The parameters of a search at a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainSearch {
    pub(crate) position: usize,
    /// The number of bytes from `position` to the end.
    pub(crate) lookahead: usize,
    /// A match must be longer than this, which is at least 3.
    pub(crate) longer_than: usize,
    /// The maximum number of positions of a chain that are tried.
    pub(crate) tries: usize,
    /// A match of this length ends the search.
    pub(crate) nice: usize,
}

/// The match that was found. If there is none, the distance is 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainMatch {
    pub(crate) length: usize,
    pub(crate) distance: usize,
}

impl ChainMatch {
    /// The match, or `other` if there is none.
    #[inline]
    pub(crate) fn or(self, other: ChainMatch) -> ChainMatch {
        if self.distance == 0 { other } else { self }
    }
}

/// The first of the best matches: a longer match is better if `is_better` returns true for it. The
/// distance is 0 if there is no match.
///
/// `links` returns the four positions before a position on its chain, each plus 1, the nearest in
/// the lowest bits. `steps` returns the number of steps from a position to an earlier one on its
/// chain. If grams are followed, all positions must be on chains.
#[inline]
pub(crate) fn best_match<const FOLLOWS_GRAMS: bool>(
    window: &ChainWindow,
    search: ChainSearch,
    links: impl Fn(usize) -> u64,
    steps: impl Fn(usize, usize) -> usize,
    mut is_better: impl FnMut(ChainMatch) -> bool,
) -> ChainMatch {
    let ChainSearch {
        position, tries, ..
    } = search;
    let limit = search.lookahead.min(MAX_LENGTH);
    let nice = search.nice.min(limit);
    let first = position.saturating_sub(MAX_DISTANCE);
    let mut best = ChainMatch {
        length: search.longer_than,
        distance: 0,
    };
    // A longer match also agrees in the four bytes that end one byte after the best match.
    // Eight bits suffice for their offset, and make the checks of bounds below unnecessary.
    let mut offset = (best.length - 3) as u8;
    let mut last_bytes = load32(window, position + usize::from(offset));
    // Positions on the chain of a gram nearly always agree in the gram, but seldom in the bytes
    // before it. So the beginning is compared first: up to eight bytes that a longer match shares.
    let beginning = load64(window, position);
    let mut mask = first_bytes_mask(best.length + 1);
    // the offset of the gram whose chain is followed
    let mut via = if FOLLOWS_GRAMS { offset } else { 0 };
    let mut entries = links(position + usize::from(via));
    let mut tried = 0;
    'search: loop {
        if tried >= tries {
            if via == 0 {
                break;
            }
            // The chain of this gram is long, perhaps longer than the chain of the first gram. From
            // here on, the chain of the first gram is followed. Candidates that are tried again do
            // not replace the best match.
            via = 0;
            tried = 0;
            entries = links(position);
        }
        tried += LINKS;
        let mut linked = 0;
        for _ in 0..LINKS {
            let entry = usize::from(entries as u16);
            entries >>= 16;
            // no further position, or one that is out of reach
            if entry <= first + usize::from(via) {
                break 'search;
            }
            linked = entry - 1;
            let candidate = (linked - usize::from(via)) % WINDOW;
            if FOLLOWS_GRAMS && (load64(window, candidate) ^ beginning) & mask != 0 {
                continue;
            }
            if load32(window, candidate + usize::from(offset)) != last_bytes {
                continue;
            }
            let found = ChainMatch {
                length: match_length(window, candidate, position, limit),
                distance: position - candidate,
            };
            if found.length <= best.length || !is_better(found) {
                continue;
            }
            if FOLLOWS_GRAMS && steps(position, candidate) > tries {
                break 'search;
            }
            best = found;
            if found.length >= nice {
                break 'search;
            }
            offset = (found.length - 3) as u8;
            last_bytes = load32(window, position + usize::from(offset));
            mask = first_bytes_mask(found.length + 1);
            if FOLLOWS_GRAMS {
                let newer = links(position + usize::from(offset));
                if usize::from(newer as u16) <= candidate + usize::from(offset) {
                    // the new gram's chain begins with a candidate farther away than this one
                    via = offset;
                    entries = newer;
                    continue 'search;
                }
            }
        }
        entries = links(linked);
    }
    best
}

// Hash chains that are linked in advance, for searches that insert every position: Go's levels 4
// to 9 and levels 7 to 9 of `klauspost/compress`.
//
// Every position is on a chain, whatever the search decides. Therefore positions can be linked as
// soon as their bytes have arrived, and the search can follow the chains of
// grams. Each position has a rank on its chain, so that the difference of
// the ranks of two positions is the number of steps between them.

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

// Loads of several bytes, the comparison of a buffer at two indices, and large tables.

/// The four bytes at `at`, the first of them the least significant.
#[inline]
pub(crate) fn load32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// The eight bytes at `at`, the first of them the least significant.
#[inline]
pub(crate) fn load64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// A mask for a word from [`load64`] that keeps its first `count` bytes, at least one and at most
/// eight.
#[inline]
pub(crate) fn first_bytes_mask(count: usize) -> u64 {
    u64::MAX >> (64 - 8 * count.clamp(1, 8))
}

/// The number of equal bytes at `a` and `b`, up to `limit`. At least `limit` bytes follow both
/// indices.
#[inline]
pub(crate) fn match_length(bytes: &[u8], a: usize, b: usize, limit: usize) -> usize {
    common_length(&bytes[a..a + limit], &bytes[b..b + limit])
}

/// The number of equal bytes at the beginning of two slices of the same length.
#[inline]
pub(crate) fn common_length(a: &[u8], b: &[u8]) -> usize {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    let mut length = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length
        + a_rest
            .iter()
            .zip(b_rest)
            .take_while(|(a, b)| a == b)
            .count()
}

/// An array of equal elements that is never on the stack.
pub(crate) fn boxed_array<T: Copy, const N: usize>(element: T) -> Box<[T; N]> {
    let elements = vec![element; N].into_boxed_slice();
    elements
        .try_into()
        .unwrap_or_else(|_| unreachable!("the vector has N elements"))
}
