//! The sliding window of zlib and GNU gzip.
//!
//! The window holds twice as many bytes as its size says. Input is appended until the window is
//! full; when nearly all of it is processed, the upper half moves to the lower one. Positions are
//! indices of the window, and position 0 cannot be matched, because 0 ends a chain. So the matches
//! that exist depend on when the window moves. Here it moves at the same points as in a zlib that
//! gets all input at once.

use crate::encoder::bytes::boxed_array;
use crate::encoder::symbols::{MAX_LENGTH, MIN_LENGTH};

/// The window's greatest extent: twice 32 KiB.
pub(super) const EXTENT: usize = 1 << 16;
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
pub(super) struct WindowBytes(Box<[u8; EXTENT + MARGIN]>);

impl WindowBytes {
    /// Four bytes, the first in the lowest bits. `at` is a position plus at most 258.
    #[inline]
    pub(super) fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(word)
    }

    /// Eight bytes, the first in the lowest bits. `at` is a position plus at most 258.
    #[inline]
    pub(super) fn double_word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(word)
    }

    /// The number of equal bytes at two positions, at most 258.
    #[inline]
    pub(super) fn common_length(&self, first: usize, second: usize) -> usize {
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
    bytes: WindowBytes,
    /// 512 bytes to 32 KiB.
    size: usize,
}

impl Window {
    /// `window_bits` is from 9 to 15.
    pub(super) fn new(window_bits: u8) -> Self {
        Self {
            bytes: WindowBytes(boxed_array(0)),
            size: 1 << window_bits.clamp(9, 15),
        }
    }

    /// The size of the lower half, in bytes.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    #[inline]
    pub(super) fn bytes(&self) -> &WindowBytes {
        &self.bytes
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
    pub(super) fn slots(self) -> usize {
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
pub(super) fn lowest_match(at: usize, head: usize, window_size: usize) -> usize {
    let limit = at.saturating_sub(window_size - WANTED_AHEAD);
    (limit + usize::from(head != limit)).max(1)
}
