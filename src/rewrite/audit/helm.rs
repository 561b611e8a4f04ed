//! Charts rendered by a helm that is on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A helm and the values to give it.
#[derive(Debug, Clone)]
pub struct Helm {
    /// The program.
    pub program: PathBuf,
    values: Vec<PathBuf>,
}

impl Helm {
    /// The first `helm` in the folders of `path`, the value of PATH.
    pub fn find(path: Option<&OsStr>, values: &[PathBuf]) -> Option<Helm> {
        let folders = std::env::split_paths(path?);
        let program = folders.map(|folder| folder.join("helm")).find(|program| program.is_file())?;
        Some(Helm { program, values: values.to_vec() })
    }

    /// What `helm template` makes of a chart.
    ///
    /// # Errors
    /// Helm's own words.
    pub(super) fn template(&self, chart: &Path) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(["template", "landfall"]).arg(chart).arg("--include-crds");
        self.values.iter().for_each(|file| {
            command.arg("--values").arg(file);
        });
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        String::from_utf8(output.stdout).map_err(|_| "its output is not UTF-8".into())
    }
}
