//! Loads of several bytes, the comparison of a buffer at two indices, and large tables.

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
    let a = &bytes[a..a + limit];
    let b = &bytes[b..b + limit];
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
