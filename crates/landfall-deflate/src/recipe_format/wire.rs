//! Numbers and byte strings in a recipe.

use crate::error::DeflateError;

/// The error of a recipe that ends too early.
const ENDS_EARLY: DeflateError = DeflateError::Recipe("it ends early");

/// Appends a number: seven bits a byte, the lowest first, with the high bit set in all but the last
/// byte.
pub(crate) fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a byte string after its length.
pub(crate) fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    put_number(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

/// A position in the bytes of a recipe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecipeCursor {
    /// The offset of the next byte.
    pub(crate) at: usize,
    /// The offset after the last byte.
    pub(crate) end: usize,
}

impl RecipeCursor {
    /// Whether all bytes were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    pub(crate) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        count: usize,
    ) -> Result<&'a [u8], DeflateError> {
        let taken = bytes[self.at..self.end].get(..count).ok_or(ENDS_EARLY)?;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self, bytes: &[u8]) -> Result<u8, DeflateError> {
        Ok(self.take(bytes, 1)?[0])
    }

    /// Reads a number, which must have its shortest form.
    pub(crate) fn number(&mut self, bytes: &[u8]) -> Result<u64, DeflateError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(bytes)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DeflateError::Recipe("a number is invalid"))
    }

    /// Reads the length of a byte string of at most `limit` bytes, and checks that all of them
    /// follow.
    pub(crate) fn length(&mut self, bytes: &[u8], limit: usize) -> Result<usize, DeflateError> {
        let length = self.number(bytes)?;
        if length > (self.end - self.at) as u64 {
            return Err(ENDS_EARLY);
        }
        if length > limit as u64 {
            return Err(DeflateError::Recipe("a field is too long"));
        }
        Ok(length as usize)
    }

    /// Reads a byte string of at most `limit` bytes.
    pub(crate) fn bytes<'a>(
        &mut self,
        bytes: &'a [u8],
        limit: usize,
    ) -> Result<&'a [u8], DeflateError> {
        let length = self.length(bytes, limit)?;
        self.take(bytes, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1 << 62, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(number, &mut bytes);
            let mut cursor = RecipeCursor {
                at: 0,
                end: bytes.len(),
            };
            assert_eq!(cursor.number(&bytes).unwrap(), number);
            assert!(cursor.is_at_end());
        }
        let too_large = [0xff; 9].into_iter().chain([2]).collect::<Vec<_>>();
        for bytes in [&[0x80_u8, 0][..], &[0x80], &[0xff; 10], &too_large] {
            let mut cursor = RecipeCursor {
                at: 0,
                end: bytes.len(),
            };
            assert!(cursor.number(bytes).is_err(), "{bytes:?}");
        }
    }
}
