//! Writes landfall's own packs.
//!
//! The bytes depend only on the plan: its objects, their order and the bases of their deltas. Locks
//! contain the digests of packs, so any change here requires a new version of the format.
//!
//! Objects are stored in zlib streams without compression: the output of a compressor differs from
//! release to release, and a bundle compresses the pack as a whole, which saves more than
//! compressing each object. Deltas keep the pack small enough for a store or a registry.

use super::resolve::{EntryForm, EntryHeader, damaged, inflate};
use super::{ObjectDatabase, ObjectIndex, PackedObject, changed};
use crate::history::GitPackPlan;
use crate::{GitError, delta};
use flate2::bufread::{ZlibDecoder, ZlibEncoder};
use flate2::{Compress, Compression, FlushCompress, Status};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use zlib_rs::adler32::adler32;

/// The maximum length of a chain of deltas in a written pack.
const MAX_DEPTH: u16 = 50;
/// The size in bytes above which an object is neither written as a delta nor used as the base of
/// one, because creating a delta would use several times its size in memory.
const MAX_DELTA_BYTES: u64 = 16 << 20;

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
    // the offset of each entry, and the number of deltas in the chain to its content
    let mut written: HashMap<ObjectIndex, (u64, u16)> = HashMap::new();
    let count = plan.objects().count() as u32;
    writer.head(count)?;
    for planned in plan.objects() {
        let object = planned.object;
        let content = database.content(object)?;
        let offset = writer.at;
        let whole = EntryForm::Whole(database.kind(object));
        let base = planned
            .base
            .and_then(|base| Some((base, *written.get(&base)?)));
        let delta = match base {
            Some((base, at)) if at.1 < MAX_DEPTH => {
                delta_to(database, base, &content)?.map(|delta| (at, delta))
            }
            _ => None,
        };
        let depth = match delta {
            Some(((base_offset, depth), delta)) => {
                writer.entry(EntryForm::DeltaToOffset(offset - base_offset), &delta)?;
                depth + 1
            }
            None => {
                writer.entry(whole, &content)?;
                0
            }
        };
        written.insert(object, (offset, depth));
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
    out.extend(adler32(1, content).to_be_bytes());
}

/// The size in bytes from which contents are always compressed.
const MIN_COMPRESSED: u64 = 512;

/// The size in bytes up to which the content of an object is in memory. It is also the size of the
/// buffers through which larger contents are copied.
const COPIED: usize = 32 << 10;

/// The form in which objects are sent.
#[derive(Debug, Clone, Copy)]
pub struct PackSending {
    /// Whether deltas name their bases by the offset, and not by the id.
    pub offset_deltas: bool,
    /// Whether to make the pack smaller, for a file that is kept: contents of fewer than 512 bytes
    /// are compressed as well, and all contents at the default level. Otherwise, the fastest level
    /// is used, because a client waits for the pack.
    pub is_compact: bool,
}

/// Writes a pack with `objects`, which are in the order of the packs, to `out`. An object that is
/// stored as a delta is sent as this delta if its base was sent before it; otherwise, the whole
/// object is sent. Stored packs are not compressed (`write.rs`), so contents are compressed here.
///
/// # Errors
/// If an object cannot be read, or `out` fails.
pub fn send_pack(
    database: &ObjectDatabase,
    objects: &[ObjectIndex],
    form: PackSending,
    out: &mut dyn Write,
) -> Result<(), GitError> {
    let mut writer = PackWriter::new(out);
    let mut compressor = ContentCompressor::new(form);
    // of the objects that were sent, in the same order: a list takes less memory than a map
    let mut offsets: Vec<u64> = Vec::with_capacity(objects.len());
    writer.head(objects.len() as u32)?;
    for object in objects {
        let offset = writer.at;
        let stored = database.object(*object);
        let base = stored.base.map(|base| {
            let position = database.pack_position(ObjectIndex(base));
            let sent = &objects[..offsets.len()];
            let at = sent.binary_search_by_key(&position, |object| database.pack_position(*object));
            (base, at.ok().map(|at| offsets[at]))
        });
        let entry_form = match base {
            Some((_, None)) => None,
            Some((_, Some(base_offset))) if form.offset_deltas => {
                Some(EntryForm::DeltaToOffset(offset - base_offset))
            }
            Some((base, Some(_))) => Some(EntryForm::DeltaToId(database.id(ObjectIndex(base)))),
            None => Some(EntryForm::Whole(stored.kind)),
        };
        match entry_form {
            None => {
                let content = database.content(*object)?;
                compressor.write(&mut writer, EntryForm::Whole(stored.kind), &content)?;
            }
            Some(entry_form) => compressor.copy(&mut writer, entry_form, database, stored)?,
        }
        offsets.push(offset);
    }
    writer.finish().map(drop)
}

