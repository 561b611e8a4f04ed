//! Which files are written, and at which paths; all checked before the first byte is written.

use super::ExportError;
use crate::file_table::UrlPath;
use landfall_item::UrlFile;
use landfall_model::Digest;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Permission bits of a file for which the lock has none.
pub(super) const MODE: u32 = 0o644;

/// A file with all paths at which it is written.
pub(super) struct ExportFile<'a> {
    pub(super) file: UrlFile<'a>,
    pub(super) mode: u32,
    pub(super) paths: Vec<PathBuf>,
}

/// `files` with their paths.
///
/// # Errors
/// When a URL cannot be a path, or two URLs with different content become one path.
pub(super) fn export_paths<'f>(
    forms: impl Iterator<Item = UrlFile<'f>>,
) -> Result<Vec<ExportFile<'f>>, ExportError> {
    let mut files = Vec::new();
    let mut taken: BTreeMap<PathBuf, (String, &Digest)> = BTreeMap::new();
    for file in forms {
        let mut paths = Vec::new();
        for url in &file.urls {
            let path = path_of(url)?;
            match taken.insert(path.clone(), (url.to_string(), file.digest)) {
                Some((first, earlier)) if earlier != file.digest => {
                    return Err(ExportError::Collision {
                        path: path.display().to_string(),
                        first,
                        second: url.to_string(),
                    });
                }
                _ => paths.push(path),
            }
        }
        files.push(ExportFile {
            mode: mode(file.mode),
            file,
            paths,
        });
    }
    Ok(files)
}

/// The locked mode without set-user-ID, set-group-ID and sticky bits.
fn mode(locked: Option<&str>) -> u32 {
    let mode = locked.and_then(|mode| u32::from_str_radix(mode, 8).ok());
    mode.map_or(MODE, |mode| mode & 0o777)
}

/// `<host>/<path>` of a URL, without its query: the files of a web server have none. A path that
/// ends with a slash gets `index.html`.
fn path_of(url: &str) -> Result<PathBuf, ExportError> {
    let wrong = |why| ExportError::Path {
        url: url.into(),
        why,
    };
    let UrlPath { host, path, .. } =
        UrlPath::of(url).ok_or_else(|| wrong("it is no URL with a host"))?;
    if matches!(host.as_str(), "" | "." | "..") || host.contains('/') {
        return Err(wrong("its host can be no folder"));
    }
    let mut out = PathBuf::from(host);
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match part {
            "." | ".." => return Err(wrong("a part of its path is . or ..")),
            part if part.chars().any(|c| c.is_control() || c == '\u{fffd}') => {
                return Err(wrong(
                    "its path has characters that no file name should have",
                ));
            }
            part => out.push(part),
        }
    }
    if path.ends_with('/') {
        out.push("index.html");
    }
    Ok(out)
}
