//! What mends damage: the words and the command that people can type.

use super::volume_set::VolumeSet;
use landfall_content::parent_folder;
use landfall_model::report::shell_word;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What mends a bundle that is one file.
pub(super) const COPY: &str = "copy it again from where it was packed";

/// Which volumes are bad, and what else must be known to make one again.
pub(super) struct Bad<'a> {
    pub(super) set: &'a VolumeSet,
    /// What the user named.
    pub(super) places: &'a [PathBuf],
    pub(super) numbers: &'a BTreeSet<usize>,
    /// Whether the others have the contents index.
    pub(super) has_index: bool,
    /// Whether the others have the lock.
    pub(super) has_lock: bool,
}

impl Bad<'_> {
    /// What mends the volumes.
    pub(super) fn mend(&self) -> String {
        let names: Vec<String> = self
            .numbers
            .iter()
            .map(|number| self.set.name(*number))
            .collect();
        let (names, one) = (
            names.join(" and "),
            self.numbers.first().filter(|_| self.numbers.len() == 1),
        );
        match one {
            Some(number) if self.has_index => format!(
                "copy {names} again; or make it again where the bundle was packed, from its store and the other volumes:\n  {}",
                self.command(*number)
            ),
            _ => format!(
                "copy {names} again; or pack the bundle again where it was packed, with the same lock, --level and \
                 --volume-size, which gives the same bytes"
            ),
        }
    }

    fn command(&self, number: usize) -> String {
        let mut command = "landfall pack".to_owned();
        for place in self.places {
            let _ = write!(command, " --like {}", word(place));
        }
        let _ = write!(command, " --only-volume {number}");
        if !self.has_lock {
            command += " --lock landfall.lock";
        }
        // beside the first one where nothing else is said
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

/// A path as a shell takes it.
fn word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}
