//! Finds mixed formats in a `registries.conf` of podman and CRI-O.

use super::CheckStatus::{No, Note, Ok};
use super::steps::DiagnosisSteps;
use serde_json::Value;

/// Checks a registries.conf: programs refuse a file with tables of both formats
/// (containers-registries.conf(5)).
pub(super) fn lint_registries_conf(root: &Value) -> DiagnosisSteps {
    let mut steps = DiagnosisSteps::default();
    let is_old = root.get("registries").is_some();
    let new = ["registry", "unqualified-search-registries"];
    let is_new = new.iter().any(|key| root.get(key).is_some());
    let fix = "write [[registry]] and unqualified-search-registries (landfall render \
               podman, landfall render crio), and remove [registries.search], [registries.insecure] and \
               [registries.block]";
    match (is_old, is_new) {
        (true, true) => {
            let says = "it mixes [registries.…] of version 1 with [[registry]] of version 2, so \
                        podman and CRI-O refuse it";
            steps.say("format", No, says);
            steps.fix(fix);
        }
        (true, false) => {
            let says = "it has version 1 of the format, which cannot name mirrors";
            steps.say("format", Note, says);
            steps.fix(fix);
        }
        _ => steps.say("format", Ok, "it has version 2 of the format"),
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_formats_are_reported() {
        let verdict = |text: &str| {
            let root = basic_toml::from_str(text).unwrap();
            lint_registries_conf(&root).0[0].verdict
        };
        let old = "[registries.search]\nregistries = ['docker.io']\n";
        let new = "[[registry]]\nlocation = 'docker.io'\n";
        assert_eq!(verdict(old), Note);
        assert_eq!(verdict(new), Ok);
        assert_eq!(verdict(&format!("{new}{old}")), No);
    }
}
