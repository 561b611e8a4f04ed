//! Writing a bundle from a store: into `OUT.partial` beside it, which gets its name when everything is on disk.

use super::fill::{empty_contents, fill};
use super::packaging::Packaging;
use super::partial_file::{claim, clear_work, room};
use super::publish::publish;
use super::remove::remove_volumes;
use super::sign::sign;
use super::volume_writer::VolumeWriter;
use crate::bundle::error::Error;
use crate::bundle::format::contents::{Contents, PackOptions};
use crate::bundle::format::files::MAX_VOLUMES;
use crate::bundle::format::volume_size::VolumeSize;
use crate::bundle::plan::pack_plan::PackPlan;
use crate::content::BlobRead;
use crate::model::Digest;
use crate::report::Progress;
use std::fs::{self, File};
use std::io;
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
}

impl PackedBundle {
    /// A bundle in one file, with nothing beside it.
    pub(crate) fn one_file(digest: &Digest, bytes: u64, out: &Path) -> PackedBundle {
        PackedBundle { digest: digest.clone(), bytes, files: vec![out.into()], beside: Vec::new() }
    }
}

/// Writes the bundle in volumes, with programs beside it, or signed, as `packaging` says.
///
/// # Errors
/// As [`write`]; and when the volumes are too small, a program cannot be copied, or nothing can be signed.
pub fn write_packaged(
    plan: &PackPlan,
    blobs: &dyn BlobRead,
    out: &Path,
    options: PackOptions,
    packaging: &Packaging,
    progress: &dyn Progress,
) -> Result<PackedBundle, Error> {
    let (partial, file) = claim(out)?;
    // it is locked until the end
    let file = Arc::new(file);
    let failed = |source| Error::Write { path: out.into(), source };
    // what an unfinished `pull --bundle` left belongs to the file's old content
    file.set_len(0).and_then(|()| clear_work(&partial)).map_err(failed)?;
    let write = |flush| {
        // volumes lie beside the file, which then is but a lock
        let mut out = match packaging.volume_size {
            None => VolumeWriter::file(file.clone(), 0, Some(flush)),
            Some(size) => VolumeWriter::volumes(&partial, size.0, flush).map_err(failed)?,
        };
        out.expect(plan.stored_bytes());
        let signer = packaging.signer.as_deref();
        let sign = |contents: &Contents| signer.map(|signer| sign(signer, contents, &partial)).transpose();
        let digest = fill(plan, blobs, &partial, &mut out, empty_contents(plan, options), sign, progress)?;
        out.close();
        match (out.smallest(), packaging.volume_size) {
            (Some(smallest), Some(VolumeSize(size))) => {
                Err(Error::VolumeSize { size, most: MAX_VOLUMES, smallest })
            }
            _ => Ok((digest, out)),
        }
    };
    let result = remove_volumes(&partial).map_err(failed).and_then(|()| {
        room(plan.needed_bytes(), out)?;
        let tools = packaging.tools(out)?;
        progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
        let filled = flushing(write);
        progress.end();
        filled.and_then(|((digest, filled), flushed)| {
            let publish = || {
                flushed?;
                filled.sync()?;
                publish(&partial, out, &filled.sums()?, &tools, packaging.signer.as_deref())
            };
            let (files, beside) = publish().map_err(failed)?;
            Ok(PackedBundle { digest, bytes: filled.end, files, beside })
        })
    });
    if result.is_err() {
        // the first error is reported; the next run reuses the files if they stay
        let _ = remove_volumes(&partial);
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Runs `work` beside a thread that syncs the files which it receives to disk. So progress is honest on a slow
/// disk, and little is left to wait for at the end.
fn flushing<T>(
    work: impl FnOnce(SyncSender<Arc<File>>) -> Result<T, Error>,
) -> Result<(T, io::Result<()>), Error> {
    thread::scope(|scope| {
        let (flush, wanted) = sync_channel::<Arc<File>>(1);
        let flusher = scope.spawn(move || wanted.into_iter().try_for_each(|file| file.sync_data()));
        let result = work(flush);
        let flushed = flusher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((result?, flushed))
    })
}
