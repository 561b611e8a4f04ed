//! `landfall export`: the files of a lock as a folder `<host>/<path>`, its charts as a
//! repository, its git repositories, and its providers as a mirror, for any web server.

mod bare_leftovers;
mod export_charts;
mod export_files;
mod export_git;
mod export_providers;
mod unpack;

use self::export_files::is_up_to_date;
use self::unpack::{are_members_unpacked, member_paths};
use crate::catalog::UrlPath;
use landfall_content::{ContentError, OutputGuard, OutputRecord};
use landfall_item::UrlFile;
use landfall_model::report::{EntryKind, ItemStatus};
use landfall_model::{Descriptor, Digest, Failure, TransferSide, is_file_name};
use landfall_os::{path_fault, path_key};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::export_charts::export_charts;
pub use self::export_files::{export_files, export_packages};
pub use self::export_git::{GitExportFormat, export_git};
pub use self::export_providers::export_providers;

/// The name of all exports in the record of a folder: they may write to the same folder.
pub const EXPORT_RECORD: &str = "export";

/// How an export treats its folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportMode {
    /// Write nothing, and report what would be written.
    pub dry_run: bool,
    /// Also replace files that no export wrote.
    pub replaces: bool,
}

/// Checks all paths of `files` below `dir`. A file of others may have the new content, or be one
/// that `is_merged` accepts because the export keeps its content.
fn claim_files<'f>(
    dir: &Path,
    files: impl IntoIterator<Item = &'f ExportFile<'f>>,
    mode: ExportMode,
    is_merged: impl Fn(&Path) -> bool,
) -> Result<(), Failure> {
    let record = OutputRecord::read(dir, EXPORT_RECORD)?;
    let mut guard = OutputGuard::new(mode.replaces);
    let mut new: Vec<PathBuf> = Vec::new();
    for item in files {
        let members = member_paths(item);
        item.paths
            .iter()
            .chain(&members)
            .try_for_each(|below| check_name(below))?;
        let mut check = |below: &Path, is_same: &dyn Fn() -> bool| {
            if record.has(below) {
                return;
            }
            let path = dir.join(below);
            if path.exists() && is_same() {
                return;
            }
            guard.check(&path, &is_merged);
            new.push(below.into());
        };
        for below in &item.paths {
            check(below, &|| {
                is_up_to_date(&dir.join(below), item).unwrap_or(false)
            });
        }
        for below in members {
            check(&below, &|| are_members_unpacked(item, dir).unwrap_or(false));
        }
    }
    guard.finish()?;
    if !mode.dry_run {
        record.add(new.iter().map(PathBuf::as_path))?;
    }
    Ok(())
}

/// Checks the paths of git repositories below `dir`: folders of bare repositories, or files. They
/// are recognized by the record alone. Returns the record, to which the caller adds each repository
/// before it is written.
fn claim_repositories<'p>(
    dir: &Path,
    paths: impl Iterator<Item = &'p Path>,
    mode: ExportMode,
) -> Result<OutputRecord, Failure> {
    let record = OutputRecord::read(dir, EXPORT_RECORD)?;
    let mut guard = OutputGuard::new(mode.replaces);
    for below in paths {
        check_name(below)?;
        let path = dir.join(below);
        guard.check(&path, |_| record.has(below));
        guard.check_folder(&path, || record.has(below));
    }
    guard.finish()?;
    Ok(record)
}

/// Permission bits of a file whose mode is not locked.
const DEFAULT_MODE: u32 = 0o644;

/// A file with all paths at which it is written.
struct ExportFile<'a> {
    file: UrlFile<'a>,
    /// The permission bits of the file.
    mode: u32,
    /// The paths below the export folder.
    paths: Vec<PathBuf>,
}

impl<'a> ExportFile<'a> {
    /// A file with one path, which is not that of a URL.
    fn new(
        kind: EntryKind,
        name: &'a str,
        content: &'a Descriptor,
        path: impl Into<PathBuf>,
    ) -> ExportFile<'a> {
        ExportFile {
            file: UrlFile {
                urls: Vec::new(),
                ..UrlFile::plain(kind, name, &content.digest, content.size)
            },
            mode: DEFAULT_MODE,
            paths: vec![path.into()],
        }
    }
}

/// Determines the paths of `files`. Fails if a URL cannot be a path, or if two URLs with different
/// content have the same path.
fn export_paths<'f>(
    files: impl Iterator<Item = UrlFile<'f>>,
) -> Result<Vec<ExportFile<'f>>, Failure> {
    let mut exported = Vec::new();
    let mut owners: BTreeMap<PathBuf, (String, &Digest)> = BTreeMap::new();
    for file in files {
        let mut paths = Vec::new();
        for url in &file.urls {
            let path = path_of_url(url)?;
            match owners.insert(path_key(&path), (url.to_string(), file.digest)) {
                Some((first, digest)) if digest != file.digest => {
                    let path = path.display().to_string();
                    return Err(collision(&path, &first, url.as_ref()));
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
fn path_of_url(url: &str) -> Result<PathBuf, Failure> {
    safe_path(url).map_err(|why| failed(format!("cannot export {url}: {why}")))
}

fn safe_path(url: &str) -> Result<PathBuf, &'static str> {
    let UrlPath { host, path, .. } = UrlPath::parse(url).ok_or("it is not a URL with a host")?;
    if !is_file_name(&host) || host.contains('/') {
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

/// Why a file or repository is not exported, for its item in the report.
#[derive(Debug)]
struct ExportFailure {
    status: ItemStatus,
    reason: String,
}

impl From<ContentError> for ExportFailure {
    fn from(error: ContentError) -> ExportFailure {
        let status = match error {
            ContentError::Missing { .. } => ItemStatus::Missing,
            _ => ItemStatus::Failed,
        };
        let reason = error.to_string();
        ExportFailure { status, reason }
    }
}

impl From<Failure> for ExportFailure {
    fn from(failure: Failure) -> ExportFailure {
        ExportFailure {
            status: ItemStatus::Failed,
            reason: failure.to_string(),
        }
    }
}

/// The failure of an export of `first` and `second`, which have different content but the same
/// path.
fn collision(path: &str, first: &str, second: &str) -> Failure {
    failed(format!(
        "cannot export {first} and {second}: they have different content but the same path, \
         {path}; omit one of them"
    ))
}

fn failed(message: impl Into<String>) -> Failure {
    Failure::failed(message).on(TransferSide::Destination)
}

/// Fails if this system has no file with this path.
fn check_name(below: &Path) -> Result<(), Failure> {
    match path_fault(below) {
        None => Ok(()),
        Some(why) => Err(
            Failure::usage(format!("cannot write {}: {why}", below.display()))
                .with_help("export on Linux or macOS"),
        ),
    }
}
