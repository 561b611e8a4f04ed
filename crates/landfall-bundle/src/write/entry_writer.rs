//! Appends entries: reads and verifies content in the order of the plan, encodes frames on all
//! cores, and writes them in order. `pack` writes all entries this way. In a direct
//! bundle, only the entries that must be compressed are written this way.

use super::volume_writer::VolumeWriter;
use crate::error::BundleError;
use crate::format::builder::FrameBuilder;
use crate::format::content_form::ContentForm;
use crate::format::frame_buffers::FrameBuffers;
use crate::format::hash::{FrameHash, FrameRecord};
use crate::format::header;
use crate::format::names::FRONT_LEN;
use crate::format::stored::CHUNK;
use crate::pipeline;
use crate::plan::pack_plan::PackPlan;
use crate::plan::planned_entry::{ContentSource, PlannedEntry};
use landfall_content::{BlobRead, ContentError};
use landfall_model::report::Progress;
use landfall_model::{Hasher, trim_index};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Writes entries of a plan.
pub(crate) struct EntryWriter<'a> {
    pub plan: &'a PackPlan,
    /// The content of the blobs.
    pub blobs: &'a dyn BlobRead,
    /// The compression level of zstd.
    pub level: i32,
    /// The approximate number of frames in flight.
    pub depth: usize,
    /// The path of the bundle, for messages.
    pub path: &'a Path,
    /// Receives the number of processed bytes.
    pub progress: &'a dyn Progress,
}

/// A frame with its content, before it is encoded.
struct Unencoded {
    entry_index: usize,
    /// Whether the frame is the last one of its entry.
    is_last: bool,
    builder: FrameBuilder,
}

impl EntryWriter<'_> {
    /// Appends the entries with these indexes to `out`. Calls `done` for each written entry,
    /// with its index, offset and frames.
    pub(crate) fn append(
        &self,
        entry_indexes: Range<usize>,
        out: &mut VolumeWriter,
        mut done: impl FnMut(usize, u64, Vec<FrameRecord>) -> io::Result<()>,
    ) -> Result<(), BundleError> {
        let buffers = FrameBuffers::default();
        let mut offset = out.end;
        let mut frames = Vec::new();
        pipeline::ordered(
            self.depth,
            |send| {
                for entry_index in entry_indexes {
                    if !self.make(entry_index, &buffers, send)? {
                        break;
                    }
                }
                Ok(())
            },
            |Unencoded {
                 entry_index,
                 is_last,
                 builder,
             }| {
                let content = builder.size();
                let frame = builder
                    .frame(self.level, &buffers)
                    // hashed on this thread too, because hashing takes about as long as encoding
                    .map(|frame| (FrameHash::of(&frame), frame));
                (entry_index, is_last, content, frame)
            },
            |(entry_index, is_last, content, frame): (
                usize,
                bool,
                usize,
                io::Result<(FrameHash, Vec<u8>)>,
            )| {
                let written = frame.and_then(|(hash, frame)| {
                    out.append(&frame)?;
                    let entry = &self.plan.entries[entry_index];
                    // progress counts the bytes of blobs only, without headers and padding
                    if entry_index >= FRONT_LEN && (1..=entry.chunks()).contains(&frames.len()) {
                        self.progress.bytes(content as u64);
                    }
                    frames.push(FrameRecord(frame.len() as u32, hash));
                    buffers.give(frame);
                    if is_last {
                        done(entry_index, offset, std::mem::take(&mut frames))?;
                        offset = out.end;
                    }
                    Ok(())
                });
                written.map_err(BundleError::write(self.path))
            },
        )
    }

    /// Passes the frames of one entry to `send`, before they are encoded. Returns `false` once
    /// `send` does.
    fn make(
        &self,
        entry_index: usize,
        buffers: &FrameBuffers,
        send: &mut dyn FnMut(Unencoded) -> bool,
    ) -> Result<bool, BundleError> {
        let entry = &self.plan.entries[entry_index];
        let size = entry.descriptor.size;
        let failed = BundleError::content(&entry.item);
        let mut source = open(entry, self.blobs)?;
        let mut hasher = Hasher::new(entry.descriptor.digest.algorithm());
        // each frame is held back until the next one begins, so that the last one is passed on only
        // after the digest was verified
        let mut next = FrameBuilder::of(ContentForm::Stored, &header::encode(&entry.name, size));
        let mut send = |builder, is_last| {
            send(Unencoded {
                entry_index,
                is_last,
                builder,
            })
        };
        for from in (0..size).step_by(CHUNK) {
            if !send(next, false) {
                return Ok(false);
            }
            next = FrameBuilder::new(
                entry.form,
                (size - from).min(CHUNK as u64) as usize,
                buffers.take(),
            );
            let read = next.fill(&mut source, |content| hasher.update(content));
            read.map_err(|source| failed(read_error(entry, source)))?;
        }
        // one byte more than expected, to notice content that is longer than its size
        let over = source
            .read(&mut [0])
            .map_err(|source| failed(read_error(entry, source)))?;
        if over > 0 || hasher.finish() != entry.descriptor.digest {
            return Err(failed(ContentError::damaged(&entry.descriptor.digest)));
        }
        let padding = header::padding(size);
        if padding == 0 {
            return Ok(send(next, true));
        }
        let zeros = FrameBuilder::of(ContentForm::Stored, &vec![0; padding]);
        Ok(send(next, false) && send(zeros, true))
    }
}

fn read_error(entry: &PlannedEntry, source: io::Error) -> ContentError {
    let digest = entry.descriptor.digest.clone();
    match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            ContentError::Damaged { digest }
        }
        _ => ContentError::Read { digest, source },
    }
}

fn open(entry: &PlannedEntry, blobs: &dyn BlobRead) -> Result<Box<dyn Read + Send>, BundleError> {
    let failed = BundleError::content(&entry.item);
    match &entry.content {
        ContentSource::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
        ContentSource::Recipe(recipe) => Ok(Box::new(recipe.reader())),
        ContentSource::Store => blobs.open(&entry.descriptor.digest, 0).map_err(failed),
        ContentSource::Trimmed { of, keep } => {
            let index = blobs.read(of).map_err(failed)?;
            let trimmed = trim_index(&index, keep).map_err(|error| BundleError::Trim {
                item: entry.item.clone(),
                why: error.to_string(),
            })?;
            Ok(Box::new(io::Cursor::new(trimmed)))
        }
    }
}
