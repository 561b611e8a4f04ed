//! Checks before an export that it replaces no files of others, and records the files that it
//! writes: exported content has no place for a mark.

use super::ExportError;
use super::export_files::is_up_to_date;
use super::export_paths::ExportFile;
use super::unpack::{are_members_unpacked, member_paths};
use landfall_content::{OutputGuard, OutputRecord};
use std::path::{Path, PathBuf};

/// The name of all exports in the record of a folder: they may write to the same folder.
pub const RECORD: &str = "export";

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
pub(super) fn claim_files<'f>(
    dir: &Path,
    files: impl IntoIterator<Item = &'f ExportFile<'f>>,
    mode: ExportMode,
    is_merged: impl Fn(&Path) -> bool,
) -> Result<(), ExportError> {
    let record = OutputRecord::read(dir, RECORD)?;
    let mut guard = OutputGuard::new(mode.replaces);
    let mut new: Vec<PathBuf> = Vec::new();
    for item in files {
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
        for below in member_paths(item) {
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
pub(super) fn claim_repositories<'p>(
    dir: &Path,
    paths: impl Iterator<Item = &'p Path>,
    mode: ExportMode,
) -> Result<OutputRecord, ExportError> {
    let record = OutputRecord::read(dir, RECORD)?;
    let mut guard = OutputGuard::new(mode.replaces);
    for below in paths {
        let path = dir.join(below);
        guard.check(&path, |_| record.has(below));
        guard.check_folder(&path, || record.has(below));
    }
    guard.finish()?;
    Ok(record)
}
