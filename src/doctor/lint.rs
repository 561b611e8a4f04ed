//! Lints of settings: proxies, names that changed since manuals were written, and keys of old KKP
//! releases.

use super::steps::{Diagnosis, DiagnosisSteps};
use super::{CheckStatus, CheckTarget};
use landfall_item::lockfile::Lock;
use landfall_model::ChangedName;
use landfall_model::document::yaml;
use serde::Serialize;
use serde_json::json;
use serde_yaml::Value;

/// A message about one entry of NO_PROXY or one variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LintMessage {
    /// The text of the entry, or the name of the variable. Never a value, which may contain a
    /// password.
    pub about: String,
    /// The setting that contains the entry, or `the environment` for a variable.
    pub source: String,
    /// The severity of the message.
    pub verdict: CheckStatus,
    /// The programs that the message is about: they interpret the entry differently from landfall,
    /// or the entry has no effect in them.
    pub clients: Vec<&'static str>,
    /// The way in which these programs interpret the entry.
    pub says: String,
    /// The fix: the entry to write instead, or the change to the variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The programs that follow Go's rules.
pub(super) const GO: [&str; 3] = ["landfall", "containerd", "kubelet"];

// Reports names of a site, a lock or the command line that changed since manuals were written.

/// Reports the changed names among `targets` and in `lock`, or returns `None` if there are none.
pub(crate) fn changed_names(targets: &[CheckTarget], lock: Option<&Lock>) -> Option<Diagnosis> {
    let targets = targets.iter().map(ToString::to_string);
    let locked = lock.map(Lock::changed_names).unwrap_or_default();
    let locked = locked.into_iter().map(|row| row.name.to_owned());
    let mut steps = DiagnosisSteps::default();
    for row in ChangedName::among(targets.chain(locked)) {
        let facts = json!({
            "name": row.name, "replacement": row.replacement, "date": row.date,
            "source": row.source,
        });
        steps.add("changed", CheckStatus::Note, row.note(), facts);
    }
    (!steps.0.is_empty()).then(|| Diagnosis {
        target: "changed names".into(),
        checks: steps.0,
    })
}

// A lint of KKP Seeds for keys of old releases, which current releases ignore silently.

/// Keys that KKP no longer reads, and the keys that replace them.
const REMOVED_KEYS: [(&str, Option<&str>); 8] = [
    ("http_proxy", Some("httpProxy")),
    ("no_proxy", Some("noProxy")),
    ("insecure_registries", Some("insecureRegistries")),
    ("registry_mirrors", Some("registryMirrors")),
    ("pause_image", Some("pauseImage")),
    ("hyperkube_image", None),
    (
        "containerd_registry_mirrors",
        Some("containerdRegistryMirrors"),
    ),
    ("proxy_settings", Some("proxySettings")),
];

/// Lists removed keys in the Seeds of a YAML text. Returns `None` if it has no Seed.
pub(crate) fn lint_seeds(file: &str, text: &str) -> Result<Option<Diagnosis>, serde_yaml::Error> {
    let mut steps = DiagnosisSteps::default();
    let mut seeds = 0;
    for document in yaml::documents::<Value>(text) {
        let document = document?;
        if document.get("kind").and_then(Value::as_str) == Some("Seed") {
            seeds += 1;
            report_removed_keys(&document["spec"], "spec", &mut steps);
        }
    }
    if seeds == 0 {
        return Ok(None);
    }
    if steps.0.is_empty() {
        steps.say(
            "key",
            CheckStatus::Ok,
            "contains no keys of old KKP releases",
        );
    }
    Ok(Some(Diagnosis {
        target: file.into(),
        checks: steps.0,
    }))
}

fn report_removed_keys(value: &Value, path: &str, steps: &mut DiagnosisSteps) {
    match value {
        Value::Mapping(members) => {
            for (key, value) in members {
                let Some(key) = key.as_str() else { continue };
                let place = format!("{path}.{key}");
                if let Some((_, now)) = REMOVED_KEYS.iter().find(|(dead, _)| *dead == key) {
                    steps.say(
                        "key",
                        CheckStatus::No,
                        format!("{place} is a key of KKP 2.12, which current releases ignore"),
                    );
                    steps.fix(match now {
                        Some(now) => format!("write {now}"),
                        None => "remove it; it has no replacement".to_owned(),
                    });
                }
                report_removed_keys(value, &place, steps);
            }
        }
        Value::Sequence(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| report_removed_keys(item, &format!("{path}[{at}]"), steps));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::CHANGED_NAMES;

    #[test]
    fn the_manual_lists_every_changed_name() {
        let page = include_str!("../../docs/reference/changed-names.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        assert_eq!(rows.len(), CHANGED_NAMES.len());
        for row in CHANGED_NAMES {
            let replacement = row
                .replacement
                .map_or("none".to_owned(), |replacement| format!("`{replacement}`"));
            let line = format!(
                "| `{}` | {} | {} | {replacement} | <{}> |",
                row.name, row.what, row.date, row.source
            );
            assert!(rows.contains(&line.as_str()), "{line}");
        }
    }

    #[test]
    fn removed_keys_are_reported_with_their_replacement() {
        let text = "kind: KubermaticConfiguration\nspec: {http_proxy: x}\n---\nkind: Seed\n\
                spec:\n  datacenters:\n    eu-1:\n      \
                node: {pauseImage: p, http_proxy: x, hyperkube_image: y}\n";
        let found = lint_seeds("seed.yaml", text).unwrap().unwrap();
        let lines: Vec<_> = found
            .checks
            .iter()
            .map(|step| format!("{}; {}", step.says, step.fix.as_deref().unwrap_or("")))
            .collect();
        let at = "spec.datacenters.eu-1.node";
        assert_eq!(
            lines,
            [
                format!(
                    "{at}.http_proxy is a key of KKP 2.12, which current releases ignore; \
                 write httpProxy"
                ),
                format!(
                    "{at}.hyperkube_image is a key of KKP 2.12, which current releases ignore; \
                 remove it; it has no replacement"
                ),
            ]
        );
        assert!(lint_seeds("d", "kind: Deployment\n").unwrap().is_none());
        let good = lint_seeds(
            "s",
            "kind: Seed\nspec: {datacenters: {a: {node: {httpProxy: x}}}}\n",
        )
        .unwrap()
        .unwrap();
        assert_eq!(good.checks[0].verdict, CheckStatus::Ok);
    }
}
