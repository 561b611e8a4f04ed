//! Deltas between two objects, as packs contain them (gitformat-pack, "Deltified representation").

// Sizes in deltas: seven bits in each byte, the lowest bits first.

/// Reads a size from the front of `bytes`. `None` if it is cut off or too large.
fn take_size(bytes: &mut &[u8]) -> Option<u64> {
    let mut size = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        size |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
    None
}

/// Appends `size` to `out`.
fn push_size(out: &mut Vec<u8>, mut size: u64) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

/// The size in bytes of the result, from the head of a delta. `None` if the head is cut off.
pub(crate) fn result_size(mut delta: &[u8]) -> Option<u64> {
    take_size(&mut delta)?;
    take_size(&mut delta)
}

/// Applies `delta` to `base`. Reserves memory for the whole result, so the caller must have limited
/// its size. `None` if the delta is damaged or is not for this base.
pub(crate) fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    if take_size(&mut rest)? != base.len() as u64 {
        return None;
    }
    let most = take_size(&mut rest)? as usize;
    let mut result = Vec::with_capacity(most);
    while let Some((&code, after)) = rest.split_first() {
        rest = after;
        let piece = match code {
            // reserved
            0 => return None,
            1..=0x7f => {
                let (piece, after) = rest.split_at_checked(usize::from(code))?;
                rest = after;
                piece
            }
            _ => {
                let offset = argument(&mut rest, code & 0xf)?;
                let size = match argument(&mut rest, code >> 4 & 7)? {
                    0 => 0x10000,
                    size => size,
                };
                base.get(offset..offset.checked_add(size)?)?
            }
        };
        if piece.len() > most - result.len() {
            return None;
        }
        result.extend_from_slice(piece);
    }
    (result.len() == most).then_some(result)
}

/// Reads a number of a copy instruction, the lowest byte first. The delta contains byte n only if
/// bit n of `present` is set; otherwise the byte is 0.
fn argument(rest: &mut &[u8], present: u8) -> Option<usize> {
    let mut value = 0;
    for at in (0..4).filter(|at| present >> at & 1 == 1) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= usize::from(byte) << (8 * at);
    }
    Some(value)
}

// Creates a delta between two objects.

/// The length of the blocks of the base that are indexed, in bytes.
const BLOCK: usize = 16;
/// The maximum number of bytes that one copy instruction may copy.
const MAX_COPIED: usize = 0xff_ffff;
/// The maximum number of bytes that one insert instruction may insert.
const MAX_INSERTED: usize = 0x7f;
/// The maximum number of blocks of one chain that are compared at one position of the target.
const MAX_CANDIDATES: usize = 16;

/// Creates a delta from `base` to `target`. `None` if it would be longer than `most` bytes.
pub(crate) fn create(base: &[u8], target: &[u8], most: usize) -> Option<Vec<u8>> {
    let index = DeltaBlockIndex::new(base);
    let mut delta = DeltaWriter::new(base, target);
    let mut at = 0;
    while at < target.len() {
        match index.longest_match(target, at) {
            Some((offset, length)) => {
                // bytes before the block may be equal as well
                let back = common_suffix(&base[..offset], &target[delta.written..at]);
                delta.insert(at - back);
                delta.copy(offset - back, length + back);
                at += length;
            }
            None => at += 1,
        }
        if delta.out.len() + (at - delta.written) > most {
            return None;
        }
    }
    delta.insert(target.len());
    (delta.out.len() <= most).then_some(delta.out)
}

/// Writes the instructions of a delta.
struct DeltaWriter<'a> {
    target: &'a [u8],
    out: Vec<u8>,
    /// The number of bytes of the target that the instructions produce.
    written: usize,
}

impl<'a> DeltaWriter<'a> {
    fn new(base: &[u8], target: &'a [u8]) -> DeltaWriter<'a> {
        let mut out = Vec::new();
        push_size(&mut out, base.len() as u64);
        push_size(&mut out, target.len() as u64);
        DeltaWriter {
            target,
            out,
            written: 0,
        }
    }

    /// Inserts the bytes of the target up to `end`.
    fn insert(&mut self, end: usize) {
        for piece in self.target[self.written..end].chunks(MAX_INSERTED) {
            self.out.push(piece.len() as u8);
            self.out.extend_from_slice(piece);
        }
        self.written = end;
    }

    /// Copies `length` bytes of the base from `offset`.
    fn copy(&mut self, mut offset: usize, mut length: usize) {
        self.written += length;
        while length > 0 {
            let size = length.min(MAX_COPIED);
            let code_at = self.out.len();
            self.out.push(0x80);
            self.push_argument(code_at, offset, 0..4);
            // an instruction without a size means 0x10000
            if size != 0x10000 {
                self.push_argument(code_at, size, 4..7);
            }
            offset += size;
            length -= size;
        }
    }

    /// Appends the bytes of `value` that are not 0 and sets their bits in the instruction's code.
    fn push_argument(&mut self, code_at: usize, mut value: usize, bits: std::ops::Range<u8>) {
        for bit in bits {
            if value & 0xff != 0 {
                self.out[code_at] |= 1 << bit;
                self.out.push(value as u8);
            }
            value >>= 8;
        }
    }
}

/// The blocks of a base by their hashes: a table of chains.
struct DeltaBlockIndex<'a> {
    base: &'a [u8],
    /// The first block of each chain, plus 1; 0 if the chain is empty.
    heads: Vec<u32>,
    /// For each block, the next block of the same chain, plus 1; 0 for the last block of a chain.
    nexts: Vec<u32>,
    shift: u32,
}

