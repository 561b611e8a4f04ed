//! Writes the pack that a server or a push sends, from the entries of the stored packs.

use super::database::{ObjectDatabase, ObjectIndex};
use super::entry_header::{EntryForm, EntryHeader};
use super::scan::{damaged, inflate};
use super::write::PackWriter;
use crate::error::GitError;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::collections::HashMap;
use std::io::Write;

/// The size in bytes from which contents are always compressed.
const MIN_COMPRESSED: u64 = 512;

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

/// Writes a pack with `objects`, in this order, to `out`. An object that is stored as a delta is
/// sent as this delta if its base was sent before it; otherwise, the whole object is sent. Stored
/// packs are not compressed (`write.rs`), so contents are compressed here.
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
    let mut offsets: HashMap<u32, u64> = HashMap::new();
    writer.head(objects.len() as u32)?;
    for object in objects {
        let offset = writer.at;
        let stored = database.object(*object);
        let base = stored.base.map(|base| (base, offsets.get(&base)));
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
            Some(entry_form) => {
                let entry = database.raw_entry(stored)?;
                let mut stream = &entry[..];
                let size = EntryHeader::read(&mut stream).map_err(damaged)?.size;
                if size >= MIN_COMPRESSED || form.is_compact {
                    compressor.write(&mut writer, entry_form, &inflate(&mut stream, size)?)?;
                } else {
                    let mut header = Vec::new();
                    let form = entry_form;
                    EntryHeader { form, size }.write(&mut header);
                    writer.write(&header)?;
                    writer.write(stream)?;
                }
            }
        }
        offsets.insert(object.0, offset);
    }
    writer.finish().map(drop)
}

/// Compresses contents one by one.
struct ContentCompressor {
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
            stream: Compress::new(level, true),
            compressed: Vec::new(),
        }
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
