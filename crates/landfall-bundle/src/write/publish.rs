//! Publishes a bundle: gives all its files their final names, in an order in which no incomplete
//! bundle can be opened.

use super::CompanionFile;
use crate::error::BundleError;
use crate::format::names::{
    DOCUMENTS, SUMS_NAMESPACE, checksums_path, partial_path, signature_path, suffixed, volume_path,
};
use crate::read::Bundle;
use crate::read::volume_set::{
    self, begins_bundle, begins_volume, has, hash_file, numbers, read as listed, sum_line,
};
use landfall_content as content;
use landfall_content::{DiskSpace, if_exists, parent_folder, refuse_special, sync_folder};
use landfall_model::sign::Signer;
use landfall_model::{Failure, TransferSide, human_size};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Renames the unfinished bundle `partial` and the programs and documents next to it. The bundle is
/// split if there are `volume_sums`, the checksums of its volumes. Returns the files of the bundle,
/// those next to it, and the volumes of an older bundle that were not replaced.
///
/// First the volumes of an older bundle are removed, and an older bundle in the other form. Then
/// the new volumes are renamed, the first one last. So whenever there is a first volume, all other
/// volumes belong to the same bundle.
pub(crate) fn publish(
    partial: &Path,
    out: &Path,
    volume_sums: &[String],
    tools: &[CompanionFile],
    signer: Option<&Signer>,
) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>)> {
    let folder = parent_folder(out);
    let is_split = !volume_sums.is_empty();
    let files: Vec<(PathBuf, String)> = if is_split {
        (1..)
            .map(|number| volume_path(out, number))
            .zip(volume_sums.iter().cloned())
            .collect()
    } else if tools.is_empty() {
        vec![(out.into(), String::new())]
    } else {
        vec![(out.into(), hash_file(partial)?)]
    };
    let mut beside: Vec<_> = tools
        .iter()
        .map(|tool| (tool.path.clone(), tool.sum.clone()))
        .collect();
    let has_sums = is_split || !tools.is_empty();
    let sums = has_sums.then(|| text(files.iter().chain(&beside)));
    let signing = sums
        .as_ref()
        .zip(signer)
        .map(|(text, signer)| signer.sign(SUMS_NAMESPACE, text));
    // signed before the first rename: if the key cannot be used, nothing has changed
    let signature = signing.transpose().map_err(io::Error::other)?;
    let older = if is_split {
        older_volumes(out, files.len())?
    } else {
        Vec::new()
    };
    // the documents of an older bundle do not describe this one
    for path in DOCUMENTS.map(|ending| suffixed(out, ending)) {
        let is_new = tools.iter().any(|tool| tool.path == path);
        if !is_new && path.is_file() && has(out, &path) {
            remove_file(&path)?;
        }
    }
    // with the checksums of an older bundle, this one would look damaged
    if remove_other_form(out, is_split)?
        || has_sums
        || listed(out)
            .iter()
            .any(|(path, _)| path.file_name() == out.file_name())
    {
        remove(out)?;
    }
    if is_split {
        // volume 1 first: without it, the others cannot be opened as a bundle
        older.iter().try_for_each(|path| remove_file(path))?;
        sync_folder(folder)?;
        for number in (2..=files.len()).rev() {
            fs::rename(volume_path(partial, number), volume_path(out, number))?;
        }
    } else {
        fs::rename(partial, out)?;
    }
    for tool in tools {
        fs::rename(&tool.partial, &tool.path)?;
    }
    for (path, text) in [
        (checksums_path(out), sums),
        (signature_path(out), signature.map(String::into_bytes)),
    ] {
        if let Some(text) = text {
            write(&path, &text)?;
            beside.push((path, String::new()));
        }
    }
    if is_split {
        // the other volumes must be on disk before the one that makes them a bundle
        sync_folder(folder)?;
        fs::rename(volume_path(partial, 1), volume_path(out, 1))?;
        // with volumes, this file was only a lock
        fs::remove_file(partial)?;
    }
    sync_folder(folder)?;
    let files: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
    let beside = beside.into_iter().map(|(path, _)| path).collect();
    let removed = older
        .into_iter()
        .filter(|path| !files.contains(path))
        .collect();
    Ok((files, beside, removed))
}

