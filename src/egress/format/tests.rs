//! Every form of one list, as its golden file in `tests/data/egress` says.

use super::FORMATS;
use crate::egress::Egress;
use crate::egress::host::{Change, EgressHost, Known, Reach};

fn row(host: &str, port: u16, scheme: &str, known: Known, why: &[&str]) -> EgressHost {
    EgressHost {
        host: host.into(),
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
    let node = row("*.corp.test", 6443, "tcp", Known::Declared, &["user cluster \"API\", |all| of it"]);
    let proxied = row("quay.io", 443, "https", Known::Predicted, &["images of quay.io"]);
    Egress {
        hosts: vec![
            EgressHost { from: vec!["kkp-user".into(), "user-cluster-node".into()], ..node },
            row("10.0.0.9", 443, "https", Known::Declared, &["vSphere API"]),
            row("fd00::7", 22, "tcp", Known::Declared, &["an address alone"]),
            row("auth.docker.io", 443, "https", Known::Observed, &["tokens of docker.io"]),
            row("files.test", 80, "http", Known::Observed, &["files of files.test"]),
            EgressHost { via: Some("10.99.0.1:3128".into()), ..proxied },
        ],
        notes: vec!["quay.io: no run with this store has asked it".into()],
    }
}

#[test]
fn every_form_is_as_its_golden_file() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/egress");
    for format in &FORMATS {
        let (path, made) = (folder.join(format.name), (format.write)(&sample()));
        if std::env::var_os("LANDFALL_WRITE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &made).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(made, golden, "{}", path.display());
        if format.name.contains("policy") || format.name == "cilium" {
            let read: serde_json::Value = serde_yaml::from_str(&made).unwrap();
            assert!(read["spec"]["egress"].as_array().unwrap().len() >= 4, "{read:#}");
        }
    }
}

#[test]
fn what_a_probe_and_a_comparison_found_stands_in_lists_and_formulas_are_only_text() {
    let mut found = sample();
    found.hosts.truncate(1);
    found.hosts[0].why = vec!["=HYPERLINK(\"http://x\")".into()];
    found.hosts[0].reach = Some(Reach::Refused);
    found.hosts[0].reason = Some("the proxy refuses it,\n403".into());
    found.hosts[0].change = Some(Change::Added);
    let form = |name: &str| (FORMATS.iter().find(|format| format.name == name).unwrap().write)(&found);
    assert!(form("text").starts_with("added    refused  *.corp.test:6443  tcp"), "{}", form("text"));
    assert!(form("csv").contains("\"'=HYPERLINK(\"\"http://x\"\")\",kkp-user"), "{}", form("csv"));
    assert!(form("markdown").contains("| refused | the proxy refuses it, 403 |"), "{}", form("markdown"));
}
