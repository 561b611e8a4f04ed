//! Programs that no package of the distribution has.

use super::{skip, test_name, which};
use std::path::PathBuf;
use std::process::Command;

/// The program of a Go module, `PATH@VERSION`, built into the user's cache folder where it is not there yet, as
/// `scripts/bench` does. `None`, and the test counts as skipped, where there is no Go or it cannot be built.
#[must_use]
pub fn go_install(module: &str) -> Option<PathBuf> {
    let (path, version) = module.split_once('@').unwrap();
    // `…/kustomize/v5` is the program kustomize
    let is_version =
        |part: &&str| part.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    let name = path.rsplit('/').find(|part| !is_version(part)).unwrap();
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let folder = cache.join("landfall-bench").join(format!("{name}@{version}"));
    let program = folder.join(name);
    if program.is_file() {
        return Some(program);
    }
    let Some(go) = which("go") else {
        skip(&test_name(), &format!("{name} needs Go to be built"));
        return None;
    };
    let built = Command::new(go).args(["install", module]).env("GOBIN", folder).output();
    let is_built = built.as_ref().is_ok_and(|built| built.status.success());
    if !is_built {
        let why =
            built.map_or_else(|e| e.to_string(), |built| String::from_utf8_lossy(&built.stderr).into_owned());
        skip(&test_name(), &format!("go install {module} fails: {}", why.lines().last().unwrap_or_default()));
    }
    is_built.then_some(program)
}

/// The program at the path that this variable has. `None`, and the test counts as skipped, where it is not set.
#[must_use]
pub fn named_by(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        skip(&test_name(), &format!("{variable} names no program"));
    }
    path
}
