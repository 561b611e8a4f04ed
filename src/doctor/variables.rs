//! A lint of the proxy variables: which programs read which variable, and how they read its value.

use super::lint::GO;
use super::{CheckStatus, LintMessage, lint_entries};

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
    use super::super::LintMessage;
    use super::*;

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
