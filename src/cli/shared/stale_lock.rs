//! The note about a lock that lacks items of its manifest.

use super::input_file::is_manifest;
use super::{CliError, Context};
use crate::client::PreviousLock;
use landfall_content::parent_folder;
use landfall_item::lockfile::Lock;
use landfall_item::manifest;
use landfall_model::document::read_input;
use landfall_model::report::{Progress, command_word, count_of};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum number of YAML files that are read in the folder of the lock.
const MAX_FILES: usize = 100;

/// Prints a note for each manifest that belongs to the lock and names items that the lock lacks. A
/// manifest in the folder of the lock belongs to it if both have the same `metadata.name`, or if
/// neither has one and the manifest was written after the lock.
pub(crate) fn note_stale(path: &Path, lock: &Lock, progress: &dyn Progress) {
    for manifest in manifests_beside(path) {
        // This is only a note: `lock` reports the errors of a manifest.
        let Ok(wanted) = manifest::load(std::slice::from_ref(&manifest)) else {
            continue;
        };
        if wanted.name != lock.name || (wanted.name.is_none() && !is_newer(&manifest, path)) {
            continue;
        }
        let locked: BTreeSet<String> = lock.items().map(|item| item.name().into_owned()).collect();
        // Items that could not be locked are not new.
        let lost = lock.missing.iter().map(|lost| &lost.name);
        let lost: BTreeSet<&String> = lost
            .chain(lock.unresolved.iter().map(|lost| &lost.name))
            .collect();
        let lacking: Vec<String> = wanted
            .requests
            .summaries()
            .map(|request| request.name)
            .filter(|name| !locked.contains(name) && !lost.contains(name))
            .collect();
        let Some(first) = lacking.first() else {
            continue;
        };
        let more = match lacking.len() {
            1 => String::new(),
            count => format!(" and {} more", count_of(count - 1, "item")),
        };
        let lock = path.display();
        let manifest = manifest.display().to_string();
        progress.note(&format!(
            "note: {lock} lacks {first}{more} of {manifest}; `landfall lock -f {} --lock {}` adds \
             the missing items",
            command_word(&manifest),
            command_word(&lock.to_string()),
        ));
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The manifests in the folder of the lock.
fn manifests_beside(lock: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(parent_folder(lock)) else {
        return Vec::new();
    };
    let files = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| is_yaml(path))
        .take(MAX_FILES);
    let mut found: Vec<PathBuf> = files
        .filter(|path| path.is_file() && is_manifest(path))
        .map(|path| {
            // Without `./`, as users write it.
            path.strip_prefix(".")
                .map(Path::to_path_buf)
                .unwrap_or(path)
        })
        .collect();
    found.sort();
    found
}

fn is_newer(file: &Path, than: &Path) -> bool {
    modified(file) > modified(than)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
}

// The lock that a verb is about to replace.

/// Reads the lock at `path`; `None` if there is none yet.
pub(crate) fn load_previous_lock(
    context: &Context,
    path: &Path,
) -> Result<Option<PreviousLock>, CliError> {
    if !path.exists() {
        return Ok(None);
    }
    // Read before the lock is parsed: an edit in between is then noticed when the file is written.
    let bytes = read_input(path).unwrap_or_default();
    Ok(Some(PreviousLock::new(context.read_lock(path)?, &bytes)))
}
