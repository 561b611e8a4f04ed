//! Filling a bundle: its entries, its contents index, the trailer, and at last the locator.

use super::entries::Entries;
use super::volume_writer::VolumeWriter;
use crate::bundle::error::Error;
use crate::bundle::format::contents::{Contents, LockName, PackOptions};
use crate::bundle::format::entry::TarEntry;
use crate::bundle::format::form::Form;
use crate::bundle::format::frame::{encode, stored};
use crate::bundle::format::header;
use crate::bundle::format::locator::{Locator, SPAN};
use crate::bundle::format::names::{CONTENTS, DELTA, FRONT_LEN, LOCATOR, LOCK};
use crate::bundle::format::trailer::trailer;
use crate::bundle::pipeline;
use crate::bundle::plan::pack_plan::PackPlan;
use crate::bundle::plan::planned_entry::PlannedEntry;
use crate::content::BlobRead;
use crate::model::{Algorithm, Digest, Hasher};
use crate::report::Progress;
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::Path;

/// The index of a bundle of which nothing is written yet.
pub(crate) fn empty_contents(plan: &PackPlan, options: PackOptions) -> Contents {
    let entry = |entry: &PlannedEntry| TarEntry {
        name: entry.name.clone(),
        digest: entry.descriptor.digest.clone(),
        size: entry.descriptor.size,
        media_type: entry.descriptor.media_type.clone(),
        form: entry.form,
        offset: 0,
        frames: Vec::new(),
    };
    Contents {
        version: 1,
        landfall: env!("CARGO_PKG_VERSION").into(),
        options,
        requires: if plan.omitted.is_empty() { Vec::new() } else { vec![DELTA.into()] },
        locks: vec![LockName { name: LOCK.into(), fingerprint: plan.fingerprint.clone() }],
        partial: plan.missing.iter().map(|missing| missing.item.clone()).collect(),
        bases: plan.bases.clone(),
        omitted: plan.omitted.clone(),
        locator: 0,
        entries: plan.entries.iter().map(entry).collect(),
    }
}

/// Writes the whole bundle of `plan` to `out`, which is written at `path`. `contents` is its index, still empty; `sign`
/// makes the signature over it. Returns the bundle digest.
pub(crate) fn fill(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    path: &Path,
    out: &mut VolumeWriter,
    mut contents: Contents,
    sign: impl FnOnce(&Contents) -> Result<Option<Vec<u8>>, Error>,
    progress: &dyn Progress,
) -> Result<Digest, Error> {
    let failed = |source| Error::Write { path: path.into(), source };
    let entries =
        Entries { plan, blobs, level: contents.options.level, depth: pipeline::DEPTH, path, progress };
    let mut record = |place: usize, offset, frames| {
        let entry: &mut TarEntry = &mut contents.entries[place];
        (entry.offset, entry.frames) = (offset, frames);
        Ok(())
    };
    entries.append(0..FRONT_LEN, out, &mut record)?;
    let locator_at = out.end;
    // its place is kept; the index is not known yet
    let head = stored(&header::encode(LOCATOR, Locator::content_lens()[1] as u64));
    out.append(&head).and_then(|()| out.append(&[0; SPAN][head.len()..])).map_err(failed)?;
    entries.append(FRONT_LEN..plan.entries.len(), out, &mut record)?;
    contents.locator = locator_at;
    let signature = sign(&contents)?;
    let locator = finish(&contents, signature.as_deref(), out).map_err(failed)?;
    out.overwrite(&locator.frames().concat(), contents.locator).map_err(failed)?;
    plan.items.iter().for_each(|item| progress.item(&item.name));
    Ok(locator.sha256)
}

/// Writes the contents index and the trailer. Returns the locator, whose place is at the front.
pub(crate) fn finish(
    contents: &Contents,
    signature: Option<&[u8]>,
    out: &mut VolumeWriter,
) -> io::Result<Locator> {
    // twice, as its size stands before it: the whole text would take more memory than the index
    let (mut index, mut size) = (Hasher::new(Algorithm::Sha256), 0);
    contents.chunks(|chunk| {
        index.update(chunk);
        size += chunk.len() as u64;
        Ok(())
    })?;
    out.append(&stored(&header::encode(CONTENTS, size)))?;
    let offset = out.end;
    let (mut sizes, mut frames) = (Vec::new(), Sha256::new());
    contents.chunks(|chunk| {
        let frame = encode(Form::Compressed, contents.options.level, chunk)?;
        sizes.push((frame.len() as u32, chunk.len() as u32));
        frames.update(&frame);
        out.append(&frame)
    })?;
    let length = out.end - offset;
    out.append(&trailer(contents, &sizes, size, signature))?;
    Ok(Locator { offset, length, frames: frames.into(), size, sha256: index.finish() })
}
