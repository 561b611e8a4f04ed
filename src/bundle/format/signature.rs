//! The bytes of the signature: an entry of its own after the contents index, over that index. So the bundle digest
//! is the same with and without it.

use super::header;
use super::names::SIGNATURE;

/// The contents of the frames of a signature's entry: tar header, text, padding.
pub(crate) fn pieces(text: &[u8]) -> [Vec<u8>; 3] {
    let size = text.len() as u64;
    [header::encode(SIGNATURE, size), text.into(), vec![0; header::padding(size)]]
}

/// How many bytes each of these frames holds, for a text of `size` bytes.
pub(crate) fn piece_lens(size: u64) -> [u64; 3] {
    [header::BLOCK as u64, size, header::padding(size) as u64]
}
