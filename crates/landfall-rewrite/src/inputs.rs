//! Files to rewrite: found, read and written.

use super::error::RewriteError;
use landfall_content::{ReplaceError, replace_file, write_file_like};
use landfall_model::document::{is_leftover, is_pipe, open_input, read_input};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Endings of documents. A document that is not text is an error.
const DOCUMENTS: [&str; 3] = ["yaml", "yml", "json"];
/// Endings of other texts that are read in folders. Prose, source code and lists of images are not
/// read.
const TEXTS: [&str; 24] = [
    "sh",
    "bash",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "tpl",
    "gotmpl",
    "tmpl",
    "template",
    "service",
    "properties",
    "mk",
    "dockerfile",
    "tf",
    "tfvars",
    "hcl",
    "jsonnet",
    "libsonnet",
    "star",
    "j2",
    "ign",
    "bu",
];
/// Beginnings of the names of other files that are read in folders.
const NAMES: [&str; 6] = [
    "dockerfile",
    "containerfile",
    "makefile",
    "kustomization",
    "user-data",
    ".env",
];
/// First bytes of files without an ending that are read in folders.
const SIGNS: [&str; 2] = ["#!", "#cloud-config"];
/// Folders of version control.
const VCS: [&str; 8] = [
    ".git", ".hg", ".svn", ".bzr", ".jj", ".pijul", "_darcs", "CVS",
];

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its path, beginning with what the user named.
    pub path: PathBuf,
    /// The path of its result below the folder of results: the path inside the named folder, or the
    /// file name.
    pub relative: PathBuf,
    /// Whether the user named it. A named file is read whatever it is.
    pub named: bool,
}

impl Input {
    /// Whether it is the archive of a chart, by its name.
    pub fn is_archive(&self) -> bool {
        ending(&self.path) == "tgz"
    }
}

fn ending(path: &Path) -> String {
    path.extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase()
}

/// Whether a file is a YAML or JSON document by its name.
pub(super) fn is_document(path: &Path) -> bool {
    DOCUMENTS.contains(&&*ending(path))
}

/// Whether to read a file of a folder or archive, by its name and its first bytes.
pub(super) fn is_looked_at(path: &Path, content: &[u8]) -> bool {
    let (name, ending) = (
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase(),
        ending(path),
    );
    DOCUMENTS.contains(&&*ending)
        || TEXTS.contains(&&*ending)
        || NAMES.iter().any(|start| name.starts_with(start))
        || name == "notes.txt"
        || (ending.is_empty()
            && SIGNS
                .iter()
                .any(|sign| content.starts_with(sign.as_bytes())))
}

