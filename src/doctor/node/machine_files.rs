//! The files of a machine: its own, or copies below a folder.

use super::runtime::CONTAINERD_CONFIG;
use crate::doctor::containerd_lint::ContainerdFile;
use crate::doctor::node_config::read_containerd;
use crate::doctor::steps::DiagnosisSteps;
use landfall_model::document::open_input;
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

/// The maximum number of bytes that are read of a file.
const MAX_BYTES: u64 = 4 << 20;

/// The folders of programs.
const FOLDERS: [&str; 7] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    // of Flatcar
    "/opt/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The files of a machine, by their paths on it.
#[derive(Debug)]
pub(crate) struct MachineFiles {
    pub(super) root: PathBuf,
    is_live: bool,
}

impl MachineFiles {
    /// The files of this machine.
    pub(crate) fn live() -> MachineFiles {
        MachineFiles {
            root: PathBuf::from("/"),
            is_live: true,
        }
    }

    /// Copies of the files of another machine, below `root`.
    pub(crate) fn collected(root: PathBuf) -> MachineFiles {
        MachineFiles {
            root,
            is_live: false,
        }
    }

    pub(super) fn name(&self) -> String {
        if self.is_live {
            "node".into()
        } else {
            self.root.display().to_string()
        }
    }

    /// The path of a file here.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file, or `None` if it cannot be read. Files of `/proc` have no size, so the
    /// bytes are counted while they are read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = open_input(self.path(path)).ok()?;
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Adds a note if the copies lack the file at `path`. Returns whether they do.
    pub(super) fn lacks(
        &self,
        path: &str,
        check: &'static str,
        steps: &mut DiagnosisSteps,
    ) -> bool {
        if self.is_live || self.exists(path) {
            return false;
        }
        let says = format!("{path} was not collected from the node, or the node has none");
        steps.note(check, says);
        steps.fix("collect it as `landfall help node` shows, or run doctor on the node");
        true
    }

    /// Whether the machine has a program; `None` if its programs are not known.
    pub(super) fn has_program(&self, name: &str) -> Option<bool> {
        if self.is_live {
            let mut folders = FOLDERS.iter();
            return Some(folders.any(|folder| self.exists(&format!("{folder}/{name}"))));
        }
        let listed = self.read("programs")?;
        let mut names = listed.lines().filter_map(|line| line.rsplit('/').next());
        Some(names.any(|listed| listed.trim() == name))
    }

    /// The output of `df -Pk`.
    pub(super) fn free_space(&self) -> Option<String> {
        if !self.is_live {
            return self.read("df");
        }
        let output = Command::new("df").arg("-Pk").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The configuration of containerd and the files that it imports; empty if there is none.
    pub(super) fn containerd_configs(&self) -> Result<Vec<ContainerdFile>, String> {
        let path = self.path(CONTAINERD_CONFIG);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let (files, _) = read_containerd(&path, &self.root)?;
        Ok(files)
    }

    /// The names of the folders and files in the folder at `path`, sorted.
    pub(super) fn names_in(&self, path: &str) -> Vec<String> {
        let entries = self.path(path).read_dir().into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_among_the_copies_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let made = Command::new("mkfifo").arg(dir.path().join("df")).status();
        assert!(made.unwrap().success());
        std::fs::write(dir.path().join("programs"), "/usr/bin/ip\n").unwrap();
        let files = MachineFiles::collected(dir.path().to_owned());
        assert_eq!(files.free_space(), None);
        assert_eq!(files.has_program("ip"), Some(true));
    }
}
