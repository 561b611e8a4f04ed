//! Writes rendered files into a folder, and finds stale files of earlier runs there.

use super::error::RenderError;
use super::rendered_file::{HEAD, RenderedFile};
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Writes `files` into `folder`. Each file is replaced atomically.
///
/// # Errors
/// Before anything is written: if the path of a file leads out of `folder`. Afterwards: if a file
/// cannot be written. The error contains its path.
pub fn write_files(folder: &Path, files: &[RenderedFile]) -> Result<(), RenderError> {
    if let Some(file) = files.iter().find(|file| !stays_below(&file.path)) {
        return Err(RenderError::Outside(file.path.clone()));
    }
    for file in files {
        let path = folder.join(&file.path);
        write_file(&path, file).map_err(|source| RenderError::Write { path, source })?;
    }
    Ok(())
}

/// Whether each component of `path` is the name of a file or folder. Parts of a path may come from
/// a lock, which is untrusted.
fn stays_below(path: &str) -> bool {
    let mut components = Path::new(path).components().peekable();
    components.peek().is_some() && components.all(|part| matches!(part, Component::Normal(_)))
}

fn write_file(path: &Path, file: &RenderedFile) -> std::io::Result<()> {
    let folder = landfall_content::parent_folder(path);
    fs::create_dir_all(folder)?;
    // a rename would replace a device or a link by a plain file
    landfall_content::refuse_special(path)?;
    // a temporary file is readable only by its owner, so other users can never read credentials
    let mut written = tempfile::Builder::new()
        .prefix(".landfall-")
        .tempfile_in(folder)?;
    written.write_all(file.text.as_bytes())?;
    written
        .as_file()
        .set_permissions(Permissions::from_mode(file.mode))?;
    written.as_file().sync_all()?;
    written.persist(path).map_err(|error| error.error)?;
    landfall_content::sync_folder(folder)
}

/// Returns the files in `folder` that an earlier run of `platform` wrote, according to their
/// headers, and that are not in `files`, such as the hosts.toml of a host that is no longer locked.
pub fn stale_files(folder: &Path, platform: &str, files: &[RenderedFile]) -> Vec<PathBuf> {
    let written: BTreeSet<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    let mut folders = vec![folder.to_owned()];
    let mut stale = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind)
                    if kind.is_file()
                        && !written.contains(&path)
                        && has_header_of(&path, platform) =>
                {
                    stale.push(path);
                }
                _ => {}
            }
        }
    }
    stale.sort();
    stale
}

/// The number of bytes at the start of a file that are searched for its header.
const HEADER_BYTES: u64 = 1 << 10;

fn has_header_of(path: &Path, platform: &str) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let head = format!("{HEAD}landfall render {platform}");
    // the header is on the second line if the format needs the first one, as for `#!/bin/sh`
    let mut first_lines = text.lines().take(2);
    read.is_ok()
        && first_lines.any(|line| {
            line.strip_prefix(&*head)
                // the whole name: `kube` must not match `kubeadm`
                .is_some_and(|rest| rest.starts_with(['`', ' ']))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_if_a_path_leads_out_of_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        for path in ["../x", "a/../../x", "a/..", "/x", "", ".", "./x"] {
            let files = ["first", path].map(|path| RenderedFile::new(path, "x"));
            let error = write_files(&folder, &files).unwrap_err();
            assert!(matches!(error, RenderError::Outside(_)), "{path}: {error}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        write_files(&folder, &[RenderedFile::new("a/..b", "x")]).unwrap();
        assert!(folder.join("a/..b").is_file());
    }
}
