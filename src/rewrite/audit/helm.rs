//! Renders charts with a helm that is on this machine.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A helm and the values to give it.
#[derive(Debug, Clone)]
pub(crate) struct Helm {
    /// The program.
    pub program: PathBuf,
    values: Vec<PathBuf>,
}

/// Why helm cannot render a chart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelmError {
    /// It cannot be run.
    #[error(transparent)]
    Run(io::Error),
    /// It failed; its own words.
    #[error("{0}")]
    Failed(String),
    /// It wrote something else than text.
    #[error("its output is not UTF-8")]
    Encoding,
}

impl Helm {
    /// The first `helm` in the folders of `path`, the value of PATH.
    pub(crate) fn find(path: Option<&OsStr>, values: &[PathBuf]) -> Option<Helm> {
        let folders = std::env::split_paths(path?);
        let program = folders.map(|folder| folder.join("helm")).find(|program| program.is_file())?;
        Some(Helm { program, values: values.to_vec() })
    }

    /// The output of `helm template` for a chart.
    pub(super) fn template(&self, chart: &Path) -> Result<String, HelmError> {
        let mut command = Command::new(&self.program);
        command.args(["template", "landfall"]).arg(chart).arg("--include-crds");
        self.values.iter().for_each(|file| {
            command.arg("--values").arg(file);
        });
        let output = command.stdin(Stdio::null()).output().map_err(HelmError::Run)?;
        if !output.status.success() {
            return Err(HelmError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        String::from_utf8(output.stdout).map_err(|_| HelmError::Encoding)
    }
}