/// Checks that a bundle may be written to `out`: an older bundle is replaced.
///
/// # Errors
/// If `out` is a file of others.
pub fn check_bundle_path(out: &Path) -> Result<(), Failure> {
    if has_content(out) && !begins_bundle(out) {
        return Err(foreign(out));
    }
    Ok(())
}

/// Opens or creates `OUT.partial`, and locks it against other processes. Fails if one of the names
/// that the bundle needs belongs to something other than a regular file.
pub(crate) fn claim(out: &Path) -> Result<(PathBuf, File), BundleError> {
    let path = partial_path(out);
    let failed = BundleError::write(&path);
    let beside = [
        out.to_path_buf(),
        path.clone(),
        checksums_path(out),
        signature_path(out),
    ];
    let volumes = numbers(out)
        .map_err(failed)?
        .into_iter()
        .map(|number| volume_path(out, number));
    // checked before anything is written: a rename would replace a device or a link with a file
    for path in beside.into_iter().chain(volumes) {
        refuse_special(&path).map_err(BundleError::write(&path))?;
    }
    check_bundle_path(out)?;
    let file = content::lock_partial_file(&path).map_err(failed)?;
    let file = file.ok_or_else(|| BundleError::busy(&path))?;
    Ok((path, file))
}

/// Fails if one of the first `count` volumes of `out` has the name of a file of others.
pub(super) fn refuse_foreign_volumes(out: &Path, count: usize) -> Result<(), BundleError> {
    let listed = volume_set::of_volumes(out);
    let present = numbers(out).map_err(BundleError::write(out))?;
    for number in present.into_iter().filter(|number| *number <= count) {
        let path = volume_path(out, number);
        if has_content(&path) && !listed.contains_key(&number) && !begins_volume(&path) {
            return Err(foreign(&path).into());
        }
    }
    Ok(())
}

/// Fails if the checksums next to `out`, or the signature over them, are a file of others. The
/// checksums of an older bundle with this name list its files.
pub(super) fn refuse_foreign_sums(out: &Path) -> Result<(), BundleError> {
    if !listed(out).is_empty() {
        return Ok(());
    }
    let foreign = [checksums_path(out), signature_path(out)];
    match foreign.iter().find(|path| has_content(path)) {
        None => Ok(()),
        Some(path) => Err(BundleError::from(
            Failure::usage(format!(
                "{} exists and has no checksums of this bundle; nothing was written",
                path.display()
            ))
            .with_help(OTHER_NAME),
        )),
    }
}

pub(super) fn has_content(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.len() > 0)
}

const OTHER_NAME: &str = "name another bundle, or move the file away";

/// The failure for a file of others with the name of a bundle or volume.
pub(super) fn foreign(path: &Path) -> Failure {
    let path = path.display();
    Failure::usage(format!(
        "{path} exists and is not a bundle; nothing was written"
    ))
    .with_help(OTHER_NAME)
}

/// Fails if the disk has less than `needed` bytes free.
pub(crate) fn room(needed: u64, out: &Path) -> Result<(), BundleError> {
    let folder = parent_folder(out);
    let room = DiskSpace::measure(folder, needed).map_err(BundleError::write(folder))?;
    // `needed` is the largest possible size, because compression cannot be predicted
    if room.is_enough() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{} has {} free ({} bytes), the bundle may need {} ({needed} bytes); make room or write \
         it elsewhere",
        room.folder.display(),
        room.shown_free(),
        room.free.unwrap_or_default(),
        human_size(needed)
    ))
    .on(TransferSide::Destination)
    .into())
}

