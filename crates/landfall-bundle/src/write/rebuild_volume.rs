//! Rebuilds one volume of a bundle: packs the bundle again, and discards the bytes of the other
//! volumes.
//!
//! The contents index says how the bundle was packed, so it must be in the other volumes. If it was
//! in the lost volume, the whole bundle must be packed again.

use super::entry_writer::IndexBuilder;
use super::publish::{foreign, has_content, room};
use super::volume_writer::VolumeWriter;
use super::write_all;
use crate::error::BundleError;
use crate::format::names::{base_of, checksums_path, file_name, partial_path, volume_path};
use crate::plan::PackPlan;
use crate::read::Bundle;
use crate::read::volume_set::{VolumeSet, begins_volume, cannot_rebuild, hash_file, open_without};
use landfall_content::{BlobRead, ContentError, parent_folder, refuse_special, sync_folder};
use landfall_item::lockfile::Lock;
use landfall_model::report::Progress;
use landfall_model::{Digest, Failure};
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Rebuilds volume `number` of the split bundle at the locations `like`, and writes it to the
/// folder of the first location or, if `out` is given, as volume `number` of `out`. Content is read
/// from `blobs` or, if it is absent there, from the other volumes. The lock is read from the other
/// volumes or, if it cannot be read there, from `lock`. Returns the path and size of the volume.
///
/// # Errors
/// If the bundle has recipes, if other volumes are missing or damaged, if the contents index was in
/// the lost volume, if content is missing, or if the result differs from the lost volume.
pub fn write_volume(
    like: &[PathBuf],
    number: usize,
    out: Option<&Path>,
    lock: impl FnOnce() -> Result<Lock, Failure>,
    blobs: &dyn BlobRead,
    progress: &dyn Progress,
) -> Result<(PathBuf, u64), BundleError> {
    let base = base_of(like.first().map_or(Path::new(""), PathBuf::as_path));
    let set = VolumeSet::of(like).map_err(BundleError::open(&base))?;
    let base = set.as_ref().map_or(base, |set| set.base.clone());
    let lost = file_name(&volume_path(&base, number));
    let cannot = |why: &str| cannot_rebuild(&lost, why);
    let (bundle, part) = open_without(like, number, &cannot)?;
    let packed = bundle.contents();
    // recipes also depend on their bases, which may no longer be available
    if !packed.recipes.is_empty() {
        return Err(cannot(
            "the bundle has patches; pack it again with --since and --patches",
        ));
    }
    let lock = match bundle.lock() {
        Ok(lock) => lock,
        Err(_) => lock().map_err(|error| {
            Failure::refused(format!(
                "cannot rebuild {lost}: it contained the lock; name the lock with --lock FILE\n\
                 {error}"
            ))
        })?,
    };
    if lock.fingerprint() != *bundle.fingerprint() {
        return Err(cannot(&format!(
            "the bundle was packed from the lock with fingerprint {}, but this lock has {}",
            bundle.fingerprint(),
            lock.fingerprint()
        )));
    }
    let plan = PackPlan::repack(&lock, packed);
    let path = volume_path(out.unwrap_or(&base), number);
    let partial = partial_path(&path);
    let failed = BundleError::write(&path);
    let size = part.end - part.start;
    refuse_special(&path).map_err(failed)?;
    // next to the other volumes, what has this name is the damaged volume
    let is_beside = path == volume_path(&base, number);
    if !is_beside && has_content(&path) && !begins_volume(&path) {
        return Err(foreign(&path).into());
    }
    room(size, &path)?;
    progress.begin("pack", plan.items.len() as u64, plan.content_bytes());
    let written = File::create(&partial).map_err(failed).and_then(|file| {
        let blobs = StoreFirst {
            store: blobs,
            bundle: &bundle,
            lost: part.clone(),
        };
        let mut writer = VolumeWriter::only(file, part);
        let mut index = IndexBuilder::new(&plan, packed.options);
        // the release is part of the index, whose bytes must be the same
        index.contents.landfall.clone_from(&packed.landfall);
        // no signer: the signatures are in the last volume, which exists
        let digest = write_all(&plan, &blobs, index, &partial, &mut writer, None, progress)?;
        if digest != *bundle.digest() {
            return Err(cannot(&format!(
                "the result belongs to a bundle with the digest {digest} instead of {}: landfall \
                 {} wrote other bytes than landfall {}, which packed the bundle",
                bundle.digest(),
                env!("CARGO_PKG_VERSION"),
                packed.landfall
            )));
        }
        if writer.cuts_frame() {
            let why = "it does not begin or end at a frame, so a volume next to it is truncated";
            return Err(cannot(why));
        }
        writer.sync().map_err(failed)?;
        if let Some(expected) = set.as_ref().and_then(|set| set.sums.get(&number))
            && hash_file(&partial).map_err(failed)? != *expected
        {
            let sums = file_name(&checksums_path(&base));
            let why = format!("the SHA-256 of the result is not the one in {sums}");
            return Err(cannot(&why));
        }
        fs::rename(&partial, &path)
            .and_then(|()| sync_folder(parent_folder(&path)))
            .map_err(failed)
    });
    progress.end();
    if written.is_err() {
        // the first error is reported; the next run overwrites the file
        let _ = fs::remove_file(&partial);
    }
    written?;
    // all volumes are there now, so the bundle must open
    if out.is_none() {
        Bundle::open_at(like)?;
    }
    Ok((path, size))
}

/// Reads content from a store, or else from the existing volumes.
struct StoreFirst<'a> {
    store: &'a dyn BlobRead,
    bundle: &'a Bundle,
    lost: Range<u64>,
}

impl BlobRead for StoreFirst<'_> {
    fn stat(&self, digest: &Digest) -> Result<Option<u64>, ContentError> {
        if let Some(size) = self.store.stat(digest)? {
            return Ok(Some(size));
        }
        let entry = self.bundle.0.blob_entry(digest);
        let there = entry.filter(|entry| self.bundle.is_readable_without(&self.lost, entry));
        Ok(there.map(|entry| entry.size))
    }

    fn open(&self, digest: &Digest, offset: u64) -> Result<Box<dyn Read + Send>, ContentError> {
        let in_volumes = self.store.stat(digest)?.is_none() && self.stat(digest)?.is_some();
        if in_volumes {
            self.bundle.open(digest, offset)
        } else {
            self.store.open(digest, offset)
        }
    }
}
