//! Keeps commands from replacing files that people or other commands wrote.
//!
//! A command checks all its output files with an [`OutputGuard`] before it writes the first one.
//! Its own earlier output is recognized by a mark in it, such as a comment; formats that have no
//! place for a mark are listed in the [`OutputRecord`] of their folder.

use super::atomic_file::if_exists;
use super::replace_file::{FileChanged, is_written_in_place, merge_into_file};
use landfall_model::Failure;
use landfall_model::document::read_input;
use landfall_model::report::count_of;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of files that a refusal names.
const NAMED_FILES: usize = 3;

/// Collects the output files that exist already and were not written by the same command.
#[derive(Debug, Default)]
pub struct OutputGuard {
    replaces: bool,
    foreign: Vec<PathBuf>,
}

impl OutputGuard {
    /// Creates a guard. If `replaces` is set, it accepts every file, as `--replace` demands.
    pub fn new(replaces: bool) -> OutputGuard {
        OutputGuard {
            replaces,
            foreign: Vec::new(),
        }
    }

    /// Checks the output file at `path`. If it exists and is not empty, `is_own` returns whether
    /// the same command wrote it, or whether it has the new content already.
    pub fn check(&mut self, path: &Path, is_own: impl FnOnce(&Path) -> bool) {
        if !self.replaces && has_content(path) && !is_own(path) {
            self.foreign.push(path.into());
        }
    }

    /// Checks an output folder that is replaced as a whole. `is_own` is called if the folder exists
    /// and is not empty.
    pub fn check_folder(&mut self, path: &Path, is_own: impl FnOnce() -> bool) {
        let has_entries = path
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_some());
        if !self.replaces && has_entries && !is_own() {
            self.foreign.push(path.into());
        }
    }

    /// Ends the check, before the first file is written.
    ///
    /// # Errors
    /// If files of others exist; the error names them.
    pub fn finish(self) -> Result<(), Failure> {
        let named = self.foreign.iter().take(NAMED_FILES);
        let mut names: Vec<String> = named.map(|path| path.display().to_string()).collect();
        let others = self.foreign.len() - names.len();
        if others > 0 {
            names.push(count_of(others, "more file"));
        }
        let (words, them) = match self.foreign.len() {
            0 => return Ok(()),
            1 => ("exists, and this command did not write it", "it"),
            _ => ("exist, and this command did not write them", "them"),
        };
        let message = format!("{} {words}; nothing was written", names.join(", "));
        Err(Failure::usage(message).with_help(format!(
            "name another file or folder, move {them} away, or add --replace"
        )))
    }
}

/// Whether writing to `path` would lose content. Folders, pipes and devices are not replaced.
fn has_content(path: &Path) -> bool {
    let has_bytes = path
        .metadata()
        .is_ok_and(|found| found.is_file() && found.len() > 0);
    has_bytes && !is_written_in_place(path)
}

/// The name of the record in a folder. It does not end with `.json`, because `kubectl apply -f`
/// reads every JSON file in a folder.
pub const OUTPUT_RECORD: &str = ".landfall-files";

const ABOUT: &str = "Files that landfall wrote to this folder, by command. The same command \
                     replaces them without --replace.";

#[derive(Default, Serialize, Deserialize)]
struct RecordDocument {
    about: String,
    files: BTreeMap<String, BTreeSet<String>>,
}

/// The files that a command wrote to a folder, according to the record in the folder.
#[derive(Debug)]
pub struct OutputRecord {
    path: PathBuf,
    command: String,
    names: BTreeSet<String>,
}

impl OutputRecord {
    /// Reads the files of `command`, which need not be a whole command line, from the record in
    /// `folder`. Without a record, there are none.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn read(folder: &Path, command: &str) -> Result<OutputRecord, Failure> {
        let path = folder.join(OUTPUT_RECORD);
        let text = if_exists(read_input(&path)).map_err(|error| Failure::read(&path, error))?;
        let document = text.map(|bytes| parse(&path, &bytes)).transpose()?;
        let mut document = document.unwrap_or_default();
        Ok(OutputRecord {
            names: document.files.remove(command).unwrap_or_default(),
            path,
            command: command.to_owned(),
        })
    }

    /// Whether the command wrote the file `name`, a path in the folder.
    pub fn has(&self, name: &Path) -> bool {
        self.names.contains(&*name.to_string_lossy())
    }

    /// Adds files to the record. Creates the folder if it does not exist.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn add<'n>(&self, names: impl IntoIterator<Item = &'n Path>) -> Result<(), Failure> {
        let new: BTreeSet<String> = names
            .into_iter()
            .filter(|name| !self.has(name))
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let written =
            std::fs::create_dir_all(self.path.parent().unwrap_or(&self.path)).and_then(|()| {
                merge_into_file(&self.path, |old| {
                    let document = old.map(|old| parse(&self.path, old)).transpose();
                    // it was valid when this run began
                    let mut document = document.map_err(|_| FileChanged)?.unwrap_or_default();
                    ABOUT.clone_into(&mut document.about);
                    let names = document.files.entry(self.command.clone()).or_default();
                    names.extend(new.iter().cloned());
                    Ok(serde_json::to_string_pretty(&document).unwrap_or_default() + "\n")
                })
            });
        written
            .map(drop)
            .map_err(|error| Failure::write(&self.path, error))
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<RecordDocument, Failure> {
    serde_json::from_slice(bytes).map_err(|error| {
        let why = format!("not a list of the files that landfall wrote: {error}");
        Failure::read(path, why).with_help("delete the list, and add --replace once")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_of_others_are_refused_together() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["a", "b", "c", "d", "empty", "own", "none"];
        let paths = names.map(|name| dir.path().join(name));
        for path in &paths[..6] {
            fs::write(path, if path.ends_with("empty") { "" } else { "x" }).unwrap();
        }
        let checked = |replaces, paths: &[PathBuf]| {
            let mut guard = OutputGuard::new(replaces);
            for path in paths {
                guard.check(path, |path| path.ends_with("own"));
            }
            guard.check(Path::new("/dev/null"), |_| false);
            guard.check_folder(dir.path(), || true);
            guard.finish()
        };
        let message = checked(false, &paths).unwrap_err().message.clone();
        let shown = |at: usize| paths[at].display();
        assert_eq!(
            message,
            format!(
                "{}, {}, {}, 1 more file exist, and this command did not write them; nothing was \
                 written",
                shown(0),
                shown(1),
                shown(2)
            )
        );
        assert_eq!(checked(false, &paths[4..]), Ok(()));
        assert_eq!(checked(true, &paths), Ok(()));
    }

    #[test]
    fn a_record_lists_the_files_of_each_command() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        let read = |command| OutputRecord::read(&folder, command);
        let [a, b] = ["a/x", "b"].map(Path::new);
        let record = read("export").unwrap();
        assert!(!record.has(a) && !folder.exists());
        record.add([a]).unwrap();
        // the other run had read the record before
        record.add([b]).unwrap();
        read("rewrite").unwrap().add([b]).unwrap();
        let record = read("export").unwrap();
        assert!(record.has(a) && record.has(b));
        let record = read("rewrite").unwrap();
        assert!(!record.has(a) && record.has(b));
        fs::write(folder.join(OUTPUT_RECORD), "mine").unwrap();
        let error = read("export").unwrap_err();
        assert!(error.message.contains("not a list of the files"), "{error}");
    }
}
