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
    /// Whether contents of fewer than 512 bytes are compressed, too. For a client that waits,
    /// compressing them takes longer than sending them.
    pub compress_small: bool,
}

/// Writes a pack with `objects`, in this order, to `out`. Deltas are sent as they are stored, but
/// if their base is not sent before them, the whole object is. Stored packs are not compressed
/// (`write.rs`), so contents are compressed here.
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
    let mut compressor = FastCompressor::new();
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
                if size >= MIN_COMPRESSED || form.compress_small {
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

/// Compresses contents at the fastest level.
struct FastCompressor {
    stream: Compress,
    compressed: Vec<u8>,
}

impl FastCompressor {
    fn new() -> FastCompressor {
        FastCompressor {
            stream: Compress::new(Compression::fast(), true),
            compressed: Vec::new(),
        }
    }

    /// Writes an entry, compressed if that makes it smaller.
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
        // the stream does not end if it would be longer than the content
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
