//! The recipe: everything about a compressed stream that its plain bytes do not determine.
//!
//! Its encoding is frozen; `docs/reference/recipes.md` specifies it byte by byte.

mod member;

use self::member::MemberTotals;
use crate::DeflateError;
use crate::framing::{LONGEST_TRAILING, StreamFormat, TrailingBytes};
use std::ops::Range;

pub(crate) use self::member::{FlushList, FlushRun, MemberReader, RebuildMethod, StreamMember};

/// The version of the encoding.
const VERSION: u8 = 1;

/// The maximum number of plain bytes for each compressed byte: a match of 258 bytes in two bits.
const LARGEST_EXPANSION: u64 = 1032;

/// Everything about a compressed stream that its plain bytes do not determine.
///
/// A `Recipe` holds its encoded form, which [`Recipe::as_bytes`] returns. The form was checked
/// completely: its sums are correct, and all its offsets are within its bounds. This does not prove
/// that it rebuilds a given stream: compare the digest of the output of
/// [`Rebuilder`](crate::Rebuilder).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    bytes: Vec<u8>,
    format: StreamFormat,
    plain_size: u64,
    compressed_size: u64,
    members: Range<usize>,
    trailing: TrailingBytes,
    deviations: Range<usize>,
}

impl Recipe {
    /// Reads the encoded form of a recipe.
    ///
    /// # Errors
    /// [`DeflateError::Recipe`] if the bytes are not a recipe of a known version, name an unknown
    /// encoder, or are inconsistent.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, DeflateError> {
        let mut cursor = RecipeCursor {
            at: 0,
            end: bytes.len(),
        };
        if cursor.byte(&bytes)? != VERSION {
            return Err(DeflateError::Recipe("its version is not supported"));
        }
        let format = StreamFormat::from_byte(cursor.byte(&bytes)?)
            .ok_or(DeflateError::Recipe("the framing is unknown"))?;
        let plain_size = cursor.number(&bytes)?;
        let compressed_size = cursor.number(&bytes)?;
        if plain_size / LARGEST_EXPANSION > compressed_size {
            return Err(DeflateError::Recipe("it expands too much"));
        }
        let length = cursor.length(&bytes, usize::MAX)?;
        let members = cursor.at..cursor.at + length;
        cursor.at = members.end;
        let trailing = TrailingBytes {
            zeros: cursor.number(&bytes)?,
            bytes: cursor.bytes(&bytes, LONGEST_TRAILING)?.to_vec(),
        };
        let length = cursor.length(&bytes, usize::MAX)?;
        let deviations = cursor.at..cursor.at + length;
        if deviations.end != bytes.len() {
            return Err(DeflateError::Recipe("it is too long"));
        }
        let recipe = Self {
            bytes,
            format,
            plain_size,
            compressed_size,
            members,
            trailing,
            deviations,
        };
        recipe.check_members()?;
        Ok(recipe)
    }

    fn check_members(&self) -> Result<(), DeflateError> {
        let mut totals = MemberTotals::default();
        let mut reader = self.member_reader();
        while let Some((member, repeats)) = reader.next_run(&self.bytes)? {
            totals
                .add(member, repeats, self.format)
                .filter(|()| totals.smallest <= self.compressed_size)
                .ok_or(DeflateError::Recipe("it expands too much"))?;
        }
        let after = self
            .trailing
            .zeros
            .checked_add(self.trailing.bytes.len() as u64);
        let smallest = after.and_then(|after| after.checked_add(totals.smallest));
        if smallest.is_none_or(|smallest| smallest > self.compressed_size) {
            return Err(DeflateError::Recipe("it expands too much"));
        }
        if totals.plain != self.plain_size {
            return Err(DeflateError::Recipe(
                "the sizes of its members do not add up to its size",
            ));
        }
        if totals.members == 0 || self.format != StreamFormat::Gzip && totals.members > 1 {
            return Err(DeflateError::Recipe("the number of members is invalid"));
        }
        Ok(())
    }

    /// The encoded form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded form.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The framing of the stream.
    pub(crate) fn format(&self) -> StreamFormat {
        self.format
    }

    /// The number of plain bytes of all members.
    pub fn plain_size(&self) -> u64 {
        self.plain_size
    }

    /// The number of bytes of the compressed stream.
    pub fn compressed_size(&self) -> u64 {
        self.compressed_size
    }

    /// A reader of the members, for the bytes of this recipe.
    pub(crate) fn member_reader(&self) -> MemberReader {
        let cursor = RecipeCursor {
            at: self.members.start,
            end: self.members.end,
        };
        MemberReader::new(cursor, self.format)
    }

    /// The bytes after the last member.
    pub(crate) fn trailing(&self) -> &TrailingBytes {
        &self.trailing
    }

    /// The coded deviations of all predicted members.
    pub(crate) fn deviations(&self) -> &[u8] {
        &self.bytes[self.deviations.clone()]
    }
}

// Writes a recipe while a stream is read.

/// Collects the members of a recipe.
#[derive(Debug)]
pub(crate) struct RecipeBuilder {
    format: StreamFormat,
    /// The encoded members, without `last`.
    members: Vec<u8>,
    /// The member before `last`.
    before: Option<StreamMember>,
    /// The last member that differs from the member before it, and how many equal ones follow it.
    last: Option<(StreamMember, u64)>,
    plain_size: u64,
}

impl RecipeBuilder {
    /// A builder for a stream with this framing.
    pub(crate) fn new(format: StreamFormat) -> Self {
        Self {
            format,
            members: Vec::new(),
            before: None,
            last: None,
            plain_size: 0,
        }
    }

    /// The approximate size of the recipe so far, without deviations.
    pub(crate) fn size(&self) -> u64 {
        self.members.len() as u64
    }

    pub(crate) fn add(&mut self, member: StreamMember) {
        self.plain_size += member.plain_size;
        match &mut self.last {
            Some((last, repeats)) if *last == member => *repeats += 1,
            _ => {
                self.write_last();
                self.last = Some((member, 0));
            }
        }
    }

    fn write_last(&mut self) {
        if let Some((last, repeats)) = self.last.take() {
            let before = self.before.as_ref();
            last.write(before, repeats, self.format, &mut self.members);
            self.before = Some(last);
        }
    }

    /// The recipe of a stream of `compressed_size` bytes.
    pub(crate) fn finish(
        mut self,
        compressed_size: u64,
        trailing: &TrailingBytes,
        deviations: &[u8],
    ) -> Result<Recipe, DeflateError> {
        self.write_last();
        let mut bytes = vec![VERSION, self.format.to_byte()];
        put_number(self.plain_size, &mut bytes);
        put_number(compressed_size, &mut bytes);
        put_bytes(&self.members, &mut bytes);
        put_number(trailing.zeros, &mut bytes);
        put_bytes(&trailing.bytes, &mut bytes);
        put_bytes(deviations, &mut bytes);
        Recipe::parse(bytes)
    }
}

// Numbers and byte strings in a recipe.

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
