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
