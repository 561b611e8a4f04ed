//! Packs a bundle from a store: writes `OUT.partial`, which is renamed when everything is on disk.

use super::entry_writer::EntryWriter;
use super::index_builder::IndexBuilder;
use super::old_files::remove_volumes;
use super::packaging::Packaging;
use super::partial_file::{claim, clear_work, room};
use super::publish::publish;
use super::sign::sign_index;
use super::volume_writer::VolumeWriter;
use crate::error::BundleError;
use crate::format::contents::PackOptions;
use crate::format::files::MAX_VOLUMES;
use crate::format::names::FRONT_LEN;
use crate::format::volume_size::VolumeSize;
use crate::pipeline;
use crate::plan::pack_plan::PackPlan;
use landfall_content::BlobRead;
use landfall_model::report::Progress;
use landfall_model::sign::Signer;
use landfall_model::{Digest, Limits};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// A bundle that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBundle {
    /// The bundle digest: SHA-256 of the contents index.
    pub digest: Digest,
    /// The size in bytes, of all volumes together.
    pub bytes: u64,
    /// The files of the bundle: one file, or its volumes.
    pub files: Vec<PathBuf>,
    /// The files next to the bundle: programs and documents, then the checksums and the signature
    /// over them.
    pub beside: Vec<PathBuf>,
    /// Volumes of an older bundle with this name that were removed without being replaced.
    pub removed: Vec<PathBuf>,
}

impl PackedBundle {
    /// A bundle in one file, with no other files.
    pub fn one_file(digest: &Digest, bytes: u64, out: &Path) -> PackedBundle {
        PackedBundle {
            digest: digest.clone(),
            bytes,
            files: vec![out.into()],
            beside: Vec::new(),
            removed: Vec::new(),
        }
    }
}

