//! The window of zlib and GNU gzip, and the two dictionaries of its positions.

use crate::encoder::chains::{boxed_array, first_bytes_mask, load32, load64};
use crate::symbols::{MAX_LENGTH, MIN_LENGTH};

// The sliding window of zlib and GNU gzip.
//
// The window holds twice as many bytes as its size says. Input is appended until the window is
// full; when nearly all of it is processed, the upper half moves to the lower one. Positions are
// indices of the window, and position 0 cannot be matched, because 0 ends a chain. So the matches
// that exist depend on when the window moves. Here it moves at the same points as in a zlib that
// gets all input at once.

/// The window's greatest extent: twice 32 KiB.
const EXTENT: usize = 1 << 16;

/// Comparisons may read this far past the window's end.
const MARGIN: usize = 512 + 8;

/// The number of bytes that must be ahead while more input may follow: the longest match and a hash
/// after it.
pub(super) const WANTED_AHEAD: usize = MAX_LENGTH + MIN_LENGTH + 1;

/// With lazy matching, matches of three bytes that are farther than this are dropped.
pub(super) const FARTHEST_OF_SHORTEST: usize = 4096;

/// The effort with which a search follows a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    /// A match must be longer than this, which is at least 2.
    pub(super) longer_than: usize,
    /// The maximum number of positions of the chain that are considered.
    pub(super) chain: u32,
    /// The search ends at a match of this length.
    pub(super) nice: usize,
}

/// A match: a length and a position in the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) length: usize,
    pub(super) position: usize,
}

/// The window's bytes, and after them the bytes that a comparison may read past the window's end.
#[derive(Debug)]
pub(crate) struct WindowBytes(Box<[u8; EXTENT + MARGIN]>);

impl WindowBytes {
    /// Four bytes, the first in the lowest bits. `at` is a position plus at most 258.
    #[inline]
    fn word(&self, at: usize) -> u32 {
        load32(self.0.as_slice(), at)
    }

    /// Eight bytes, the first in the lowest bits. `at` is a position plus at most 258.
    #[inline]
    fn double_word(&self, at: usize) -> u64 {
        load64(self.0.as_slice(), at)
    }

    /// The number of equal bytes at two positions, at most 258.
    #[inline]
    fn common_length(&self, first: usize, second: usize) -> usize {
        let mut length = 0;
        while length < MAX_LENGTH {
            let difference = self.double_word(first + length) ^ self.double_word(second + length);
            if difference != 0 {
                length += (difference.trailing_zeros() / 8) as usize;
                return length.min(MAX_LENGTH);
            }
            length += 8;
        }
        MAX_LENGTH
    }
}

#[derive(Debug)]
pub(super) struct Window {
    pub(super) bytes: WindowBytes,
    /// The size of the lower half, 512 bytes to 32 KiB.
    pub(super) size: usize,
}

impl Window {
    /// `window_bits` is from 9 to 15.
    pub(super) fn new(window_bits: u8) -> Self {
        Self {
            bytes: WindowBytes(boxed_array(0)),
            size: 1 << window_bits.clamp(9, 15),
        }
    }

    /// Copies as much of `input` to `at` as fits into the window. Returns the number of bytes.
    pub(super) fn append(&mut self, at: usize, input: &[u8]) -> usize {
        let count = input.len().min(2 * self.size - at);
        self.bytes.0[at..at + count].copy_from_slice(&input[..count]);
        count
    }

    /// The bytes from `from` up to `to`.
    pub(super) fn slice(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes.0[from..to]
    }

    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.0[at]
    }

    /// Sets `count` bytes at `at` to zero.
    pub(super) fn clear(&mut self, at: usize, count: usize) {
        self.bytes.0[at..at + count].fill(0);
    }

    /// Moves the upper half to the lower one.
    pub(super) fn slide(&mut self) {
        self.bytes.0.copy_within(self.size..2 * self.size, 0);
    }

    /// The number of bytes from `at` on that equal the byte before `at`, at most 258.
    pub(super) fn run_length(&self, at: usize) -> usize {
        match at.checked_sub(1) {
            Some(before) => self.bytes.common_length(before, at),
            None => 0,
        }
    }
}

/// The hash of zlib and GNU gzip. Each byte is shifted left so far that it leaves the hash after
/// three steps, and the three are combined by exclusive or.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreeByteHash {
    shift: u32,
    mask: u32,
}

impl ThreeByteHash {
    /// `bits` is from 8 to 16.
    pub(super) fn new(bits: u8) -> Self {
        let bits = bits.clamp(8, 16);
        Self {
            shift: u32::from(bits).div_ceil(3),
            mask: (1 << bits) - 1,
        }
    }

    /// The number of values of the hash.
    fn slots(self) -> usize {
        self.mask as usize + 1
    }

    /// The hash of the three lower bytes.
    #[inline]
    pub(super) fn slot(self, word: u32) -> usize {
        // the higher bytes of the first term are shifted out of the mask
        let hash = (word << (2 * self.shift))
            ^ (((word >> 8) & 0xff) << self.shift)
            ^ ((word >> 16) & 0xff);
        (hash & self.mask) as usize
    }
}

/// The lowest position that may be matched from `at`. Only `head`, the first of the chain, may be
/// at the greatest distance.
#[inline]
fn lowest_match(at: usize, head: usize, window_size: usize) -> usize {
    let limit = at.saturating_sub(window_size - WANTED_AHEAD);
    (limit + usize::from(head != limit)).max(1)
}

// The dictionary for the search with lazy matching. It contains all positions.
//
// Every position enters the dictionary, whatever the search decides, so positions are entered in
// advance: each has a link to the latest earlier position with the same hash of three bytes. zlib
// follows the same chains.
//
// Only a few positions on a long chain improve the match that is already known. A better match
// agrees in all bytes up to the one after the best length. The last four of these bytes are a
// *gram*, which is rare. So positions also have a link to the latest earlier position with the
// same hash of four bytes, and the search follows the links of that gram. If a gram never occurred
// before, the search ends at once.
//
// zlib considers a limited number of positions of its chain. Each position has a rank on that
// chain, so the difference of two ranks shows whether zlib would have reached a candidate.
// Candidates within the limit are compared in the same order, nearest first, so the result is the
// same.

/// The number of heads: one for each hash.
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

// The dictionary of the search without lazy matching: positions, chained by a hash of three bytes.
//
// The chain of a position leads to earlier positions with the same hash, whether or not their
// bytes are equal. Positions inside of long matches are missing.

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
fn follow_chain(
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
