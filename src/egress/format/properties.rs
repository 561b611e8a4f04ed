//! Property tests: for any text of a host, a rule of squid or Cilium allows that host and no other.

use super::FORMATS;
use crate::egress::Egress;
use crate::egress::host::{EgressHost, HostEvidence};
use crate::egress::pattern::EgressPattern;
use proptest::prelude::*;
use serde_yaml::Value;

/// Texts that a server may send as a host, with the characters that end a token in some format.
fn host_text() -> impl Strategy<Value = String> {
    let parts = proptest::sample::select(vec![
        "a", "Z9", "-", "_", ".", "*", "*.", "-i", "-n", "\"", "'", "\\", " ", "\n", "\r", "\t",
        "#", ":", "[", "]", "{", "}", "%", "$", "^", "|", "(", ")", "é", "\u{202e}", "\u{1b}",
        "all", "none", "10.0.0.9", "fd00::7", "test", "!", "&", ",", "0x7f.1", "::1",
    ]);
    let made = proptest::collection::vec(parts, 0..8).prop_map(|parts| parts.concat());
    prop_oneof![made, any::<String>()]
}

fn row(host: EgressPattern, scheme: &str, why: &str) -> EgressHost {
    EgressHost {
        host,
        port: 443,
        scheme: scheme.into(),
        known: HostEvidence::Observed,
        why: vec![why.into()],
        from: vec![why.into()],
        via: Some(why.into()),
        reach: None,
        reason: Some(why.into()),
        change: None,
    }
}

fn written(name: &str, egress: &Egress) -> String {
    (FORMATS
        .iter()
        .find(|format| format.name == name)
        .unwrap()
        .write)(egress)
}

/// The lines of a text that are not comments.
fn rules(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Collects all strings of a YAML value into `found`.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Sequence(all) => all.iter().for_each(|one| texts(one, found)),
        Value::Mapping(all) => all.values().for_each(|one| texts(one, found)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_rule_allows_the_observed_host_and_no_other(
        text in host_text(),
        why in any::<String>(),
    ) {
        // a text that is neither a name nor an address never becomes a rule
        let Ok(host) = EgressPattern::exact(&text) else { return Ok(()) };
        prop_assert!(!matches!(host, EgressPattern::Below(_)));
        let shown = host.to_string();
        let egress = Egress {
            hosts: vec![row(host.clone(), "https", &why)],
            notes: vec![why.clone()],
        };

        let squid = written("squid", &egress);
        let (kind, acl) = match host {
            EgressPattern::Address(_) => ("addresses", "dst"),
            _ => ("names", "dstdomain"),
        };
        let expected = [
            "acl landfall_connect method CONNECT".to_owned(),
            "acl landfall_connect_443 port 443".into(),
            format!("acl landfall_connect_443_{kind} {acl} -n {shown}"),
            format!(
                "http_access allow landfall_connect landfall_connect_443 \
                 landfall_connect_443_{kind}"
            ),
            "http_access deny all".into(),
        ];
        prop_assert_eq!(rules(&squid), expected);
        prop_assert!(
            shown.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
        );
        prop_assert!(!shown.starts_with(['-', '.']), "an option, or a rule for all names below");

        let cilium: Value = serde_yaml::from_str(&written("cilium", &egress)).unwrap();
        let mut named = Vec::new();
        for rule in cilium["spec"]["egress"].as_sequence().unwrap() {
            let dns = rule["toPorts"][0].get("rules");
            for hosts in [rule.get("toFQDNs"), rule.get("toCIDR"), dns] {
                hosts.into_iter().for_each(|hosts| texts(hosts, &mut named));
            }
        }
        let v4 = format!("{shown}/32");
        let v6 = format!("{shown}/128");
        prop_assert!(named.iter().all(|text| [&shown, &v4, &v6].contains(&text)), "{:?}", named);
        prop_assert!(!named.is_empty());

        let policy = written("networkpolicy", &egress);
        prop_assert!(serde_yaml::from_str::<Value>(&policy).is_ok(), "{}", policy);
        // no text splits a row into several lines
        prop_assert_eq!(written("csv", &egress).lines().count(), 2);
        prop_assert_eq!(written("markdown", &egress).lines().count(), 5);
        prop_assert_eq!(written("text", &egress).lines().count(), 3);
    }

    #[test]
    fn a_declared_wildcard_allows_only_the_names_below_a_valid_name(text in host_text()) {
        if let Ok(EgressPattern::Below(name)) = EgressPattern::declared(&text) {
            prop_assert_eq!(EgressPattern::exact(&name), Ok(EgressPattern::Name(name.clone())));
            let egress = Egress {
                hosts: vec![row(EgressPattern::Below(name.clone()), "tcp", "x")],
                notes: Vec::new(),
            };
            let regex = format!("\\.{}$", name.replace('.', "\\."));
            let rule = format!(" dstdom_regex -n -i {regex}\n");
            prop_assert!(written("squid", &egress).contains(&rule));
            let pattern = format!("matchPattern: \"**.{name}\"\n");
            prop_assert!(written("cilium", &egress).contains(&pattern));
        }
    }
}
