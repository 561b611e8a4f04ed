//! Appends entries: reads and verifies content in the order of the plan, encodes frames on all
//! cores, and writes them in order. `pack` writes all entries this way. In a direct
//! bundle, only the entries that must be compressed are written this way.

use super::sign_index;
use super::volume_writer::VolumeWriter;
use crate::error::BundleError;
use crate::format::contents::{
    ContentsIndex, FrameBuilder, LockName, PackOptions, max_index_length,
};
use crate::format::entry::TarEntry;
use crate::format::footer::{self, Footer};
use crate::format::frame::{
    self, FrameBuffers, FrameHash, FrameRecord, FrameTable, ROW, encode, stored,
};
use crate::format::header;
use crate::format::names::{CONTENTS, DELTA, FRONT_LEN, LOCK, RECIPE};
use crate::format::stored::{CHUNK, ContentForm};
use crate::pipeline;
use crate::plan::{ContentSource, PackPlan, PlannedEntry};
use landfall_content::{BlobRead, ContentError};
use landfall_model::report::Progress;
use landfall_model::sign::Signer;
use landfall_model::{Digest, Failure, Hasher, Limits, TransferSide, trim_index};
use sha2::{Digest as _, Sha256};
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
            let trimmed = trim_index(&index, keep).map_err(|error| {
                Failure::failed(format!("{error}; run `landfall lock` again"))
                    .on(TransferSide::Source)
                    .about(&entry.item)
            })?;
            Ok(Box::new(io::Cursor::new(trimmed)))
        }
    }
}

// Builds the index of a bundle: entries are recorded in order, and then the end of the bundle is
// written, from the frame table to the footer.

/// The features of the planned bundle that a reader must support.
fn requires(plan: &PackPlan) -> Vec<String> {
    let mut words = Vec::new();
    if !plan.bases.is_empty() {
        words.push(DELTA.into());
    }
    if !plan.recipes.is_empty() {
        words.push(RECIPE.into());
    }
    words
}

/// The contents index and the frame table while the entries are being written.
pub(crate) struct IndexBuilder {
    pub contents: ContentsIndex,
    /// The rows of the frame table.
    rows: Vec<u8>,
}

impl IndexBuilder {
    /// The index of a bundle before any entry is written.
    pub(crate) fn new(plan: &PackPlan, options: PackOptions) -> IndexBuilder {
        let mut frame = 0;
        let mut entries = Vec::with_capacity(plan.entries.len());
        for entry in &plan.entries {
            entries.push(TarEntry {
                name: entry.name.clone(),
                digest: entry.descriptor.digest.clone(),
                size: entry.descriptor.size,
                media_type: entry.descriptor.media_type.clone(),
                form: entry.form,
                // known when the entry is written
                offset: 0,
                length: 0,
                frame,
            });
            frame += TarEntry::frame_count(entry.descriptor.size);
        }
        let contents = ContentsIndex {
            version: 1,
            landfall: env!("CARGO_PKG_VERSION").into(),
            options,
            requires: requires(plan),
            series: plan.serial.as_ref().map(|serial| serial.series.clone()),
            serial: plan.serial.as_ref().map(|serial| serial.number),
            locks: vec![LockName {
                name: LOCK.into(),
                fingerprint: plan.fingerprint.clone(),
            }],
            partial: plan
                .missing
                .iter()
                .map(|missing| missing.item.clone())
                .collect(),
            bases: plan.bases.clone(),
            omitted: plan.omitted.clone(),
            recipes: plan.recipes.clone(),
            references: plan.references.clone(),
            entries,
            frames: FrameTable::default(),
        };
        IndexBuilder {
            contents,
            rows: Vec::new(),
        }
    }

    /// Records the location and frames of an entry. Entries must be recorded in order.
    pub(crate) fn record(&mut self, entry_index: usize, offset: u64, frames: &[FrameRecord]) {
        let mut end = offset;
        for FrameRecord(length, hash) in frames {
            self.rows.extend(frame::row(end, *hash));
            end += u64::from(*length);
        }
        let entry = &mut self.contents.entries[entry_index];
        (entry.offset, entry.length) = (offset, end - offset);
    }

