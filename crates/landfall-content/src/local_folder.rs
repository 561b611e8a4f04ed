//! The files of a folder next to a manifest: all of them, those that match a pattern, or a tar
//! archive of them.
//!
//! A symbolic link to a file counts as that file. Links to folders, links out of the outer folder,
//! pipes and devices are errors, since content must not be missing silently.

use crate::helm_ignore::HelmIgnore;
use flate2::Compression;
use flate2::write::GzEncoder;
use landfall_model::document::{open_input, read_text_input};
use landfall_model::{Limits, Wildcards};
use landfall_os::{EXECUTABLE, mode_of};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Regular files by their paths relative to a folder, with `/` between components. The values are
/// canonical paths.
pub type FolderFiles = BTreeMap<String, PathBuf>;

/// Matches any number of folders.
const ANY_FOLDERS: &str = "**";

/// A walk through the files below `outer`, a canonical path.
struct FolderWalk<'a> {
    outer: &'a Path,
    /// How many files and folders may still be visited.
    budget: usize,
    files: FolderFiles,
}

/// The regular files below `folder`. `outer` is the folder that links must not leave. Both are
/// canonical.
///
/// # Errors
/// If a file or folder cannot be read or is not allowed, or there are too many.
pub fn files_below(outer: &Path, folder: &Path, limits: &Limits) -> io::Result<FolderFiles> {
    let mut walk = FolderWalk::new(outer, limits);
    walk.matching(folder, "", &[ANY_FOLDERS, "*"], true)?;
    Ok(walk.files)
}

/// The regular files below `outer`, a canonical path, that match `pattern`: `*` and `?` match
/// within a name, and `**` matches any folders. As in a shell, a leading dot must be written.
///
/// # Errors
/// If a matching file cannot be read or is not allowed, or too many files and folders are visited.
pub fn matching_files(outer: &Path, pattern: &str, limits: &Limits) -> io::Result<FolderFiles> {
    let mut components: Vec<&str> = pattern.split('/').collect();
    if components.last() == Some(&ANY_FOLDERS) {
        components.push("*");
    }
    let mut walk = FolderWalk::new(outer, limits);
    walk.matching(outer, "", &components, false)?;
    Ok(walk.files)
}

impl<'a> FolderWalk<'a> {
    fn new(outer: &'a Path, limits: &Limits) -> FolderWalk<'a> {
        FolderWalk {
            outer,
            budget: limits.local_files,
            files: FolderFiles::new(),
        }
    }

    /// Adds the files in `folder`, whose relative path is `above`, that match `pattern`.
    fn matching(
        &mut self,
        folder: &Path,
        above: &str,
        pattern: &[&str],
        with_hidden: bool,
    ) -> io::Result<()> {
        let Some((&first, rest)) = pattern.split_first() else {
            return Ok(());
        };
        if first == ANY_FOLDERS {
            self.matching(folder, above, rest, with_hidden)?;
        }
        let named = |error: io::Error| in_path(above, &error);
        for entry in std::fs::read_dir(folder).map_err(named)? {
            self.budget = self.budget.checked_sub(1).ok_or_else(|| {
                io::Error::other("it has too many files and folders; name a smaller folder")
            })?;
            let entry = entry.map_err(named)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let name = name.to_string_lossy();
                return Err(in_path(above, &format!("the name {name} is not UTF-8")));
            };
            let is_hidden = name.starts_with('.') && !first.starts_with('.') && !with_hidden;
            if is_hidden || !(first == ANY_FOLDERS || Wildcards::SHELL.matches(first, name)) {
                continue;
            }
            let path = if above.is_empty() {
                name.to_owned()
            } else {
                format!("{above}/{name}")
            };
            let kind = entry.file_type().map_err(named)?;
            if kind.is_dir() {
                let inner = if first == ANY_FOLDERS { pattern } else { rest };
                self.matching(&entry.path(), &path, inner, with_hidden)?;
            } else if rest.is_empty() {
                let file = regular_file(self.outer, &entry.path())
                    .map_err(|error| in_path(&path, &error))?;
                self.files.insert(path, file);
            }
        }
        Ok(())
    }
}

