//! Publishes a bundle: gives all its files their final names, in an order in which no incomplete
//! bundle can be opened.

use super::checksums;
use super::old_files::{older_volumes, remove_file, remove_other_form};
use super::packaging::CompanionFile;
use crate::format::files::{DOCUMENTS, checksums_path, signature_path, suffixed, volume_path};
use crate::format::names::SUMS_NAMESPACE;
use crate::read::checksums::{has, hash_file, read as listed};
use landfall_content::{parent_folder, sync_folder};
use landfall_model::sign::Signer;
use std::fs;
use std::io;
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
    let sums = has_sums.then(|| checksums::text(files.iter().chain(&beside)));
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
        checksums::remove(out)?;
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
            checksums::write(&path, &text)?;
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
