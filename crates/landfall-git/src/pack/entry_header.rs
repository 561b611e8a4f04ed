//! The header of a pack entry: the type, the size, and the base of a delta (gitformat-pack).

use crate::object::{GitObjectKind, ObjectId};
use std::io::{self, Read};

/// The header of a pack entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHeader {
    pub(super) form: EntryForm,
    /// The size of the content, or of the delta, in bytes.
    pub(super) size: u64,
}

/// The form in which an entry stores its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryForm {
    /// The content itself.
    Whole(GitObjectKind),
    /// A delta to the entry that begins this many bytes before this one.
    DeltaToOffset(u64),
    /// A delta to the object with this id.
    DeltaToId(ObjectId),
}

const DELTA_TO_OFFSET: u8 = 6;
const DELTA_TO_ID: u8 = 7;

impl EntryHeader {
    /// Reads a header. If the header is not valid, the error has the kind `InvalidData`.
    pub(super) fn read(from: &mut impl Read) -> io::Result<EntryHeader> {
        let first = byte(from)?;
        let mut size = u64::from(first & 0xf);
        let mut last = first;
        let mut shift = 4;
        while last & 0x80 != 0 {
            last = byte(from)?;
            // 4 + 8 * 7 bits are enough for the size of any object
            if shift > 53 {
                return Err(invalid("the size of an entry is too large"));
            }
            size |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        let form = match first >> 4 & 7 {
            1 => EntryForm::Whole(GitObjectKind::Commit),
            2 => EntryForm::Whole(GitObjectKind::Tree),
            3 => EntryForm::Whole(GitObjectKind::Blob),
            4 => EntryForm::Whole(GitObjectKind::Tag),
            DELTA_TO_OFFSET => EntryForm::DeltaToOffset(read_distance(from)?),
            DELTA_TO_ID => {
                let mut id = [0; ObjectId::BYTES];
                from.read_exact(&mut id)?;
                let id = ObjectId::from_prefix(&id).ok_or(io::ErrorKind::InvalidData)?;
                EntryForm::DeltaToId(id)
            }
            _ => return Err(invalid("an entry has an unknown type")),
        };
        Ok(EntryHeader { form, size })
    }

    /// Appends the header to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let number = match self.form {
            EntryForm::Whole(kind) => kind.number(),
            EntryForm::DeltaToOffset(_) => DELTA_TO_OFFSET,
            EntryForm::DeltaToId(_) => DELTA_TO_ID,
        };
        let mut byte = number << 4 | (self.size & 0xf) as u8;
        let mut rest = self.size >> 4;
        while rest > 0 {
            out.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        out.push(byte);
        match self.form {
            EntryForm::Whole(_) => {}
            EntryForm::DeltaToOffset(distance) => push_distance(out, distance),
            EntryForm::DeltaToId(id) => out.extend_from_slice(id.as_bytes()),
        }
    }
}

/// Reads the distance to a base: seven bits in each byte, the highest bits first. Each further byte
/// adds 1 to the value of the bytes before it, so that no distance has two encodings.
fn read_distance(from: &mut impl Read) -> io::Result<u64> {
    let mut last = byte(from)?;
    let mut distance = u64::from(last & 0x7f);
    while last & 0x80 != 0 {
        last = byte(from)?;
        if distance >> 55 != 0 {
            return Err(invalid("the distance to the base of a delta is too large"));
        }
        distance = (distance + 1) << 7 | u64::from(last & 0x7f);
    }
    Ok(distance)
}

fn push_distance(out: &mut Vec<u8>, mut distance: u64) {
    let mut bytes = vec![(distance & 0x7f) as u8];
    distance >>= 7;
    while distance > 0 {
        distance -= 1;
        bytes.push(0x80 | (distance & 0x7f) as u8);
        distance >>= 7;
    }
    out.extend(bytes.iter().rev());
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_is_written(size in 0_u64..1 << 50, distance in 0_u64..1 << 50) {
            for form in [
                EntryForm::Whole(GitObjectKind::Tag),
                EntryForm::DeltaToOffset(distance),
                EntryForm::DeltaToId(ObjectId::ZERO),
            ] {
                let header = EntryHeader { form, size };
                let mut bytes = Vec::new();
                header.write(&mut bytes);
                prop_assert_eq!(EntryHeader::read(&mut &bytes[..]).unwrap(), header);
            }
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = EntryHeader::read(&mut &bytes[..]);
        }
    }
}
