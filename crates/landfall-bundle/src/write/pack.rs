//! Writing a bundle from a store: into `OUT.partial` beside it, which gets its name when everything
//! is on disk.

use super::entries::Entries;
use super::index_builder::IndexBuilder;
use super::packaging::Packaging;
use super::partial_file::{claim, clear_work, room};
use super::publish::publish;
use super::remove::remove_volumes;
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

/// A bundle that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBundle {
    /// The bundle digest: SHA-256 of the contents index.
    pub digest: Digest,
    /// Its size in bytes, of all volumes together.
    pub bytes: u64,
    /// The files that it is made of: one, or its volumes.
    pub files: Vec<PathBuf>,
    /// The files beside it: programs, then the checksums.
    pub beside: Vec<PathBuf>,
    /// Volumes of an older bundle of its name that were removed, and that none of its own replaces.
    pub removed: Vec<PathBuf>,
}

impl PackedBundle {
    /// A bundle in one file, with nothing beside it.
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

/// Writes the bundle in volumes, with programs beside it, or signed, as `packaging` says.
///
/// # Errors
/// As [`write`]; and when the volumes are too small, a program cannot be copied, or nothing can be
/// signed.
pub fn write_packaged(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    packaging: &Packaging,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let (partial, file) = claim(out)?;
    // it is locked until the end
    let file = Arc::new(file);
    let failed = |source| BundleError::Write {
        path: out.into(),
        source,
    };
    // what an unfinished `pull --bundle` left belongs to the file's old content
    file.set_len(0)
        .and_then(|()| clear_work(&partial))
        .map_err(failed)?;
    let index = IndexBuilder::new(plan, options);
    index.check_size(out, &Limits::default())?;
    let write = |flush| {
        // volumes lie beside the file, which then is but a lock
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
        out.close();
        match (out.smallest(), packaging.volume_size) {
            (Some(smallest), Some(VolumeSize(size))) => Err(BundleError::VolumeSize {
                size,
                most: MAX_VOLUMES,
                smallest,
            }),
            _ => Ok((digest, out)),
        }
    };
    let result = remove_volumes(&partial).map_err(failed).and_then(|()| {
        room(plan.needed_bytes(), out)?;
        let tools = packaging.tools(out)?;
        progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
        let written = flushing(write);
        progress.end();
        written.and_then(|((digest, written), flushed)| {
            let bytes = written.end;
            let publish = || {
                flushed?;
                written.sync()?;
                publish(
                    &partial,
                    out,
                    &written.sums(),
                    &tools,
                    packaging.signer.as_deref(),
                )
            };
            let (files, beside, removed) = publish().map_err(failed)?;
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
        // the first error is reported; the next run reuses the files if they stay
        let _ = remove_volumes(&partial);
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Writes the bundle to `out`, a pipe or a file from where it stands, in one pass. `signer` signs
/// it.
///
/// # Errors
/// As [`write_packaged`], but for what is about files beside it.
pub fn write_to(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    mut out: File,
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    write_stream(
        plan,
        blobs,
        (Path::new("-"), &mut out),
        options,
        signer,
        progress,
    )
}

/// As [`write_to`], to anything that takes bytes in their order; with what it is called.
///
/// # Errors
/// As there.
pub fn write_stream(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    (path, out): (&Path, &mut (dyn Write + Send)),
    options: PackOptions,
    signer: Option<&Signer>,
    progress: &dyn Progress,
) -> Result<PackedBundle, BundleError> {
    let index = IndexBuilder::new(plan, options);
    index.check_size(path, &Limits::default())?;
    let mut out = VolumeWriter::stream(out);
    progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
    let digest = write_all(plan, blobs, index, path, &mut out, signer, progress);
    progress.end();
    Ok(PackedBundle {
        digest: digest?,
        bytes: out.end,
        files: Vec::new(),
        beside: Vec::new(),
        removed: Vec::new(),
    })
}

/// Writes all of the bundle of `plan` to `out`, which is at `path`. Returns the bundle digest.
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
    let entries = Entries {
        plan,
        blobs,
        level,
        depth: pipeline::DEPTH,
        path,
        progress,
    };
    let mut counted = BTreeSet::new();
    entries.append(0..plan.entries.len(), out, |place, offset, frames| {
        index.record(place, offset, &frames);
        let (item, next) = (&*plan.entries[place].item, plan.entries.get(place + 1));
        // blobs stand in the order of the items that need them first
        if place >= FRONT_LEN && next.is_none_or(|next| next.item != item) && counted.insert(item) {
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
    // all that these have is in others, too
    let rest = plan
        .items
        .iter()
        .filter(|item| !counted.contains(&*item.name));
    rest.for_each(|item| progress.item(&item.name));
    Ok(digest)
}

/// Runs `work` beside a thread that syncs the files which it receives to disk. So progress is
/// honest on a slow disk, and little is left to wait for at the end.
fn flushing<T>(
    work: impl FnOnce(SyncSender<Arc<File>>) -> Result<T, BundleError>,
) -> Result<(T, io::Result<()>), BundleError> {
    thread::scope(|scope| {
        let (flush, wanted) = sync_channel::<Arc<File>>(1);
        let flusher = scope.spawn(move || wanted.into_iter().try_for_each(|file| file.sync_data()));
        let result = work(flush);
        let flushed = flusher
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, flushed))
    })
}
