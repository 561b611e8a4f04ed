//! Renders charts with a helm that is on this machine.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A helm and the values to give it.
#[derive(Debug, Clone)]
pub struct Helm {
    /// The program.
    pub program: PathBuf,
    values: Vec<PathBuf>,
    /// The version of Kubernetes to render for; helm's own by default.
    kubernetes: Option<String>,
}

/// Why helm cannot render a chart.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
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
    pub fn find(path: Option<&OsStr>, values: &[PathBuf]) -> Option<Helm> {
        let folders = std::env::split_paths(path?);
        let program = folders
            .map(|folder| folder.join("helm"))
            .find(|program| program.is_file())?;
        Some(Helm {
            program,
            values: values.to_vec(),
            kubernetes: None,
        })
    }

    /// The same for a version of Kubernetes.
    #[must_use]
    pub fn for_kubernetes(self, version: Option<&str>) -> Helm {
        Helm {
            kubernetes: version.map(str::to_owned),
            ..self
        }
    }

    /// Its version, without a `v`.
    ///
    /// # Errors
    /// When it does not tell.
    pub fn version(&self) -> Result<String, HelmError> {
        let mut command = Command::new(&self.program);
        let text = output(command.args(["version", "--template", "{{.Version}}"]))?;
        Ok(text.trim().trim_start_matches('v').to_owned())
    }

    /// The output of `helm template` for a chart.
    ///
    /// # Errors
    /// Helm's own words.
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
