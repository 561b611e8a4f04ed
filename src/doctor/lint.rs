//! Lints of settings: proxies, names that changed since manuals were written, and keys of old KKP
//! releases.

use super::steps::{Diagnosis, DiagnosisSteps};
use super::{CheckStatus, CheckTarget, lint_entries};
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
    (!steps.0.is_empty()).then(|| steps.into_diagnosis("changed names"))
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
        steps.ok("key", "contains no keys of old KKP releases");
    }
    Ok(Some(steps.into_diagnosis(file)))
}

fn report_removed_keys(value: &Value, path: &str, steps: &mut DiagnosisSteps) {
    match value {
        Value::Mapping(members) => {
            for (key, value) in members {
                let Some(key) = key.as_str() else { continue };
                let place = format!("{path}.{key}");
                if let Some((_, now)) = REMOVED_KEYS.iter().find(|(dead, _)| *dead == key) {
                    steps.no(
                        "key",
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

/// Messages about the proxy variables, and about the entries of NO_PROXY and `no_proxy`. If both
/// have the same value, its entries are checked once.
pub(crate) fn lint_environment(get: impl Fn(&str) -> Option<String>) -> Vec<LintMessage> {
    let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
    let mut messages = Vec::new();
    let mut about =
        |name: &str, clients: &[&'static str], says: String, instead: Option<String>| {
            messages.push(LintMessage {
                about: name.into(),
                source: "the environment".into(),
                verdict: CheckStatus::Note,
                clients: clients.to_vec(),
                says,
                instead,
            });
        };
    let blind: [(&str, &[&'static str]); 3] = [
        ("HTTP_PROXY", &["curl", "wget", "apt"]),
        ("HTTPS_PROXY", &["wget", "apt"]),
        ("NO_PROXY", &["wget", "apt"]),
    ];
    for (upper, clients) in blind {
        let lower = upper.to_ascii_lowercase();
        match (get(upper), get(&lower)) {
            (Some(_), None) => {
                about(
                    upper,
                    clients,
                    format!("read only {lower}"),
                    Some(format!("set {lower} too")),
                );
            }
            (Some(one), Some(other)) if one != other => about(
                upper,
                &["curl", "wget", "apt", "requests", "urllib"],
                format!(
                    "use {lower}, which has another value; {} use {upper}",
                    GO.join(", ")
                ),
                Some("give both the same value".into()),
            ),
            _ => {}
        }
    }
    for name in ["ALL_PROXY", "all_proxy"] {
        if get(name).is_some() {
            let clients = ["containerd", "kubelet", "wget", "apt", "urllib"];
            about(
                name,
                &clients,
                "do not read it".into(),
                Some("set http_proxy and https_proxy".into()),
            );
        }
    }
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        // The account is cut out of the raw text, because a message is also needed for a value that
        // no URL parser accepts.
        let value = get(name).unwrap_or_default();
        let account = value
            .rsplit_once('@')
            .map(|(account, _)| account.split("://").last().unwrap_or(account));
        if account.is_some_and(|account| account.contains(['@', '#', '/', '?'])) {
            let says = "do not accept a raw @, #, / or ? in the account".to_owned();
            about(
                name,
                &["curl", "wget"],
                says,
                Some("percent-encode it, as in %40 for @".into()),
            );
        }
        if account.is_some() {
            let says = "signs in to a proxy for https only with \
                        -Djdk.http.auth.tunneling.disabledSchemes=\"\""
                .into();
            about(name, &["Java"], says, None);
        }
    }
    let upper = get("NO_PROXY");
    let lower = get("no_proxy").filter(|value| Some(value) != upper.as_ref());
    for (name, value) in [("NO_PROXY", upper), ("no_proxy", lower)] {
        if let Some(value) = value {
            messages.extend(lint_entries(&value, name));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::LintMessage;
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

    #[test]
    fn variables_that_only_some_programs_read_are_reported() {
        let lint = |variables: &[(&str, &str)]| {
            let get = |name: &str| {
                variables
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            let messages = lint_environment(get);
            let line = |f: &LintMessage| format!("{}: {} {}", f.about, f.clients.join(" "), f.says);
            messages.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(
            lint(&[("HTTP_PROXY", "p:1")]),
            ["HTTP_PROXY: curl wget apt read only http_proxy"]
        );
        assert!(lint(&[("HTTP_PROXY", "p:1"), ("http_proxy", "p:1")]).is_empty());
        let two = lint(&[("NO_PROXY", "10.0.0.1"), ("no_proxy", "10.0.0.2")]);
        assert!(
            two[0].contains("use no_proxy, which has another value"),
            "{two:?}"
        );
        let entries = |variables: &[(&str, &str)]| -> Vec<String> {
            let lines = lint(variables).into_iter();
            lines
                .filter(|line| line.starts_with("10.0.0.0/8"))
                .collect()
        };
        let [one, cidr] = ["a.test", "10.0.0.0/8"];
        assert_eq!(entries(&[("NO_PROXY", one), ("no_proxy", one)]).len(), 0);
        let once = entries(&[("NO_PROXY", cidr)]);
        assert!(!once.is_empty());
        for variables in [
            [("NO_PROXY", one), ("no_proxy", cidr)],
            [("NO_PROXY", cidr), ("no_proxy", one)],
            [("NO_PROXY", cidr), ("no_proxy", cidr)],
        ] {
            assert_eq!(entries(&variables), once, "{variables:?}");
        }
        let raw = lint(&[("https_proxy", "http://u:hu@sh@p:1")]);
        assert!(
            raw[0].contains("curl wget") && !raw.join(" ").contains("hu@sh"),
            "{raw:?}"
        );
        assert!(lint(&[("all_proxy", "p:1")])[0].contains("containerd kubelet"));
    }
}
