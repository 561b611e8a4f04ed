//! Compares every format of one list with its golden file in `tests/data/egress`.

use super::FORMATS;
use crate::egress::Egress;
use crate::egress::host::{EgressHost, HostChange, HostEvidence, Reachability};
use crate::egress::pattern::EgressPattern;
use serde::Deserialize;
use std::collections::BTreeMap;

fn row(host: &str, port: u16, scheme: &str, known: HostEvidence, why: &[&str]) -> EgressHost {
    EgressHost {
        host: EgressPattern::declared(host).unwrap(),
        port,
        scheme: scheme.into(),
        known,
        why: why.iter().map(|&why| why.into()).collect(),
        from: Vec::new(),
        via: None,
        reach: None,
        reason: None,
        change: None,
    }
}

fn sample() -> Egress {
    let node = row(
        "*.corp.test",
        6443,
        "tcp",
        HostEvidence::Declared,
        &["user cluster \"API\", |all| of it"],
    );
    let proxied = row(
        "quay.io",
        443,
        "https",
        HostEvidence::Predicted,
        &["images of quay.io"],
    );
    Egress {
        hosts: vec![
            EgressHost {
                from: vec!["kkp-user".into(), "user-cluster-node".into()],
                ..node
            },
            row(
                "10.0.0.9",
                443,
                "https",
                HostEvidence::Declared,
                &["vSphere API"],
            ),
            row(
                "fd00::7",
                22,
                "tcp",
                HostEvidence::Declared,
                &["an address alone"],
            ),
            row(
                "auth.docker.io",
                443,
                "https",
                HostEvidence::Observed,
                &["tokens of docker.io"],
            ),
            row(
                "files.test",
                80,
                "http",
                HostEvidence::Observed,
                &["files of files.test"],
            ),
            EgressHost {
                via: Some("10.99.0.1:3128".into()),
                ..proxied
            },
        ],
        notes: vec!["quay.io: no run with this store has contacted it".into()],
    }
}

#[test]
fn every_format_matches_its_golden_file() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/egress");
    for format in &FORMATS {
        let path = folder.join(format.name);
        let made = (format.write)(&sample());
        if std::env::var_os("LANDFALL_WRITE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &made).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(made, golden, "{}", path.display());
    }
}

/// The members that landfall writes in policies of Kubernetes and Cilium, with their types.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Policy {
    api_version: String,
    kind: String,
    metadata: BTreeMap<String, String>,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Spec {
    #[serde(alias = "endpointSelector")]
    pod_selector: Selector,
    policy_types: Option<Vec<String>>,
    egress: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rule {
    ports: Option<Vec<Port<u16>>>,
    to: Option<Vec<Peer>>,
    to_endpoints: Option<Vec<Selector>>,
    #[serde(rename = "toFQDNs")]
    to_fqdns: Option<Vec<Name>>,
    #[serde(rename = "toCIDR")]
    to_cidr: Option<Vec<String>>,
    to_ports: Option<Vec<ToPorts>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Port<T> {
    protocol: String,
    port: T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Peer {
    ip_block: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Name {
    match_name: Option<String>,
    match_pattern: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToPorts {
    /// In Cilium, ports are strings.
    ports: Vec<Port<String>>,
    rules: Option<BTreeMap<String, Vec<Name>>>,
}

fn policy(name: &str) -> Policy {
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    serde_yaml::from_str(&(format.write)(&sample())).unwrap()
}

#[test]
fn policies_have_the_members_of_their_kinds() {
    let plain = policy("networkpolicy");
    assert_eq!(
        (&*plain.api_version, &*plain.kind),
        ("networking.k8s.io/v1", "NetworkPolicy")
    );
    assert_eq!(plain.spec.policy_types.unwrap(), ["Egress"]);
    assert!(
        plain.metadata.contains_key("name") && !plain.spec.pod_selector.match_labels.is_empty()
    );
    let rules: Vec<(u16, usize)> = plain
        .spec
        .egress
        .iter()
        .map(|rule| {
            let ports = rule.ports.as_ref().unwrap();
            assert!(
                ports
                    .iter()
                    .all(|port| ["TCP", "UDP"].contains(&&*port.protocol))
            );
            (
                ports[0].port,
                rule.to
                    .as_ref()
                    .map_or(0, |to| to.iter().map(|peer| peer.ip_block.len()).sum()),
            )
        })
        .collect();
    // addresses are listed only for a port without names
    assert_eq!(rules, [(53, 0), (22, 1), (80, 0), (443, 0), (6443, 0)]);

    let cilium = policy("cilium");
    assert_eq!(
        (&*cilium.api_version, &*cilium.kind),
        ("cilium.io/v2", "CiliumNetworkPolicy")
    );
    let mut queried = Vec::new();
    let mut reached = Vec::new();
    for rule in &cilium.spec.egress {
        let to = rule.to_ports.as_ref().unwrap();
        assert!(
            to.iter()
                .all(|to| to.ports.iter().all(|port| port.port.parse::<u16>().is_ok()))
        );
        let names = to
            .iter()
            .filter_map(|to| to.rules.as_ref())
            .flat_map(|rules| &rules["dns"]);
        queried.extend(names.map(name_text));
        assert_eq!(
            rule.to_endpoints.is_some(),
            to[0].rules.is_some(),
            "queries go to the cluster's DNS"
        );
        reached.extend(rule.to_fqdns.iter().flatten().map(name_text));
        reached.extend(rule.to_cidr.iter().flatten().cloned());
    }
    assert_eq!(
        queried,
        ["auth.docker.io", "files.test", "quay.io", "**.corp.test"]
    );
    assert_eq!(
        reached,
        [
            "fd00::7/128",
            "files.test",
            "auth.docker.io",
            "quay.io",
            "10.0.0.9/32",
            "**.corp.test"
        ]
    );
}

fn name_text(name: &Name) -> String {
    name.match_name
        .clone()
        .or(name.match_pattern.clone())
        .unwrap()
}

#[test]
fn probe_results_and_changes_are_listed_and_csv_formulas_are_escaped() {
    let mut found = sample();
    found.hosts.truncate(1);
    found.hosts[0].why = vec!["=HYPERLINK(\"http://x\")".into()];
    found.hosts[0].reach = Some(Reachability::Refused);
    found.hosts[0].reason = Some("the proxy refuses it,\n403".into());
    found.hosts[0].change = Some(HostChange::Added);
    let format = |name: &str| {
        (FORMATS
            .iter()
            .find(|format| format.name == name)
            .unwrap()
            .write)(&found)
    };
    assert!(
        format("text").starts_with("added    refused  *.corp.test:6443  tcp"),
        "{}",
        format("text")
    );
    assert!(
        format("csv").contains("\"'=HYPERLINK(\"\"http://x\"\")\",kkp-user"),
        "{}",
        format("csv")
    );
    assert!(
        format("markdown").contains("| refused | the proxy refuses it,\\n403 |"),
        "{}",
        format("markdown")
    );
}
