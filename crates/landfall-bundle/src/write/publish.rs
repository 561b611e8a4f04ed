//! Publishing a bundle: all its files get their names, in an order that shows no bundle before it
//! is complete.

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

/// Gives everything its name: what was written as `partial`, in volumes with these checksums or in
/// one file, and the programs. Returns the files of the bundle, those beside it, and volumes of an
/// older one that none replaces.
///
/// Volumes of an older bundle go first, and an older bundle in the other form; then the new ones
/// come, and the first volume last. So whenever a first volume stands there, all the others are
/// those of the same bundle.
pub(crate) fn publish(
    partial: &Path,
    out: &Path,
    volume_sums: &[String],
    tools: &[CompanionFile],
    signer: Option<&Signer>,
) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>)> {
    let sync = || sync_folder(parent_folder(out));
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
    // while nothing has its name yet
    let signature = signing.transpose().map_err(io::Error::other)?;
    let older = if is_split {
        older_volumes(out, files.len())?
    } else {
        Vec::new()
    };
    // documents of an older bundle tell of that one
    for path in DOCUMENTS.map(|ending| suffixed(out, ending)) {
        let is_new = tools.iter().any(|tool| tool.path == path);
        if !is_new && path.is_file() && has(out, &path) {
            remove_file(&path)?;
        }
    }
    // those of an older bundle would call this one damaged
    if remove_other_form(out, is_split)?
        || has_sums
        || listed(out)
            .iter()
            .any(|(path, _)| path.file_name() == out.file_name())
    {
        checksums::remove(out)?;
    }
    if is_split {
        // the first one first: without it the others are no bundle
        older.iter().try_for_each(|path| remove_file(path))?;
        sync()?;
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
        sync()?;
        fs::rename(volume_path(partial, 1), volume_path(out, 1))?;
        fs::remove_file(partial)?;
    }
    sync()?;
    let paths = |files: Vec<(PathBuf, String)>| -> Vec<PathBuf> {
        files.into_iter().map(|(path, _)| path).collect()
    };
    let files = paths(files);
    let removed = older
        .into_iter()
        .filter(|path| !files.contains(path))
        .collect();
    Ok((files, paths(beside), removed))
}
