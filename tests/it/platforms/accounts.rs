//! Separate credentials for paths of the registry: some platforms write them, and others support
//! only one account.

use super::{CERTIFICATE, place};
use crate::support::Place;
use serde_json::Value;

const IMAGES: &[&str] = &["quay.io/other/app:v1", "quay.io/team/app:v1"];

/// A site for `consumer`, with an account for the registry and another one for `team`.
fn two_accounts(consumer: &str) -> Place {
    let site = format!(
        "registry:\n  address: r.test\n  credentials: {{file: account}}\n  paths:\n    quay.io/team: \
         {{to: [team], credentials: {{file: team}}}}\nconsumers: [{consumer}]\n\
         clusters: [{{name: blue, namespace: org-blue}}]\n"
    );
    let place = place(&site, IMAGES);
    place.write("account", "all:hush\n");
    place.write("team", "team:hush\n");
    place
}

#[test]
fn platforms_with_one_account_report_a_second_account() {
    for platform in ["k3s", "rke2", "kubeone", "capi", "kubermatic"] {
        let place = two_accounts(platform);
        let printed = place.ok(&["render", platform, "--site", "site.yaml", "-o", "out"]);
        assert!(
            printed.contains("team/app needs another account; allow the account of ")
                && !printed.contains("hush"),
            "{platform}: {printed}"
        );
    }
}

#[test]
fn platforms_without_a_client_certificate_say_so() {
    let site = "registry:\n  address: r.test\n  clientCert: c.pem\n  clientKey: c.key\n\
                consumers: [kubeone, kubermatic, k3s]\nclusters: [{name: blue, namespace: n}]\n";
    let place = place(site, &["ghcr.io/aquasecurity/trivy-db:2"]);
    place.write("c.pem", CERTIFICATE);
    place.write("c.key", "key\n");
    for (platform, says) in [
        ("kubeone", true),
        ("kubermatic", true),
        ("openshift", true),
        ("trivy", true),
        ("tkg", true),
        ("k3s", false),
        ("talos", false),
    ] {
        let printed = place.ok(&["render", platform, "--site", "site.yaml", "-o", platform]);
        let note = "has no setting for a client certificate";
        assert_eq!(printed.contains(note), says, "{platform}: {printed}");
    }
}

#[test]
fn auth_files_have_the_accounts_of_paths() {
    for (platform, file) in [
        ("crio", "out/etc/crio/landfall-auth.json"),
        ("podman", "out/auth.json"),
    ] {
        let place = two_accounts(platform);
        let printed = place.ok(&["render", platform, "--site", "site.yaml", "-o", "out"]);
        assert!(printed.contains("(0600, holds credentials)"), "{printed}");
        let auths: Value = serde_json::from_str(&place.read(file)).unwrap();
        assert_eq!(
            auths,
            serde_json::json!({"auths": {
                "r.test": {"auth": "YWxsOmh1c2g="},
                "r.test/team/app": {"auth": "dGVhbTpodXNo"},
            }}),
            "{platform}"
        );
    }
}