impl<'a> DeltaBlockIndex<'a> {
    fn new(base: &'a [u8]) -> DeltaBlockIndex<'a> {
        let blocks = base.len() / BLOCK;
        let bits = blocks.next_power_of_two().trailing_zeros().max(1);
        let mut index = DeltaBlockIndex {
            base,
            heads: vec![0; 1 << bits],
            nexts: vec![0; blocks],
            shift: u64::BITS - bits,
        };
        // from the end, so that chains begin with the first blocks of the base
        for block in (0..blocks).rev() {
            let slot = index.slot(&base[block * BLOCK..]);
            index.nexts[block] = std::mem::replace(&mut index.heads[slot], block as u32 + 1);
        }
        index
    }

    /// The slot of the table for the block at the front of `bytes`.
    fn slot(&self, bytes: &[u8]) -> usize {
        let word = |at: usize| {
            let word = bytes[at..].first_chunk();
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        // an odd multiplier of about 2^64 / 1.618 spreads similar blocks
        let mixed = (word(0) ^ word(8).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The longest run of the base that begins with an indexed block and equals the bytes of
    /// `target` at `at`. If several runs have this length, returns the first. Compares at most
    /// [`MAX_CANDIDATES`] blocks. Returns the offset in the base and the length of the run.
    fn longest_match(&self, target: &[u8], at: usize) -> Option<(usize, usize)> {
        let rest = &target[at..];
        if rest.len() < BLOCK || self.base.len() < BLOCK {
            return None;
        }
        let mut best: Option<(usize, usize)> = None;
        let mut next = self.heads[self.slot(rest)];
        for _ in 0..MAX_CANDIDATES {
            let Some(block) = next.checked_sub(1) else {
                break;
            };
            let offset = block as usize * BLOCK;
            let length = common_prefix(&self.base[offset..], rest);
            if length >= BLOCK && best.is_none_or(|(_, best)| length > best) {
                best = Some((offset, length));
            }
            next = self.nexts[block as usize];
        }
        best
    }
}

fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instructions_copy_from_the_base_and_insert() {
        // base of 5 bytes, result of 7: copy 3 from 1, insert "xy", copy 2 from 0
        let delta = [5, 7, 0x91, 1, 3, 2, b'x', b'y', 0x90, 2];
        assert_eq!(apply(b"abcde", &delta).unwrap(), b"bcdxyab");
    }

    #[test]
    fn damaged_deltas_are_refused() {
        for delta in [
            &[5, 7][..],
            &[4, 1, 1, b'x'],
            &[5, 1, 0],
            &[5, 9, 0x91, 1, 9],
            &[5, 2, 3, b'a', b'b', b'c'],
            &[5, 3, 3, b'a'],
            &[0xff; 12],
            &[5, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(apply(b"abcde", delta), None, "{delta:?}");
        }
    }

    proptest! {
        #[test]
        fn a_delta_gives_the_target(
            base in prop::collection::vec(0_u8..3, 0..400),
            target in prop::collection::vec(0_u8..3, 0..400),
        ) {
            let delta = create(&base, &target, usize::MAX).unwrap();
            prop_assert_eq!(apply(&base, &delta).unwrap(), target);
        }
    }

    #[test]
    fn a_small_change_makes_a_small_delta() {
        let base: Vec<u8> = (0..200_000_u32)
            .flat_map(|n| n.wrapping_mul(n).to_le_bytes())
            .collect();
        let mut target = base.clone();
        target.splice(70_000..70_001, *b"hello");
        let delta = create(&base, &target, usize::MAX).unwrap();
        assert!(delta.len() < 64, "{}", delta.len());
        assert_eq!(apply(&base, &delta).unwrap(), target);
        assert_eq!(create(&base, &target, 8), None);
        assert_eq!(create(&[], &base, 1000), None);
    }
}
