//! Files to rewrite: found, read, and written so that a killed run leaves the old or the new file.

use super::RewriteError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is looked at in folders.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// Folders of version control.
const VCS: [&str; 8] = [".git", ".hg", ".svn", ".bzr", ".jj", ".pijul", "_darcs", "CVS"];

/// A file to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its path as the user named it or the folder it is in.
    pub path: PathBuf,
    /// Its place below a folder of results: the path inside the named folder, or the file name.
    pub relative: PathBuf,
}

/// Every file that `paths` name: files as they are, folders recursively (`*.yaml`, `*.yml`, `*.json`),
/// sorted within each. Folders of version control and `out`, the folder of results where there is one,
/// are passed over. A symbolic link inside a folder counts where it leads to a file in that folder.
///
/// # Errors
/// When a path cannot be read; when a result in `out` would be written over another or over its input.
pub fn inputs(paths: &[PathBuf], out: Option<&Path>) -> Result<Vec<Input>, RewriteError> {
    inputs_that(paths, out, is_document)
}

/// As [`inputs`], of folders the files that `fits`.
pub(super) fn inputs_that(
    paths: &[PathBuf],
    out: Option<&Path>,
    fits: fn(&Path) -> bool,
) -> Result<Vec<Input>, RewriteError> {
    let real_out = out.and_then(|path| path.canonicalize().ok());
    let mut found = Vec::new();
    for path in paths {
        let at = |source| RewriteError::Read { path: path.clone(), source };
        if fs::File::open(path).and_then(|file| file.metadata()).map_err(at)?.is_dir() {
            let root = path.canonicalize().map_err(at)?;
            walk(&Folder { named: path, root: &root, out: real_out.as_deref(), fits }, path, &mut found)?;
        } else {
            let relative = path.file_name().map_or_else(|| path.clone(), PathBuf::from);
            found.push(Input { path: path.clone(), relative });
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|input| seen.insert(input.path.clone()));
    if let Some(out) = out {
        refuse_overwriting(&found, out)?;
    }
    Ok(found)
}

fn refuse_overwriting(found: &[Input], out: &Path) -> Result<(), RewriteError> {
    let mut places: BTreeMap<&Path, &Path> = BTreeMap::new();
    for input in found {
        let place = out.join(&input.relative);
        if place.canonicalize().is_ok_and(|place| input.path.canonicalize().is_ok_and(|path| path == place)) {
            return Err(RewriteError::Overwrite { path: input.path.clone() });
        }
        if let Some(first) = places.insert(&input.relative, &input.path) {
            return Err(RewriteError::Clash { first: first.into(), second: input.path.clone(), place });
        }
    }
    Ok(())
}

/// A named folder.
struct Folder<'a> {
    named: &'a Path,
    /// The same without links.
    root: &'a Path,
    /// Where results go, without links.
    out: Option<&'a Path>,
    /// Which files are looked at.
    fits: fn(&Path) -> bool,
}

/// Whether a file is a YAML or JSON document by its name.
pub(super) fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

fn walk(folder: &Folder<'_>, dir: &Path, found: &mut Vec<Input>) -> Result<(), RewriteError> {
    let at = |source| RewriteError::Read { path: dir.into(), source };
    let entries: Result<Vec<fs::DirEntry>, io::Error> = fs::read_dir(dir).map_err(at)?.collect();
    let mut entries = entries.map_err(at)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(at)?);
        if kind.is_dir() {
            let passed_over = VCS.iter().any(|name| entry.file_name() == *name)
                || folder.out.is_some_and(|out| path.canonicalize().is_ok_and(|path| path == out));
            if !passed_over {
                walk(folder, &path, found)?;
            }
            continue;
        }
        let inside = || path.canonicalize().is_ok_and(|path| path.starts_with(folder.root) && path.is_file());
        if (folder.fits)(&path) && (kind.is_file() || (kind.is_symlink() && inside())) {
            let relative = path.strip_prefix(folder.named).unwrap_or(&path).to_path_buf();
            found.push(Input { path, relative });
        }
    }
    Ok(())
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read or is no UTF-8.
pub fn read(path: &Path) -> Result<String, RewriteError> {
    let bytes = fs::read(path).map_err(|source| RewriteError::Read { path: path.into(), source })?;
    String::from_utf8(bytes).map_err(|_| RewriteError::Encoding)
}

/// Writes `text` to `to` by a temporary file beside it and a rename, with the permissions of `from`.
/// Where `to` is `from`, owner and group stay too, and a symbolic link stays one. Folders are made.
///
/// # Errors
/// When the system refuses.
pub fn write(from: &Path, to: &Path, text: &str) -> Result<(), RewriteError> {
    let attempt = || {
        let like = fs::metadata(from)?;
        match from == to {
            true => replace(&to.canonicalize()?, text, &like, true),
            false => {
                fs::create_dir_all(to.parent().unwrap_or(to))?;
                replace(to, text, &like, false)
            }
        }
    };
    attempt().map_err(|source| RewriteError::Write { path: to.into(), source })
}

fn replace(to: &Path, text: &str, like: &Metadata, keep_owner: bool) -> io::Result<()> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".landfall-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if keep_owner {
        keep(file.as_file(), like)?;
    }
    // after the owner: changing that clears set-id bits
    file.as_file().set_permissions(like.permissions())?;
    file.as_file().sync_all()?;
    file.persist(to)?;
    Ok(())
}

/// Gives `file` the owner and group of `like`.
#[cfg(unix)]
fn keep(file: &fs::File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let now = file.metadata()?;
    match (now.uid(), now.gid()) == (like.uid(), like.gid()) {
        true => Ok(()),
        false => std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid())),
    }
}

#[cfg(not(unix))]
fn keep(_file: &fs::File, _like: &Metadata) -> io::Result<()> {
    Ok(())
}