/// The work folder next to the partial file at `path`, in which `pull --bundle` keeps its journal
/// and spool.
pub(crate) fn work_folder(path: &Path) -> PathBuf {
    suffixed(path, ".work")
}

/// Removes the work folder of the partial file at `path`, if it exists.
pub(crate) fn clear_work(path: &Path) -> io::Result<()> {
    if_exists(fs::remove_dir_all(work_folder(path))).map(drop)
}

/// Removes a file, if it exists.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    if_exists(fs::remove_file(path)).map(drop)
}

/// The old volumes of `out` to remove when `count` new ones are written: those with the names of
/// new volumes, those in the checksum file, and those whose content begins like a volume. Other
/// files with names like `out.0007` are not included.
pub(super) fn older_volumes(out: &Path, count: usize) -> io::Result<Vec<PathBuf>> {
    let listed = volume_set::of_volumes(out);
    let numbers = numbers(out)?.into_iter();
    let older = numbers.filter(|number| {
        *number <= count || listed.contains_key(number) || begins_volume(&volume_path(out, *number))
    });
    Ok(older.map(|number| volume_path(out, number)).collect())
}

/// Removes an older bundle with the name `out` in the other form (volumes instead of a file, or the
/// reverse), which would be read instead of the new one. Files that are not a bundle are kept.
/// Returns whether such a bundle existed.
pub(super) fn remove_other_form(out: &Path, is_split: bool) -> io::Result<bool> {
    let other = if is_split {
        out.to_path_buf()
    } else {
        volume_path(out, 1)
    };
    // a file of the user with this name is not removed, but a damaged bundle is
    if !other.is_file() || (Bundle::open(&other).is_err() && !begins_bundle(&other)) {
        return Ok(false);
    }
    if is_split {
        remove_file(out)?;
    } else {
        for path in older_volumes(out, 0)? {
            remove_file(&path)?;
        }
    }
    Ok(true)
}

/// Removes all volumes of the unfinished bundle `base`, in order.
pub(super) fn remove_volumes(base: &Path) -> io::Result<()> {
    numbers(base)?
        .into_iter()
        .try_for_each(|number| remove_file(&volume_path(base, number)))
}

// Writes `B.sha256sums` in the format of `sha256sum`.

/// The checksum lines for `files`, in order.
pub(super) fn text<'a>(files: impl Iterator<Item = &'a (PathBuf, String)>) -> Vec<u8> {
    files
        .flat_map(|(path, hex)| sum_line(hex, path.file_name().unwrap_or_default()))
        .collect()
}

/// Replaces the checksum of `file` in `text`.
pub(super) fn replaced(text: &[u8], file: &Path, hex: &str) -> Vec<u8> {
    let own = sum_line(hex, file.file_name().unwrap_or_default());
    // only the hex digits may differ; the line of an escaped name begins with a backslash before
    // them
    let from = usize::from(own.first() == Some(&b'\\'));
    let own_name = without_digits(&own, from);
    text.split_inclusive(|byte| *byte == b'\n')
        .flat_map(|old| {
            if without_digits(old, from) == own_name {
                own.clone()
            } else {
                old.to_vec()
            }
        })
        .collect()
}

/// A line without the 64 hex digits at `from`; `None` if it is shorter.
fn without_digits(line: &[u8], from: usize) -> Option<Vec<u8>> {
    Some([line.get(..from)?, line.get(from + 64..)?].concat())
}

/// Writes a small file completely or not at all.
pub(super) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let partial = partial_path(path);
    let written = write_synced(&partial, text).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // the first error is reported
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Writes a file that will be renamed, and syncs it to disk: after a crash, the final name must not
/// refer to incomplete content.
pub(super) fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Removes the checksums, and the signature over them.
pub(super) fn remove(base: &Path) -> io::Result<()> {
    [signature_path(base), checksums_path(base)]
        .iter()
        .try_for_each(|path| remove_file(path))
}
