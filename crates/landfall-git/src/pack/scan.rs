//! Reads a pack from its beginning to its end, once, and finds its entries.

use super::database::{PackBytes, SequentialBytes};
use crate::delta;
use crate::error::GitError;
use crate::object::{GitObjectKind, ObjectId};
use flate2::bufread::ZlibDecoder;
use landfall_model::Limits;
use std::io::{self, BufRead, BufReader, Read};

/// An entry of a pack.
pub(super) struct ScannedEntry {
    /// The offset of its header.
    pub(super) offset: u64,
    pub(super) form: EntryForm,
    /// The size of the object in bytes.
    pub(super) size: u64,
    /// The id of the object, unless it is a delta.
    pub(super) id: Option<ObjectId>,
}

/// The size of the head of a pack: magic, version and number of entries.
const HEAD: usize = 12;

/// Finds the entries of a pack, in the order of their offsets. `counted` is called with the size of
/// each object and of each delta before memory is used for it.
///
/// The checksum at the end of the pack is not compared, since each object is hashed.
pub(super) fn scan(
    bytes: &dyn PackBytes,
    limits: &Limits,
    counted: &mut dyn FnMut(u64) -> Result<(), GitError>,
) -> Result<Vec<ScannedEntry>, GitError> {
    let length = bytes.length().map_err(GitError::ReadPack)?;
    let source = SequentialBytes::new(bytes, 0..length);
    let mut reader = CountedReader {
        inner: BufReader::with_capacity(256 << 10, source),
        at: 0,
    };
    let count = read_head(&mut reader)?;
    if count > limits.git_objects {
        return Err(GitError::TooLarge {
            what: "the repository has more objects",
            limit: limits.git_objects,
        });
    }
    // a false count must not reserve memory for entries that do not exist
    let mut entries = Vec::with_capacity(count.min(length / 8) as usize);
    for _ in 0..count {
        entries.push(scan_entry(&mut reader, limits, counted)?);
    }
    if reader.at + ObjectId::BYTES as u64 != length {
        return Err(GitError::DamagedPack(
            "it does not end after its last entry".into(),
        ));
    }
    Ok(entries)
}

/// Reads the head of a pack and returns the number of entries.
fn read_head(reader: &mut impl Read) -> Result<u64, GitError> {
    let mut head = [0; HEAD];
    reader.read_exact(&mut head).map_err(damaged)?;
    let number = |at: usize| {
        head[at..at + 4]
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    match (&head[..4], number(4)) {
        (b"PACK", 2 | 3) => Ok(number(8)),
        (b"PACK", version) => Err(GitError::DamagedPack(format!("its version is {version}"))),
        _ => Err(GitError::DamagedPack("it does not begin with PACK".into())),
    }
}

fn scan_entry(
    reader: &mut CountedReader<'_>,
    limits: &Limits,
    counted: &mut dyn FnMut(u64) -> Result<(), GitError>,
) -> Result<ScannedEntry, GitError> {
    let offset = reader.at;
    let EntryHeader { form, size } = EntryHeader::read(reader).map_err(damaged)?;
    check_size(size, limits)?;
    counted(size)?;
    let content = inflate(reader, size)?;
    let mut entry = ScannedEntry {
        offset,
        form,
        size,
        id: None,
    };
    match form {
        EntryForm::Whole(kind) => {
            let id = ObjectId::of_object(kind, &content).ok_or_else(collision)?;
            entry.id = Some(id);
        }
        EntryForm::DeltaToOffset(_) | EntryForm::DeltaToId(_) => {
            let sizes = delta::sizes(&content)
                .ok_or_else(|| GitError::DamagedPack("a delta is cut off".into()))?;
            check_size(sizes.result, limits)?;
            counted(sizes.result)?;
            entry.size = sizes.result;
        }
    }
    Ok(entry)
}

fn check_size(size: u64, limits: &Limits) -> Result<(), GitError> {
    if size <= limits.git_object_bytes {
        return Ok(());
    }
    Err(GitError::TooLarge {
        what: "an object is larger",
        limit: limits.git_object_bytes,
    })
}

pub(super) fn collision() -> GitError {
    GitError::DamagedPack("an object was made for an attack on SHA-1".into())
}

/// Inflates a zlib stream, which must contain exactly `size` bytes.
pub(super) fn inflate(reader: &mut impl BufRead, size: u64) -> Result<Vec<u8>, GitError> {
    // limits the compressed bytes as well: a stream of any length may inflate to nothing
    let mut bounded = reader.take(2 * size + 4096);
    let mut decoder = ZlibDecoder::new(&mut bounded);
    let mut content = Vec::with_capacity(size.min(1 << 20) as usize);
    (&mut decoder)
        .take(size + 1)
        .read_to_end(&mut content)
        .map_err(damaged)?;
    if content.len() as u64 != size {
        return Err(GitError::DamagedPack(
            "an entry has another size than its header says".into(),
        ));
    }
    Ok(content)
}

/// The error for a pack that is damaged or cannot be read.
pub(super) fn damaged(error: io::Error) -> GitError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => GitError::DamagedPack("it is cut off".into()),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            GitError::DamagedPack(error.to_string())
        }
        _ => GitError::ReadPack(error),
    }
}

/// Counts the bytes that were read from a pack.
struct CountedReader<'a> {
    inner: BufReader<SequentialBytes<'a>>,
    at: u64,
}

impl Read for CountedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl BufRead for CountedReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.at += count as u64;
        self.inner.consume(count);
    }
}

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
