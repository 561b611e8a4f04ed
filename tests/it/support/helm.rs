//! Helm as its makers publish it: on PATH, or built once by Go into the user's cache folder.

use super::{Place, skip, test_name, which};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program; where there is none and Go cannot build it, the test counts as skipped and should return.
pub fn helm() -> Option<&'static Path> {
    static HELM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match HELM.get_or_init(|| which("helm").map_or_else(build, Ok)) {
        Ok(helm) => Some(helm),
        Err(why) => {
            skip(&test_name(), why);
            None
        }
    }
}

fn build() -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").ok_or("there is no HOME to build helm in")?;
    let folder = Path::new(&home).join(".cache/landfall-tools");
    let helm = folder.join("helm");
    if helm.is_file() {
        return Ok(helm);
    }
    which("go").ok_or("this machine has neither helm nor go")?;
    let mut go = Command::new("nice");
    go.args(["go", "install", "helm.sh/helm/v3/cmd/helm@latest"]).env("GOBIN", &folder);
    match go.current_dir("/").output() {
        Ok(output) if output.status.success() && helm.is_file() => Ok(helm),
        Ok(output) => Err(format!("go cannot build helm: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("go cannot build helm: {error}")),
    }
}

/// A helm in a clean environment.
pub fn command(place: &Place, helm: &Path) -> Command {
    let mut command = place.clean(helm);
    for (name, folder) in [("HELM_CACHE_HOME", "c"), ("HELM_CONFIG_HOME", "f"), ("HELM_DATA_HOME", "d")] {
        command.env(name, place.path(format!("home/{folder}")));
    }
    command
}