/// Compresses contents one by one.
struct ContentCompressor {
    form: PackSending,
    level: Compression,
    stream: Compress,
    compressed: Vec<u8>,
}

impl ContentCompressor {
    fn new(form: PackSending) -> ContentCompressor {
        let level = if form.is_compact {
            Compression::default()
        } else {
            Compression::fast()
        };
        ContentCompressor {
            form,
            level,
            stream: Compress::new(level, true),
            compressed: Vec::new(),
        }
    }

    /// Writes the content or the delta in the stored entry of an object, as an entry of `form`.
    fn copy(
        &mut self,
        writer: &mut PackWriter<'_>,
        form: EntryForm,
        database: &ObjectDatabase,
        stored: &PackedObject,
    ) -> Result<(), GitError> {
        if stored.end - stored.offset > COPIED as u64 {
            let mut reader = BufReader::with_capacity(COPIED, database.entry_reader(stored));
            let size = EntryHeader::read(&mut reader).map_err(damaged)?.size;
            return self.copy_large(writer, EntryHeader { form, size }, reader);
        }
        let entry = database.raw_entry(stored)?;
        let mut stream = &entry[..];
        let size = EntryHeader::read(&mut stream).map_err(damaged)?.size;
        if size > COPIED as u64 {
            return self.copy_large(writer, EntryHeader { form, size }, stream);
        }
        if size >= MIN_COMPRESSED || self.form.is_compact {
            return self.write(writer, form, &inflate(&mut stream, size)?);
        }
        let mut header = Vec::new();
        EntryHeader { form, size }.write(&mut header);
        writer.write(&header)?;
        writer.write(stream)
    }

    /// Writes an entry whose content does not need to be in memory as a whole.
    fn copy_large(
        &self,
        writer: &mut PackWriter<'_>,
        header: EntryHeader,
        reader: impl BufRead,
    ) -> Result<(), GitError> {
        let mut written = Vec::new();
        header.write(&mut written);
        writer.write(&written)?;
        let content = BufReader::with_capacity(COPIED, ZlibDecoder::new(reader));
        let mut compressed = ZlibEncoder::new(content, self.level);
        let mut piece = vec![0; COPIED];
        loop {
            let count = compressed.read(&mut piece).map_err(damaged)?;
            if count == 0 {
                break;
            }
            writer.write(&piece[..count])?;
        }
        // the size was checked when the pack was added, so the pack must have changed since
        if compressed.total_in() != header.size {
            return Err(changed());
        }
        Ok(())
    }

    /// Writes an entry. It is compressed unless the result exceeds the buffer, which has at least
    /// the size of the content.
    fn write(
        &mut self,
        writer: &mut PackWriter<'_>,
        form: EntryForm,
        content: &[u8],
    ) -> Result<(), GitError> {
        self.stream.reset();
        self.compressed.clear();
        self.compressed.reserve(content.len());
        let flush = FlushCompress::Finish;
        let status = self
            .stream
            .compress_vec(content, &mut self.compressed, flush);
        // the stream does not end if the buffer is too small
        if !matches!(status, Ok(Status::StreamEnd)) {
            return writer.entry(form, content);
        }
        let size = content.len() as u64;
        let mut header = Vec::new();
        EntryHeader { form, size }.write(&mut header);
        writer.write(&header)?;
        writer.write(&self.compressed)
    }
}