    /// Fails, before anything is written, if readers would refuse the bundle because its index or
    /// lock is too long.
    pub(crate) fn check_size(&self, path: &Path, limits: &Limits) -> Result<(), BundleError> {
        let mut longest = self.contents.clone();
        let frames: u64 = longest
            .entries
            .iter()
            .map(|entry| TarEntry::frame_count(entry.size))
            .sum();
        let size = frames.saturating_mul(ROW as u64);
        // all numbers at their longest, so that the real index cannot become longer
        longest.frames = FrameTable {
            offset: u64::MAX,
            size,
            hashes: Vec::new(),
        };
        longest
            .entries
            .iter_mut()
            .for_each(|entry| (entry.offset, entry.length) = (u64::MAX, u64::MAX));
        // each hash of the table has 64 digits, quotes and a comma
        let hashes = TarEntry::frame_count(size).saturating_mul(67);
        let bytes = longest.to_bytes().map_err(BundleError::write(path))?;
        let index = (bytes.len() as u64).saturating_add(hashes);
        let lock = longest
            .lock_index()
            .map_or(0, |entry_index| longest.entries[entry_index].size);
        // the bundle is longer than the tar headers and the stored content of its entries
        let shortest = longest.entries.iter().fold(0_u64, |sum, entry| {
            let is_stored = entry.form == ContentForm::Stored;
            sum.saturating_add(512 + if is_stored { entry.size } else { 0 })
        });
        for (what, bytes, limit) in [
            ("contents index", index, max_index_length(shortest, limits)),
            ("lock", lock, limits.contents_bytes as u64),
        ] {
            if bytes > limit {
                return Err(BundleError::too_large(path, what, bytes, limit));
            }
        }
        Ok(())
    }

    /// Writes the end of the bundle: frame table, contents index, the end of the tar, signatures
    /// and footer. `signer` signs the index. Returns the bundle digest.
    pub(crate) fn finish(
        self,
        out: &mut VolumeWriter,
        path: &Path,
        signer: Option<&Signer>,
    ) -> Result<Digest, BundleError> {
        let (mut footer, index) = self.seal(out).map_err(BundleError::write(path))?;
        let signature = signer.map(|signer| sign_index(signer, &index, path));
        let signatures = footer::to_frame(signature.transpose()?.as_slice());
        footer.signed = signatures.len() as u64;
        footer.signatures = FrameHash::of(&signatures);
        let tail = [signatures, footer.to_bytes()].concat();
        // signatures and footer are after the end of the tar, so that tools for tar ignore them
        out.append_tail(&stored(&header::END), &tail)
            .map_err(BundleError::write(path))?;
        Ok(footer.sha256)
    }

    /// Writes the frame table and the contents index. Returns a footer without signatures, and the
    /// bytes of the index.
    fn seal(mut self, out: &mut VolumeWriter) -> io::Result<(Footer, Vec<u8>)> {
        let offset = out.end;
        let size = self.rows.len() as u64;
        let mut hashes = Vec::new();
        for piece in frame::pieces(&self.rows) {
            let frame = stored(&piece);
            hashes.push(FrameHash::of(&frame));
            out.append(&frame)?;
        }
        self.contents.frames = FrameTable {
            offset,
            size,
            hashes,
        };
        let index = self.contents.to_bytes()?;
        let size = index.len() as u64;
        out.append(&stored(&header::encode(CONTENTS, size)))?;
        let offset = out.end;
        // the footer has one hash over all frames of the index, so that its length is fixed
        let mut frames = Sha256::new();
        for chunk in index.chunks(CHUNK) {
            let frame = encode(ContentForm::Compressed, self.contents.options.level, chunk)?;
            frames.update(&frame);
            out.append(&frame)?;
        }
        let length = out.end - offset;
        let padding = vec![0; header::padding(size)];
        if !padding.is_empty() {
            out.append(&stored(&padding))?;
        }
        let sha256 = Digest::sha256(&index);
        let signatures = FrameHash::of(b"");
        let footer = Footer {
            offset,
            length,
            frames: frames.into(),
            size,
            sha256,
            signed: 0,
            signatures,
        };
        Ok((footer, index))
    }
}
