//! Opening a split bundle without one of its volumes, which is lost.

use super::bundle::Bundle;
use super::header::read_header;
use super::index::{self, Index};
use super::open_bundle::OpenBundle;
use super::signature;
use super::volume_reader::VolumeReader;
use super::volume_set::VolumeSet;
use crate::bundle::error::Error;
use crate::bundle::format::files::{file_name, signature_path, volume_path};
use crate::bundle::format::hash::Hash;
use crate::bundle::format::header;
use crate::bundle::format::locator::Locator;
use crate::bundle::format::names::CONTENTS;
use crate::bundle::format::stored::{CHUNK, stored_len};
use crate::bundle::format::trailer::{SeekTable, Sizes};
use crate::model::{Digest, Limits};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const NO_INDEX: &str = "the contents index lies in it, or in a volume that is damaged, and without it nobody knows what \
                        was there; pack the bundle again with the same lock and --volume-size, which gives the same \
                        bytes";

const NO_END: &str = "what stood after the contents index is not known; a signature that was there cannot be made \
                      again, so pack a signed bundle again with --sign";

/// Opens the bundle `base` without volume `number`: what was in it cannot be read. Returns also which part of the
/// bundle that is; `cannot` makes an error of the reason why it cannot be found out.
pub(crate) fn open_without(
    base: &Path,
    number: usize,
    cannot: &dyn Fn(&str) -> Error,
) -> Result<(Bundle, Range<u64>), Error> {
    let set = VolumeSet::with(base, number).map_err(|source| Error::Open { path: base.into(), source })?;
    let lost = volume_path(base, number);
    let mut missing = set.missing();
    missing.retain(|volume| *volume != file_name(&lost));
    if !missing.is_empty() {
        let why = "the others are needed for it, and of these too are missing: ";
        return Err(cannot(&format!("{why}{}", missing.join(", "))));
    }
    let others = VolumeReader::over(set.paths().filter(|path| *path != lost).collect(), true)?;
    let is_whole = || cannot("the other volumes hold the whole bundle, or are not of one bundle");
    let has_gap = |end: u64| end.checked_sub(others.length()).filter(|gap| *gap > 0).ok_or_else(is_whole);
    let start = others.start(number - 1);
    let no_end = || cannot(NO_END);
    let (volumes, gap, index, signature) = if lost == set.last() {
        let index = Index::read(base, &others, |_| cannot(NO_INDEX))?;
        let signature = signature::read(&others, index.end()).map_err(|_| no_end())?;
        let header = stored_len(header::BLOCK as u64);
        if signature.is_none() && others.length() < index.end() + header && signature_path(base).exists() {
            return Err(no_end());
        }
        let gap = has_gap(index.bundle_len(signature.as_deref()))?;
        (others.with_gap(number - 1, gap), gap, index, signature)
    } else {
        let table = seek_table(&others).ok_or_else(|| cannot(NO_INDEX))?;
        let gap = has_gap(table.bundle_len())?;
        let volumes = others.with_gap(number - 1, gap);
        let found = find_index(&volumes, &table).ok_or_else(|| cannot(NO_INDEX))?;
        let index = Index::parse(base, &volumes, found)?;
        index.contents.check(index.contents.locator, &index.locator).map_err(|_| cannot(NO_INDEX))?;
        let signature = signature::read(&volumes, index.end()).map_err(|_| no_end())?;
        if index.bundle_len(signature.as_deref()) != table.bundle_len() {
            return Err(no_end());
        }
        (volumes, gap, index, signature)
    };
    let bundle = Bundle(Arc::new(OpenBundle::new(base, volumes, index, signature)));
    Ok((bundle, start..start + gap))
}

/// The seek table at the end of the bundle, which lists the frames that are lost too.
fn seek_table(volumes: &VolumeReader) -> Option<SeekTable> {
    let length = volumes.length();
    let end = volumes.bytes_at(length.checked_sub(SeekTable::END as u64)?, SeekTable::END).ok()?;
    let limit = Limits::default().contents_bytes as u64;
    let size = SeekTable::len(&end).filter(|size| *size <= limit)?;
    SeekTable::parse(&volumes.bytes_at(length.checked_sub(size)?, size as usize).ok()?)
}

/// Finds the contents index among the last frames of the table. Returns where it is, its bytes, and the sizes of its
/// frames.
fn find_index(volumes: &VolumeReader, table: &SeekTable) -> Option<(Locator, Vec<u8>, Vec<Sizes>)> {
    let mut at = table.start();
    for (place, &(length, content)) in table.frames.iter().enumerate().rev() {
        at = at.checked_sub(length.into())?;
        if content as usize != header::BLOCK {
            continue;
        }
        let Some((_, size)) = read_header(volumes, at).ok().filter(|(name, _)| name == CONTENTS) else {
            continue;
        };
        let frames = table.frames.get(place + 1..)?.get(..size.div_ceil(CHUNK as u64) as usize)?;
        let (offset, length) = (at + u64::from(length), frames.iter().map(|frame| u64::from(frame.0)).sum());
        let bytes = volumes.bytes_at(offset, length as usize).ok()?;
        let (text, sizes) = index::decode(&bytes, size).ok()?;
        let (frames, sha256) = (Hash::of(&bytes), Digest::sha256(&text));
        return Some((Locator { offset, length, frames, size, sha256 }, text, sizes));
    }
    None
}
