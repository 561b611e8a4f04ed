//! Content next to the manifest: its place on this machine, and how `lock` stores it.

use crate::ManifestResult;
use crate::item_kind::EntryReader;
use crate::resolver::{ResolveError, Resolver};
use landfall_content::{
    FolderFiles, LocalForm, files_below, is_executable, matching_files, open_local, parent_folder,
    path_below,
};
use landfall_model::document::{Diagnostic, SourceSpan};
use landfall_model::{
    Algorithm, Digest, FolderPacking, HashedStream, LOCAL_PREFIX, Limits, is_path_below,
};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// The place on this machine of content that a manifest names by a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{}", path.display())]
pub struct LocalPlace {
    /// The folder of the manifest, which links must not leave, as a canonical path.
    pub folder: PathBuf,
    /// The file or folder below it, as a canonical path.
    pub path: PathBuf,
    /// What is at the path.
    pub form: LocalForm,
}

impl LocalPlace {
    /// Reads the content into the store of `resolver`. Returns its digest and its size in bytes.
    pub(crate) async fn store(&self, resolver: &Resolver) -> Result<(Digest, u64), ResolveError> {
        let disk = resolver.disk.clone();
        let limits = *resolver.limits();
        let place = self.clone();
        let storing = tokio::task::spawn_blocking(move || {
            let path = place.path.display();
            let unreadable =
                |error: io::Error| ResolveError::local(format!("cannot read {path}: {error}"));
            let opened = open_local(&place.folder, &place.path, &place.form, &limits);
            let (mut content, digest, size) = opened.map_err(unreadable)?;
            if disk.has(&digest, size).map_err(not_stored)? {
                return Ok((digest, size));
            }
            let file = disk.temporary_file().map_err(not_stored)?;
            let mut copy = HashedStream::new(file.as_file(), Algorithm::Sha256);
            io::copy(&mut content, &mut copy).map_err(not_stored)?;
            let (_, copied) = copy.finish();
            if copied != digest {
                return Err(ResolveError::local(format!(
                    "{path} changed while it was read; lock again"
                )));
            }
            disk.adopt(file, &digest).map_err(not_stored)?;
            Ok((digest, size))
        });
        storing.await?
    }

    /// The permission bits of the content: an executable file is executable for all.
    pub(crate) fn mode(&self) -> Result<String, ResolveError> {
        let metadata = std::fs::metadata(&self.path).map_err(|error| {
            ResolveError::local(format!("cannot read {}: {error}", self.path.display()))
        })?;
        let is_program = metadata.is_file() && is_executable(&metadata);
        Ok(if is_program { "0755" } else { "0644" }.into())
    }

    /// The path relative to `folder`, the folder of the lock. `None` if it is not below that
    /// folder: a path of this machine must not get into a lock.
    pub(crate) fn path_in_lock(&self, folder: &Path) -> Option<String> {
        let below = self.path.strip_prefix(folder.canonicalize().ok()?).ok()?;
        // with the separator of locks, not that of this system
        let names: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
        Some(names?.join("/"))
    }
}

fn not_stored(error: impl Display) -> ResolveError {
    ResolveError::local(format!("cannot write to the store: {error}"))
}

/// The files that the `path:` of a manifest entry names, by the names of their items. `packing`
/// is for a folder that becomes one item.
pub(crate) fn local_places(
    text: &str,
    packing: Option<FolderPacking>,
    at: &SourceSpan,
    reader: EntryReader<'_>,
) -> ManifestResult<Vec<(String, LocalPlace)>> {
    let fault = |message: String, help: &str| Err(at.fault(message, Some(help)));
    let (path, folder) = checked_path(text, at, reader)?;
    let cannot_read = |error| cannot_read(text, at, &error);
    let limits = Limits::default();
    let place = |path: PathBuf, form| LocalPlace {
        folder: folder.clone(),
        path,
        form,
    };
    let each = |files: FolderFiles, above: &str| {
        let items = files.into_iter().map(|(path, file)| {
            (
                format!("{LOCAL_PREFIX}{above}{path}"),
                place(file, LocalForm::File),
            )
        });
        items.collect::<Vec<_>>()
    };
    let is_pattern = path.contains(['*', '?']);
    let items = if is_pattern && packing.is_none() {
        let files = matching_files(&folder, path, &limits).map_err(cannot_read)?;
        each(files, "")
    } else {
        let found = path_below(&folder, path).map_err(cannot_read)?;
        match (packing, found.is_dir()) {
            (None, false) => vec![(
                format!("{LOCAL_PREFIX}{path}"),
                place(found, LocalForm::File),
            )],
            (None, true) => {
                let files = files_below(&folder, &found, &limits).map_err(cannot_read)?;
                each(files, &format!("{path}/"))
            }
            (Some(packing @ FolderPacking::Tar), true) => {
                let place = place(found, LocalForm::Folder(packing));
                vec![(format!("{LOCAL_PREFIX}{path}.tar"), place)]
            }
            (Some(FolderPacking::Tar), false) => {
                return fault(
                    format!("{text} is not a folder"),
                    "remove `as`: a file is carried as it is",
                );
            }
        }
    };
    if items.is_empty() {
        let what = if is_pattern {
            "no file matches"
        } else {
            "there are no files in"
        };
        return fault(
            format!("{what} {text}"),
            "correct the path, or remove the entry",
        );
    }
    Ok(items)
}

/// The place of the single file or folder that a manifest entry names, and its path below the
/// folder of the manifest.
pub(crate) fn local_place<'t>(
    text: &'t str,
    form: LocalForm,
    at: &SourceSpan,
    reader: EntryReader<'_>,
) -> ManifestResult<(&'t str, LocalPlace)> {
    let (path, folder) = checked_path(text, at, reader)?;
    let found = path_below(&folder, path).map_err(|error| cannot_read(text, at, &error))?;
    let place = LocalPlace {
        folder,
        path: found,
        form,
    };
    Ok((path, place))
}

/// The path `text` without `./` and a final slash, and the canonical folder of the manifest.
fn checked_path<'t>(
    text: &'t str,
    at: &SourceSpan,
    reader: EntryReader<'_>,
) -> ManifestResult<(&'t str, PathBuf)> {
    let written = text.strip_prefix("./").unwrap_or(text);
    let path = written.strip_suffix('/').unwrap_or(written);
    if !is_path_below(path) || path.contains('\\') || path.contains(char::is_control) {
        let help = "name a file or folder below the folder of this manifest, as in \
                    scripts/setup.sh or conf/";
        let message = format!("`{text}` is not a path below this manifest");
        return Err(at.fault(message, Some(help)));
    }
    let folder = parent_folder(Path::new(&reader.context.text.file));
    let folder = folder.canonicalize();
    Ok((path, folder.map_err(|error| cannot_read(text, at, &error))?))
}

fn cannot_read(text: &str, at: &SourceSpan, error: &io::Error) -> Box<Diagnostic> {
    let help = "the path is relative to the folder of this manifest";
    at.fault(format!("cannot read {text}: {error}"), Some(help))
}
