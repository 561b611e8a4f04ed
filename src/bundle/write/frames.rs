//! Making the frames of a bundle's entries: content is read and checked in order, frames are made on all cores.

use crate::bundle::error::Error;
use crate::bundle::format::buffers::Buffers;
use crate::bundle::format::builder::FrameBuilder;
use crate::bundle::format::form::Form;
use crate::bundle::format::hash::Hash;
use crate::bundle::format::header;
use crate::bundle::format::locator::Locator;
use crate::bundle::format::names::{FRONT_LEN, LOCATOR};
use crate::bundle::format::stored::CHUNK;
use crate::bundle::plan::pack_plan::PackPlan;
use crate::bundle::plan::planned_entry::{ContentSource, PlannedEntry};
use crate::content::{BlobRead, ContentError};
use crate::model::{Hasher, trim_index};
use std::io::{self, Read};

/// The content of one frame, on its way to the threads that make frames.
pub(crate) struct Unencoded {
    /// Which entry of the plan; `None` for the locator.
    entry: Option<usize>,
    builder: FrameBuilder,
}

/// One frame, on its way to the file.
pub(crate) struct Encoded {
    pub entry: Option<usize>,
    /// How many bytes of content it holds.
    pub content: usize,
    pub frame: io::Result<(Vec<u8>, Hash)>,
}

/// Makes a frame of its content.
pub(crate) fn encode(level: i32, buffers: &Buffers) -> impl Fn(Unencoded) -> Encoded + Sync {
    move |Unencoded { entry, builder }: Unencoded| {
        let content = builder.size();
        let frame = builder.frame(level, buffers).map(|frame| {
            let hash = Hash::of(&frame);
            (frame, hash)
        });
        Encoded { entry, content, frame }
    }
}

/// Hands out the content of every frame before the index, in order.
pub(super) fn make(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    buffers: &Buffers,
    hand: &mut dyn FnMut(Unencoded) -> bool,
) -> Result<(), Error> {
    for (index, entry) in plan.entries.iter().enumerate() {
        if index == FRONT_LEN && !hand(locator_head()) || !make_entry(index, entry, blobs, buffers, hand)? {
            return Ok(());
        }
    }
    if plan.entries.len() == FRONT_LEN {
        hand(locator_head());
    }
    Ok(())
}

/// Hands out the content of the frames of one entry. Returns `false` once nobody wants more.
pub(crate) fn make_entry(
    index: usize,
    entry: &PlannedEntry,
    blobs: &dyn BlobRead,
    buffers: &Buffers,
    hand: &mut dyn FnMut(Unencoded) -> bool,
) -> Result<bool, Error> {
    let at = Some(index);
    let size = entry.descriptor.size;
    let around = |content: &[u8]| Unencoded { entry: at, builder: FrameBuilder::of(Form::Stored, content) };
    let mut go_on = hand(around(&header::encode(&entry.name, size)));
    let failed = |source| Error::Content { item: entry.item.clone(), source };
    let mut source = open(entry, blobs)?;
    let mut hasher = Hasher::new(entry.descriptor.digest.algorithm());
    let mut left = size;
    while left > 0 && go_on {
        let length = left.min(CHUNK as u64);
        let mut builder = FrameBuilder::new(entry.form, length as usize, buffers.take());
        let read = builder.fill(&mut source, |content| hasher.update(content));
        read.map_err(|source| failed(read_error(entry, source)))?;
        left -= length;
        go_on = hand(Unencoded { entry: at, builder });
    }
    if !go_on {
        return Ok(false);
    }
    let over = source.read(&mut [0]).map_err(|source| failed(read_error(entry, source)))?;
    if over > 0 || hasher.finish() != entry.descriptor.digest {
        return Err(failed(ContentError::Damaged { digest: entry.descriptor.digest.clone() }));
    }
    let padding = header::padding(size);
    Ok(padding == 0 || hand(around(&vec![0; padding])))
}

/// The header frame of the locator, which keeps its place.
fn locator_head() -> Unencoded {
    let content = header::encode(LOCATOR, Locator::content_lens()[1] as u64);
    Unencoded { entry: None, builder: FrameBuilder::of(Form::Stored, &content) }
}

fn read_error(entry: &PlannedEntry, source: io::Error) -> ContentError {
    let digest = entry.descriptor.digest.clone();
    match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => ContentError::Damaged { digest },
        _ => ContentError::Read { digest, source },
    }
}

fn open(entry: &PlannedEntry, blobs: &dyn BlobRead) -> Result<Box<dyn Read + Send>, Error> {
    let failed = |source| Error::Content { item: entry.item.clone(), source };
    match &entry.content {
        ContentSource::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
        ContentSource::Store => blobs.open(&entry.descriptor.digest, 0).map_err(failed),
        ContentSource::Trimmed { of, keep } => {
            let index = blobs.read(of).map_err(failed)?;
            let trimmed = trim_index(&index, keep)
                .map_err(|error| Error::Trim { item: entry.item.clone(), why: error.to_string() })?;
            Ok(Box::new(io::Cursor::new(trimmed)))
        }
    }
}
