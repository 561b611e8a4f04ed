//! Writes landfall's own packs.
//!
//! The bytes depend only on the plan: its objects, their order and the bases of their deltas. Locks
//! contain the digests of packs, so any change here requires a new version of the format.
//!
//! Objects are stored in zlib streams without compression: the output of a compressor differs from
//! release to release, and a bundle compresses the pack as a whole, which saves more than
//! compressing each object. Deltas keep the pack small enough for a store or a registry.

use super::database::{ObjectDatabase, ObjectIndex};
use super::entry_header::{EntryForm, EntryHeader};
use crate::delta;
use crate::error::GitError;
use crate::history::GitPackPlan;
use std::collections::HashMap;
use std::io::Write;

/// The maximum length of a chain of deltas in a written pack.
const MAX_DEPTH: u16 = 50;
/// The size in bytes above which an object is neither written as a delta nor used as the base of
/// one, because creating a delta would use several times its size in memory.
const MAX_DELTA_BYTES: u64 = 16 << 20;

#[derive(Clone, Copy)]
struct WrittenEntry {
    offset: u64,
    depth: u16,
}

/// Writes the objects of `plan` as a pack to `out`, and returns its size in bytes.
///
/// # Errors
/// If an object cannot be read, or `out` fails.
pub fn write_pack(
    database: &ObjectDatabase,
    plan: &GitPackPlan,
    out: &mut dyn Write,
) -> Result<u64, GitError> {
    let mut writer = PackWriter::new(out);
    let mut written: HashMap<ObjectIndex, WrittenEntry> = HashMap::new();
    let count = plan.objects().count() as u32;
    writer.head(count)?;
    for planned in plan.objects() {
        let object = planned.object;
        let content = database.content(object)?;
        let mut entry = WrittenEntry {
            offset: writer.at,
            depth: 0,
        };
        let whole = EntryForm::Whole(database.kind(object));
        let base = planned
            .base
            .and_then(|base| Some((base, *written.get(&base)?)));
        let delta = match base {
            Some((base, at)) if at.depth < MAX_DEPTH => {
                delta_to(database, base, &content)?.map(|delta| (at, delta))
            }
            _ => None,
        };
        match delta {
            Some((base, delta)) => {
                entry.depth = base.depth + 1;
                let distance = entry.offset - base.offset;
                writer.entry(EntryForm::DeltaToOffset(distance), &delta)?;
            }
            None => writer.entry(whole, &content)?,
        }
        written.insert(object, entry);
    }
    writer.finish()
}

/// A delta from `base` to `content`, if it is at most half as long as the content.
fn delta_to(
    database: &ObjectDatabase,
    base: ObjectIndex,
    content: &[u8],
) -> Result<Option<Vec<u8>>, GitError> {
    if database.size(base).max(content.len() as u64) > MAX_DELTA_BYTES {
        return Ok(None);
    }
    let base = database.content(base)?;
    Ok(delta::create(&base, content, content.len() / 2))
}

/// Writes a pack and computes its checksum.
pub(crate) struct PackWriter<'a> {
    out: &'a mut dyn Write,
    hasher: sha1_checked::Sha1,
    /// The number of bytes that were written.
    pub(super) at: u64,
    buffer: Vec<u8>,
}

impl<'a> PackWriter<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> PackWriter<'a> {
        PackWriter {
            out,
            hasher: sha1_checked::Sha1::new(),
            at: 0,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), GitError> {
        use sha1_checked::Digest;
        self.hasher.update(bytes);
        self.at += bytes.len() as u64;
        self.out.write_all(bytes).map_err(GitError::WritePack)
    }

    /// Writes the head of a pack with `count` entries.
    pub(crate) fn head(&mut self, count: u32) -> Result<(), GitError> {
        self.write(b"PACK\0\0\0\x02")?;
        self.write(&count.to_be_bytes())
    }

    /// Writes an entry. `content` is the content of an object, or a delta.
    pub(crate) fn entry(&mut self, form: EntryForm, content: &[u8]) -> Result<(), GitError> {
        let mut entry = std::mem::take(&mut self.buffer);
        entry.clear();
        let size = content.len() as u64;
        EntryHeader { form, size }.write(&mut entry);
        store(content, &mut entry);
        let written = self.write(&entry);
        self.buffer = entry;
        written
    }

    /// Writes the checksum, and returns the size of the pack in bytes.
    pub(crate) fn finish(mut self) -> Result<u64, GitError> {
        use sha1_checked::Digest;
        let checksum = std::mem::take(&mut self.hasher).finalize();
        self.out.write_all(&checksum).map_err(GitError::WritePack)?;
        Ok(self.at + checksum.len() as u64)
    }
}

/// Appends `content` as a zlib stream of stored blocks (RFC 1950, RFC 1951).
fn store(content: &[u8], out: &mut Vec<u8>) {
    const MAX: usize = 0xffff;
    out.extend([0x78, 0x01]);
    let mut blocks = content.chunks(MAX).peekable();
    if blocks.peek().is_none() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(adler32(content).to_be_bytes());
}

/// The checksum of a zlib stream (RFC 1950, section 8.2).
fn adler32(bytes: &[u8]) -> u32 {
    const BASE: u32 = 65521;
    let mut low = 1_u32;
    let mut high = 0_u32;
    // the largest number of bytes whose sums cannot overflow before the remainders are taken
    for piece in bytes.chunks(5552) {
        for byte in piece {
            low += u32::from(*byte);
            high += low;
        }
        low %= BASE;
        high %= BASE;
    }
    high << 16 | low
}