/// Writes the bundle, with volumes, programs and signatures as `packaging` says.
///
/// # Errors
/// If content is missing or damaged, if the bundle cannot be written or signed, if the volumes are
/// too small, or if a program cannot be copied.
pub fn write_packaged(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    packaging: &Packaging,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let index = IndexBuilder::new(plan, options);
    // before an unfinished `pull --bundle` is discarded
    index.check_size(out, &Limits::default())?;
    let (partial, file) = claim(out)?;
    // the lock on this file is held until the end
    let file = Arc::new(file);
    let failed = BundleError::write(out);
    // the work folder of an unfinished `pull --bundle` describes the old content of the file
    file.set_len(0)
        .and_then(|()| clear_work(&partial))
        .map_err(failed)?;
    let write = |flush| {
        // volumes are written next to the file, which then only serves as a lock
        let mut out = match packaging.volume_size {
            None => VolumeWriter::file(file.clone(), 0, Some(flush)),
            Some(size) => VolumeWriter::volumes(&partial, size.0, flush).map_err(failed)?,
        };
        out.expect(plan.stored_bytes());
        let digest = write_all(
            plan,
            blobs,
            index,
            &partial,
            &mut out,
            packaging.signer.as_deref(),
            progress,
        )?;
        // the flusher ends when its channel is closed
        out.close();
        match (out.smallest(), packaging.volume_size) {
            (Some(smallest), Some(VolumeSize(size))) => Err(BundleError::VolumeSize {
                size,
                limit: MAX_VOLUMES,
                smallest,
            }),
            _ => Ok((digest, out)),
        }
    };
    // a killed run may have left volumes; nobody writes them, because this run holds the lock
    let result = remove_volumes(&partial).map_err(failed).and_then(|()| {
        // after the removal of old volumes, whose space counts as free
        room(plan.needed_bytes(), out)?;
        let tools = packaging.tools(out)?;
        progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
        let written = flushing(write);
        progress.end();
        written.and_then(|((digest, written), flushed)| {
            let bytes = written.end;
            flushed.and_then(|()| written.sync()).map_err(failed)?;
            let (files, beside, removed) = publish(
                &partial,
                out,
                &written.sums(),
                &tools,
                packaging.signer.as_deref(),
            )
            .map_err(failed)?;
            Ok(PackedBundle {
                digest,
                bytes,
                files,
                beside,
                removed,
            })
        })
    });
    if result.is_err() {
        // the first error is reported; files that cannot be removed are overwritten by the next run
        let _ = remove_volumes(&partial);
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Writes the bundle in one pass to `out`, which is a pipe or a file. A file is written from its
/// current position on. `signer` signs the bundle.
///
/// # Errors
/// If content is missing or damaged, or the bundle cannot be written or signed.
pub fn write_to(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    mut out: File,
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let target = StreamTarget {
        name: Path::new("-"),
        out: &mut out,
    };
    write_stream(plan, blobs, target, options, signer, progress)
}

/// A stream that a bundle is written to, such as an upload.
pub struct StreamTarget<'a> {
    /// The name of the bundle, for messages.
    pub name: &'a Path,
    /// Receives the bytes in order.
    pub out: &'a mut (dyn Write + Send),
}

/// Like [`write_to`], to any stream.
///
/// # Errors
/// Like [`write_to`].
pub fn write_stream(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    target: StreamTarget<'_>,
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let StreamTarget { name, out } = target;
    let index = IndexBuilder::new(plan, options);
    index.check_size(name, &Limits::default())?;
    let mut out = VolumeWriter::stream(out);
    progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
    let digest = write_all(plan, blobs, index, name, &mut out, signer, progress);
    progress.end();
    Ok(PackedBundle {
        digest: digest?,
        bytes: out.end,
        files: Vec::new(),
        beside: Vec::new(),
        removed: Vec::new(),
    })
}

/// Writes the whole bundle of `plan` to `out`; `path` is for messages. Returns the bundle digest.
pub(super) fn write_all(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    mut index: IndexBuilder,
    path: &Path,
    out: &mut VolumeWriter,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<Digest, BundleError> {
    let level = index.contents.options.level;
    let entries = EntryWriter {
        plan,
        blobs,
        level,
        depth: pipeline::DEPTH,
        path,
        progress,
    };
    let mut counted = BTreeSet::new();
    entries.append(0..plan.entries.len(), out, |entry_index, offset, frames| {
        index.record(entry_index, offset, &frames);
        let item = &*plan.entries[entry_index].item;
        let next = plan.entries.get(entry_index + 1);
        // all stored blobs precede all compressed ones, and each kind is in the order of the items
        // that first need them. An item is counted after its first run of blobs, even if its
        // compressed blobs follow later
        if entry_index >= FRONT_LEN
            && next.is_none_or(|next| next.item != item)
            && counted.insert(item)
        {
            progress.item(item);
        }
        Ok(())
    })?;
    let digest = index.finish(out, path, |index| {
        signer
            .map(|signer| sign_index(signer, index, path))
            .into_iter()
            .collect()
    })?;
    // the items that were not counted, because earlier items need all their blobs as well
    let rest = plan
        .items
        .iter()
        .filter(|item| !counted.contains(&*item.name));
    rest.for_each(|item| progress.item(&item.name));
    Ok(digest)
}

/// Runs `work` while another thread syncs the files that `work` sends through the channel.
/// Therefore the progress is realistic on a slow disk, and little remains to be synced at the end.
fn flushing<T>(
    work: impl FnOnce(SyncSender<Arc<File>>) -> Result<T, BundleError>,
) -> Result<(T, io::Result<()>), BundleError> {
    thread::scope(|scope| {
        // at most one file waits to be synced, so that on a slow disk the writer slows down and
        // does not fill the page cache
        let (flush, files) = sync_channel::<Arc<File>>(1);
        let flusher = scope.spawn(move || files.into_iter().try_for_each(|file| file.sync_data()));
        let result = work(flush);
        let flushed = flusher
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, flushed))
    })
}
