//! Reads a pack from its beginning to its end, once, and finds its entries.

use super::bytes::{PackBytes, SequentialBytes};
use super::entry_header::{EntryForm, EntryHeader};
use crate::delta;
use crate::error::GitError;
use crate::object::ObjectId;
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
