//! Applies a delta to its base.

use super::varint::take_size;

/// The sizes in the head of a delta: of its base and of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeltaSizes {
    /// The size of the base in bytes.
    pub(crate) base: u64,
    /// The size of the result in bytes.
    pub(crate) result: u64,
}

/// The sizes in the head of a delta. `None` if the head is cut off.
pub(crate) fn sizes(delta: &[u8]) -> Option<DeltaSizes> {
    split(delta).map(|(sizes, _)| sizes)
}

/// Reads the sizes in the head of `delta`, and the instructions after them.
fn split(mut delta: &[u8]) -> Option<(DeltaSizes, &[u8])> {
    let base = take_size(&mut delta)?;
    let result = take_size(&mut delta)?;
    Some((DeltaSizes { base, result }, delta))
}

/// Applies `delta` to `base`. Reserves memory for the whole result, so the caller must have limited
/// its size. `None` if the delta is damaged or is not for this base.
pub(crate) fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let (sizes, mut rest) = split(delta)?;
    if sizes.base != base.len() as u64 {
        return None;
    }
    let most = sizes.result as usize;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