/// The error `why` about a path; an empty path is that of the folder itself.
fn in_path(path: &str, why: &impl std::fmt::Display) -> io::Error {
    if path.is_empty() {
        io::Error::other(why.to_string())
    } else {
        io::Error::other(format!("{path}: {why}"))
    }
}

/// The canonical path of a regular file below `outer`.
fn regular_file(outer: &Path, path: &Path) -> io::Result<PathBuf> {
    let file = path.canonicalize()?;
    if !file.starts_with(outer) {
        return Err(io::Error::other(format!(
            "the symbolic link leads out of the folder, to {}",
            file.display()
        )));
    }
    match std::fs::metadata(&file)?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(io::Error::other("it is a symbolic link to a folder")),
        _ => Err(io::Error::other(
            "it is a pipe, socket or device, not a file",
        )),
    }
}

/// Whether the owner may execute a file. On Windows, no file has this permission.
pub fn is_executable(metadata: &Metadata) -> bool {
    mode_of(metadata) & EXECUTABLE != 0
}

/// Writes the files of `folder` into a tar archive, an unnamed temporary file. `outer` is the
/// folder that links must not leave. Both are canonical. Of the metadata of a file, only the
/// permission to execute it counts. Fails as [`files_below`] does, and if a file changes while it
/// is read.
pub(crate) fn tar_of_folder(outer: &Path, folder: &Path, limits: &Limits) -> io::Result<File> {
    let files = files_below(outer, folder, limits)?;
    let out = BufWriter::new(tempfile::tempfile()?);
    write_tar(files, "", out)?
        .into_inner()
        .map_err(io::Error::from)
}

/// Packs the chart in `folder` as `helm package` does, without the files that `.helmignore` names,
/// into an unnamed temporary file. The top-level folder of the archive is called `name`. Nothing is
/// compressed, so the bytes do not depend on a version of a compressor. Fails as [`tar_of_folder`]
/// does, and if `.helmignore` cannot be read.
pub(crate) fn chart_of_folder(
    outer: &Path,
    folder: &Path,
    name: &str,
    limits: &Limits,
) -> io::Result<File> {
    let mut files = files_below(outer, folder, limits)?;
    let ignore = match files.get(".helmignore") {
        Some(file) => read_text_input(file)?,
        None => String::new(),
    };
    let ignore = HelmIgnore::parse(&ignore)?;
    files.retain(|path, _| !ignore.ignores_file(path));
    let out = BufWriter::new(tempfile::tempfile()?);
    let packed = write_tar(
        files,
        &format!("{name}/"),
        GzEncoder::new(out, Compression::none()),
    )?;
    let written = packed.finish()?;
    written.into_inner().map_err(io::Error::from)
}

/// Writes a tar archive of `files`, whose names get the prefix `above`, to `out`.
fn write_tar<W: Write>(files: FolderFiles, above: &str, out: W) -> io::Result<W> {
    let mut archive = tar::Builder::new(out);
    for (path, file) in files {
        let mut file = open_input(&file).map_err(|error| in_path(&path, &error))?;
        let metadata = file.metadata()?;
        let mut header = tar::Header::new_gnu();
        header.set_size(metadata.len());
        header.set_mode(if is_executable(&metadata) {
            0o755
        } else {
            0o644
        });
        let mut content = (&mut file).take(metadata.len());
        archive.append_data(&mut header, format!("{above}{path}"), &mut content)?;
        // fewer bytes than the header says would move everything behind them
        let is_short = content.limit() > 0;
        if is_short || file.metadata()?.len() != metadata.len() {
            return Err(in_path(&path, &"the file changed while it was read"));
        }
    }
    archive.into_inner()
}
