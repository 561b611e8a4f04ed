//! How to repair a damaged bundle: the advice, with the command.

use super::volume_set::VolumeSet;
use landfall_content::parent_folder;
use landfall_model::report::shell_word;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The advice for a bundle in one file.
pub(super) const COPY: &str = "copy it again from the machine that packed it";

/// The bad volumes of a bundle, and the conditions for rebuilding one of them.
pub(super) struct BadVolumes<'a> {
    pub(super) set: &'a VolumeSet,
    /// The files and folders that the user named.
    pub(super) locations: &'a [PathBuf],
    pub(super) numbers: &'a BTreeSet<usize>,
    /// Whether one bad volume can be rebuilt: the good ones contain the contents index, and the
    /// bundle has no recipes.
    pub(super) is_rebuildable: bool,
    /// Whether the good volumes contain the lock.
    pub(super) has_lock: bool,
}

impl BadVolumes<'_> {
    /// The advice for these volumes.
    pub(super) fn repair_advice(&self) -> String {
        let names: Vec<String> = self
            .numbers
            .iter()
            .map(|number| self.set.name(*number))
            .collect();
        let names = names.join(" and ");
        let only_number = self.numbers.first().filter(|_| self.numbers.len() == 1);
        match only_number {
            // a volume can be rebuilt only if all other volumes are good
            Some(number) if self.is_rebuildable => format!(
                "copy {names} again; or rebuild it where the bundle was packed, from its store and \
                 the other volumes:\n  {}",
                self.command(*number)
            ),
            _ => format!(
                "copy {names} again; or pack the bundle again where it was packed, with the same \
                 lock, --level and --volume-size, which gives the same bytes"
            ),
        }
    }

    fn command(&self, number: usize) -> String {
        let mut command = "landfall pack".to_owned();
        for location in self.locations {
            let _ = write!(command, " --like {}", word(location));
        }
        let _ = write!(command, " --only-volume {number}");
        if !self.has_lock {
            command += " --lock landfall.lock";
        }
        // without -o, the volume is written to the folder of the first location
        let folder = self
            .set
            .found()
            .get(&number)
            .map(|path| parent_folder(path));
        if let Some(folder) = folder.filter(|folder| *folder != parent_folder(&self.set.base)) {
            let _ = write!(
                command,
                " -o {}",
                word(&folder.join(self.set.base.file_name().unwrap_or_default()))
            );
        }
        command
    }
}

/// Quotes a path for a shell.
fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}
