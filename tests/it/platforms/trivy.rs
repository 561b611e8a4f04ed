//! `landfall render trivy`: the databases and mirrors in trivy.yaml.

use super::both_sites::{ROOT, corp_with};
use super::{golden, place, refused};

const DATABASES: &[&str] = &[
    "docker.io/library/nginx:1.27",
    "ghcr.io/aquasecurity/trivy-checks:2",
    "ghcr.io/aquasecurity/trivy-db:2",
    "ghcr.io/aquasecurity/trivy-java-db:1",
    "quay.io/prometheus/node-exporter:v1.9.0",
];

#[test]
fn matches_the_golden_files_at_the_root() {
    golden(&place(ROOT, DATABASES), "trivy-root", &["trivy"]);
}

#[test]
fn matches_the_golden_files_with_prefix_authority_and_accounts() {
    golden(&corp_with(DATABASES), "trivy-corp", &["trivy"]);
}

#[test]
fn a_database_that_is_not_locked_is_not_updated() {
    let place = place(ROOT, &["ghcr.io/aquasecurity/trivy-db:2"]);
    let said = place.ok(&["render", "trivy", "--site", "site.yaml", "-o", "out"]);
    assert!(said.contains("not locked: trivy-java-db"), "{said}");
    let text = place.read("out/etc/trivy/trivy.yaml");
    for line in [
        "  java-skip-update: true\n",
        "rego:\n  skip-check-update: true\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let told = refused(
        &super::place(ROOT, &["docker.io/library/nginx:1.27"]),
        1,
        &["trivy"],
    );
    assert!(told.contains("none of Trivy's databases"), "{told}");
}
