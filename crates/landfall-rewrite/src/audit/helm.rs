//! Renders charts with the helm of this machine.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A helm program and its arguments.
#[derive(Debug, Clone)]
pub struct HelmCommand {
    /// The path of the program.
    pub program: PathBuf,
    values: Vec<PathBuf>,
    /// The version of Kubernetes to render for; helm has a default.
    kubernetes: Option<String>,
}

/// An error from running helm.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// The program cannot be run.
    #[error(transparent)]
    Run(io::Error),
    /// The program failed with this message.
    #[error("{0}")]
    Failed(String),
    /// The output of the program is not UTF-8.
    #[error("its output is not UTF-8")]
    Encoding,
}

impl HelmCommand {
    /// Finds the first `helm` in the folders of `path`, the value of PATH. The command renders with
    /// the values files `values`.
    pub fn find(path: Option<&OsStr>, values: &[PathBuf]) -> Option<HelmCommand> {
        let folders = std::env::split_paths(path?);
        let program = folders
            .map(|folder| folder.join("helm"))
            .find(|program| program.is_file())?;
        Some(HelmCommand {
            program,
            values: values.to_vec(),
            kubernetes: None,
        })
    }

    /// Renders for this version of Kubernetes.
    #[must_use]
    pub fn for_kubernetes(self, version: Option<&str>) -> HelmCommand {
        HelmCommand {
            kubernetes: version.map(str::to_owned),
            ..self
        }
    }

    /// Returns the version of helm, without a `v`.
    ///
    /// # Errors
    /// If helm cannot be run, fails, or writes text that is not UTF-8.
    pub fn version(&self) -> Result<String, HelmError> {
        let mut command = Command::new(&self.program);
        let text = output(command.args(["version", "--template", "{{.Version}}"]))?;
        Ok(text.trim().trim_start_matches('v').to_owned())
    }

    /// Returns the output of `helm template` for a chart.
    ///
    /// # Errors
    /// If helm cannot be run, fails, or writes text that is not UTF-8.
    pub fn template(&self, chart: &Path) -> Result<String, HelmError> {
        let mut command = Command::new(&self.program);
        command
            .args(["template", "landfall"])
            .arg(chart)
            .arg("--include-crds");
        self.values.iter().for_each(|file| {
            command.arg("--values").arg(file);
        });
        self.kubernetes.iter().for_each(|version| {
            command.args(["--kube-version", version]);
        });
        output(&mut command)
    }
}

fn output(command: &mut Command) -> Result<String, HelmError> {
    // the standard input may be a text for landfall (`-`), which helm must not consume
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(HelmError::Run)?;
    if !output.status.success() {
        return Err(HelmError::Failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| HelmError::Encoding)
}
