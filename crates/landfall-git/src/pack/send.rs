//! Writes the pack that a server or a push sends, from the entries of the stored packs.

use super::database::{ObjectDatabase, ObjectIndex, PackedObject, changed};
use super::entry_header::{EntryForm, EntryHeader};
use super::scan::{damaged, inflate};
use super::write::PackWriter;
use crate::error::GitError;
use flate2::bufread::{ZlibDecoder, ZlibEncoder};
use flate2::{Compress, Compression, FlushCompress, Status};
use std::io::{BufRead, BufReader, Read, Write};

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