/// Every file that `paths` name. Folders are searched recursively, and the files of each are
/// sorted; [`read`] decides which of them are read. Skipped are folders of version control, and
/// `out`, the folder of results. A symbolic link in a folder is followed if it leads to a file in
/// that folder.
///
/// # Errors
/// When a path cannot be read; when a result in `out` would be written over another or over an
/// input.
pub fn inputs(paths: &[PathBuf], out: Option<&Path>) -> Result<Vec<Input>, RewriteError> {
    let real_out = out.and_then(|path| path.canonicalize().ok());
    let mut found = Vec::new();
    for path in paths {
        let at = |source| RewriteError::Read {
            path: path.clone(),
            source,
        };
        if fs::metadata(path).map_err(at)?.is_dir() {
            fs::read_dir(path).map_err(at)?;
            let root = path.canonicalize().map_err(at)?;
            walk(
                &Folder {
                    named: path,
                    root: &root,
                    out: real_out.as_deref(),
                },
                path,
                &mut found,
            )?;
        } else if is_pipe(path) {
            return Err(RewriteError::Pipe(path.clone()));
        } else {
            open_input(path).map_err(at)?;
            let relative = path.file_name().map_or_else(|| path.clone(), PathBuf::from);
            found.push(Input {
                path: path.clone(),
                relative,
                named: true,
            });
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
    let real = |input: &Input| Some((input.path.canonicalize().ok()?, input.path.clone()));
    let read: BTreeMap<PathBuf, PathBuf> = found.iter().filter_map(real).collect();
    let mut places: BTreeMap<&Path, &Path> = BTreeMap::new();
    for input in found {
        let place = out.join(&input.relative);
        if let Some(path) = place.canonicalize().ok().and_then(|place| read.get(&place)) {
            return Err(RewriteError::Overwrite {
                path: path.clone(),
                from: input.path.clone(),
            });
        }
        if let Some(first) = places.insert(&input.relative, &input.path) {
            return Err(RewriteError::Clash {
                first: first.into(),
                second: input.path.clone(),
                place,
            });
        }
    }
    Ok(())
}

/// A named folder.
struct Folder<'a> {
    named: &'a Path,
    /// The same without links.
    root: &'a Path,
    /// The folder of results, without links.
    out: Option<&'a Path>,
}

fn walk(folder: &Folder<'_>, dir: &Path, found: &mut Vec<Input>) -> Result<(), RewriteError> {
    let at = |source| RewriteError::Read {
        path: dir.into(),
        source,
    };
    let entries: Result<Vec<fs::DirEntry>, io::Error> = fs::read_dir(dir).map_err(at)?.collect();
    let mut entries = entries.map_err(at)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(at)?);
        if kind.is_dir() {
            let passed_over = VCS.iter().any(|name| entry.file_name() == *name)
                || folder
                    .out
                    .is_some_and(|out| path.canonicalize().is_ok_and(|path| path == out));
            if !passed_over {
                walk(folder, &path, found)?;
            }
            continue;
        }
        let inside = || {
            path.canonicalize()
                .is_ok_and(|path| path.starts_with(folder.root) && path.is_file())
        };
        if !is_leftover(&path) && (kind.is_file() || (kind.is_symlink() && inside())) {
            let relative = path
                .strip_prefix(folder.named)
                .unwrap_or(&path)
                .to_path_buf();
            found.push(Input {
                path,
                relative,
                named: false,
            });
        }
    }
    Ok(())
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text.
    Text(String),
    /// The archive of a chart.
    Archive(Vec<u8>),
    /// A binary, or a file in a folder that is not read.
    Other,
}

/// The content of a file.
///
/// # Errors
/// When it cannot be read; when the user named it, or it has the name of a document, and it is not
/// UTF-8.
pub fn read(input: &Input) -> Result<Content, RewriteError> {
    let path = &input.path;
    let at = |source| RewriteError::Read {
        path: path.into(),
        source,
    };
    let archive = input.is_archive();
    let document = is_document(path);
    if !(input.named || archive || document) {
        let mut start = [0; 16];
        let len = open_input(path)
            .and_then(|mut file| file.read(&mut start))
            .map_err(at)?;
        if !is_looked_at(path, &start[..len]) {
            return Ok(Content::Other);
        }
    }
    let bytes = read_input(path).map_err(at)?;
    if archive {
        return Ok(Content::Archive(bytes));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(Content::Text(text)),
        _ if input.named || document => Err(RewriteError::Encoding),
        _ => Ok(Content::Other),
    }
}

/// Replaces the file at `path`, which had the content `old`, by `new`. Returns what it had and
/// could not be kept.
///
/// # Errors
/// When the system refuses, or the file was changed after it was read.
pub fn write_in_place(path: &Path, old: &[u8], new: &[u8]) -> Result<Vec<String>, RewriteError> {
    replace_file(path, |now| now == old, new).map_err(|error| match error {
        ReplaceError::Io(source) => RewriteError::Write {
            path: path.into(),
            source,
        },
        ReplaceError::Changed => RewriteError::Changed,
    })
}

/// Writes `bytes`, the result of `input`, to its place below `out`. Folders are made.
///
/// # Errors
/// When the system refuses, or a folder below `out` is a symbolic link.
pub fn write_to(out: &Path, input: &Input, bytes: &[u8]) -> Result<(), RewriteError> {
    let to = out.join(&input.relative);
    let below = to.ancestors().skip(1).take_while(|folder| *folder != out);
    if let Some(link) = below.into_iter().find(|folder| folder.is_symlink()) {
        return Err(RewriteError::Link(link.into()));
    }
    let folder = to.parent().unwrap_or(out);
    fs::create_dir_all(folder)
        .and_then(|()| write_file_like(&input.path, &to, bytes))
        .map_err(|source| RewriteError::Write { path: to, source })
}
