//! Helm: on PATH, or built once with Go into the user's cache folder.

use super::programs::go_build;
use super::{Place, skip, test_name, which};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of helm. If it is missing and Go cannot build it, the test counts as skipped and should
/// return.
pub fn helm() -> Option<&'static Path> {
    static HELM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || go_build("helm.sh/helm/v3/cmd/helm@latest");
    match HELM.get_or_init(|| which("helm").map_or_else(build, Ok)) {
        Ok(helm) => Some(helm),
        Err(why) => {
            skip(&test_name(), why);
            None
        }
    }
}

/// The folders of the charts in the folder that `LANDFALL_HELM_CHARTS` names, sorted. Without the
/// variable, the test counts as skipped and should return; a folder without charts is a mistake.
pub fn real_charts() -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("LANDFALL_HELM_CHARTS") else {
        skip(&test_name(), "LANDFALL_HELM_CHARTS names no folder");
        return None;
    };
    let folder = PathBuf::from(folder).canonicalize().unwrap();
    let mut charts: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Chart.yaml").is_file())
        .collect();
    charts.sort();
    assert!(!charts.is_empty(), "{} has no charts", folder.display());
    Some(charts)
}

/// A helm in a clean environment.
pub fn command(place: &Place, helm: &Path) -> Command {
    let mut command = place.clean(helm);
    for (name, folder) in [
        ("HELM_CACHE_HOME", "c"),
        ("HELM_CONFIG_HOME", "f"),
        ("HELM_DATA_HOME", "d"),
    ] {
        command.env(name, place.path(format!("home/{folder}")));
    }
    command
}
