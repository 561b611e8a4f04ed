//! The paths of exported files, which are all checked before the first byte is written.

use crate::catalog::UrlPath;
use landfall_content::ContentError;
use landfall_item::UrlFile;
use landfall_model::Digest;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Permission bits of a file whose mode is not locked.
pub(super) const DEFAULT_MODE: u32 = 0o644;

/// A file with all paths at which it is written.
pub(super) struct ExportFile<'a> {
    pub(super) file: UrlFile<'a>,
    /// The permission bits of the file.
    pub(super) mode: u32,
    /// The paths below the export folder.
    pub(super) paths: Vec<PathBuf>,
}

/// Determines the paths of `files`. Fails if a URL cannot be a path, or if two URLs with different
/// content have the same path.
pub(super) fn export_paths<'f>(
    files: impl Iterator<Item = UrlFile<'f>>,
) -> Result<Vec<ExportFile<'f>>, ExportError> {
    let mut exported = Vec::new();
    let mut owners: BTreeMap<PathBuf, (String, &Digest)> = BTreeMap::new();
    for file in files {
        let mut paths = Vec::new();
        for url in &file.urls {
            let path = path_of_url(url)?;
            match owners.insert(path.clone(), (url.to_string(), file.digest)) {
                Some((first, digest)) if digest != file.digest => {
                    return Err(ExportError::Collision {
                        path: path.display().to_string(),
                        first,
                        second: url.to_string(),
                    });
                }
                _ => paths.push(path),
            }
        }
        exported.push(ExportFile {
            mode: permission_bits(file.mode),
            file,
            paths,
        });
    }
    Ok(exported)
}

/// The locked mode without set-user-ID, set-group-ID and sticky bits.
fn permission_bits(locked: Option<&str>) -> u32 {
    match locked.and_then(|mode| u32::from_str_radix(mode, 8).ok()) {
        // an exported program must not run with other rights than those of the user who runs it
        Some(mode) => mode & 0o777,
        None => DEFAULT_MODE,
    }
}

/// `<host>/<path>` of a URL, without its query, which a static web server ignores. A path that ends
/// with a slash gets `index.html`.
pub(super) fn path_of_url(url: &str) -> Result<PathBuf, ExportError> {
    safe_path(url).map_err(|why| ExportError::Path {
        url: url.into(),
        why,
    })
}

fn safe_path(url: &str) -> Result<PathBuf, &'static str> {
    let UrlPath { host, path, .. } = UrlPath::parse(url).ok_or("it is not a URL with a host")?;
    if matches!(host.as_str(), "" | "." | "..") || host.contains('/') {
        return Err("its host cannot be the name of a folder");
    }
    let mut out = PathBuf::from(host);
    for component in path.split('/').filter(|component| !component.is_empty()) {
        // the path is percent-decoded, so `%2e%2e` and `%2f` are visible here
        if matches!(component, "." | "..") {
            return Err("its path contains . or ..");
        }
        // U+FFFD replaces bytes that are not UTF-8, so different paths could become equal
        if component.chars().any(|c| c.is_control() || c == '\u{fffd}') {
            return Err("its path contains characters that are unsafe in file names");
        }
        out.push(component);
    }
    if path.ends_with('/') {
        out.push("index.html");
    }
    Ok(out)
}

// Errors of exporting files, charts, git repositories and providers to a folder.

/// Why files cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A URL cannot be a path below the folder.
    #[error("cannot export {url}: {why}")]
    Path {
        /// The URL that was to be exported.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two URLs, charts or git repositories with different content have the same path.
    #[error(
        "cannot export {first} and {second}: they have different content but the same path, \
         {path}; omit one of them"
    )]
    Collision {
        /// The path below the folder.
        path: String,
        /// The URL, chart or repository that has the path already.
        first: String,
        /// The URL, chart or repository that would have the same path.
        second: String,
    },
    /// A repository would be written into the folder of another one.
    #[error(
        "cannot export {inner}: its folder would be inside that of {outer}, as a part of that \
         repository; omit one of them"
    )]
    Nested {
        /// The name of the repository whose folder contains the other one.
        outer: String,
        /// The name of the repository in this folder.
        inner: String,
    },
    /// A member of an archive cannot be extracted.
    #[error("cannot unpack {url}: {why}")]
    Archive {
        /// The URL of the archive.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The index of a chart repository cannot be written.
    #[error("cannot write {path}: {why}")]
    Index {
        /// The index of the chart repository.
        path: PathBuf,
        /// The error that caused the failure.
        why: String,
    },
    /// The content cannot be read.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file that cannot be written.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// A folder on the path is a symbolic link, which could lead out of the export folder.
    #[error("cannot write {path}: {link} is a symbolic link; remove it")]
    Link {
        /// The file that cannot be written.
        path: PathBuf,
        /// The symbolic link where a folder is expected.
        link: PathBuf,
    },
}
