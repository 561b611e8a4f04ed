//! Sizes in deltas: seven bits in each byte, the lowest bits first.

/// Reads a size from the front of `bytes`. `None` if it is cut off or too large.
pub(super) fn take_size(bytes: &mut &[u8]) -> Option<u64> {
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
pub(super) fn push_size(out: &mut Vec<u8>, mut size: u64) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}
