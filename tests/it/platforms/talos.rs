//! `landfall render talos`: patches of the machine configuration for each release of Talos.

use super::both_sites::{ROOT, corp_with};
use super::{golden, place, refused};
use crate::support::Place;
use serde::Deserialize;
use serde_yaml::Value;

const INSTALLER: &str = "ghcr.io/siderolabs/installer:v1.13.9";
const FACTORY: &str = "factory.talos.dev/metal-installer-secureboot/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.14.0";

const IMAGES: &[&str] = &[
    "docker.io/library/nginx:1.27",
    INSTALLER,
    "ghcr.io/siderolabs/installer-base:v1.13.9",
    "ghcr.io/siderolabs/kubelet:v1.36.3",
    "quay.io/prometheus/node-exporter:v1.9.0",
    "registry.k8s.io/pause:3.10.1",
];

/// The documents of a rendered file.
fn documents(place: &Place, file: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(&place.read(file))
        .map(|document| Value::deserialize(document).unwrap())
        .collect()
}

fn render(place: &Place, args: &[&str]) -> String {
    place.ok(&[
        &["render", "talos", "--site", "site.yaml", "-o", "out"],
        args,
    ]
    .concat())
}

#[test]
fn the_patches_of_each_release_match_the_golden_files() {
    for version in ["1.11", "1.12", "1.13", "1.14"] {
        golden(
            &corp_with(IMAGES),
            &format!("talos-{version}"),
            &["talos", "--set", &format!("version={version}")],
        );
    }
}

#[test]
fn every_host_of_the_lock_has_a_mirror() {
    let hosts = [
        "docker.io",
        "ghcr.io",
        "k8s.gcr.io",
        "quay.io",
        "registry.k8s.io",
    ];
    let place = place(ROOT, IMAGES);
    render(&place, &[]);
    let mirrors: Vec<Value> = documents(&place, "out/registry.yaml")
        .into_iter()
        .filter(|document| document["kind"] == "RegistryMirrorConfig")
        .collect();
    let named = |name: &str| mirrors.iter().find(|mirror| mirror["name"] == name);
    for host in hosts.iter().chain(&["172.20.0.2:5000", "*"]) {
        let mirror = named(host).unwrap_or_else(|| panic!("{host}: {mirrors:?}"));
        assert_eq!(mirror["skipFallback"], true, "{host}");
        assert_eq!(
            mirror["endpoints"][0]["url"], "http://172.20.0.2:5000",
            "{host}"
        );
    }

    render(&place, &["--set", "version=1.11"]);
    let [machine] = &documents(&place, "out/registry.yaml")[..] else {
        panic!("{}", place.read("out/registry.yaml"));
    };
    let mirrors = &machine["machine"]["registries"]["mirrors"];
    for host in hosts.iter().chain(&["172.20.0.2:5000", "*"]) {
        assert_eq!(mirrors[host]["skipFallback"], true, "{host}");
    }
}

#[test]
fn no_mirror_skips_upstream_if_the_site_allows_the_fallback() {
    let site = "registry: {address: \"registry.test:5000\", upstreamFallback: true}\n";
    let place = place(site, IMAGES);
    for version in ["1.11", "1.13"] {
        render(&place, &["--set", &format!("version={version}")]);
        let text = place.read("out/registry.yaml");
        assert!(
            !text.contains("skipFallback") && !text.contains('*') && text.contains("quay.io"),
            "{text}"
        );
    }
}

#[test]
fn up_to_1_11_override_path_applies_to_all_endpoints_of_a_host() {
    let site = "registry:\n  address: registry.test:5000\n  paths: {quay.io/prometheus: \
                other/prometheus}\nconsumers: [talos]\n";
    let place = place(
        site,
        &[
            "quay.io/calico/node:v3.31.5",
            "quay.io/prometheus/prometheus:v3.1.0",
        ],
    );
    render(&place, &["--set", "version=1.11"]);
    let documents = documents(&place, "out/registry.yaml");
    let quay = &documents[0]["machine"]["registries"]["mirrors"]["quay.io"];
    assert_eq!(quay["overridePath"], true, "{quay:?}");
    assert_eq!(
        quay["endpoints"][0], "https://registry.test:5000/v2",
        "{quay:?}"
    );
    assert_eq!(
        quay["endpoints"][1], "https://registry.test:5000/v2/other",
        "{quay:?}"
    );
}

#[test]
fn one_of_several_locked_installers_must_be_chosen() {
    let place = place(ROOT, &[INSTALLER, FACTORY]);
    let said = render(&place, &[]);
    assert!(
        said.contains("choose one with --set installer=IMAGE") && said.contains(FACTORY),
        "{said}"
    );
    assert!(!place.read("out/registry.yaml").contains("install:"));

    let chosen = format!("installer={FACTORY}");
    render(&place, &["--set", &chosen]);
    let last = documents(&place, "out/registry.yaml").pop().unwrap();
    assert_eq!(last["machine"]["install"]["image"], FACTORY);
    render(&place, &["--set", &chosen, "--set", "version=1.14"]);
    let last = documents(&place, "out/registry.yaml").pop().unwrap();
    assert_eq!(last["kind"], "UnattendedInstallConfig");
    assert_eq!(last["installer"]["image"], FACTORY);

    let other = super::place(ROOT, &[INSTALLER]);
    let message = refused(
        &other,
        2,
        &["talos", "--set", "installer=ghcr.io/a/installer:v1"],
    );
    assert!(message.contains("the lock has no such image"), "{message}");
}

#[test]
fn secrets_are_only_in_their_own_file() {
    let site = "registry:\n  address: registry.test:5000\n  ca: ca.crt\n  clientCert: client.crt\n  \
                clientKey: client.key\n  credentials: {file: account}\n";
    let pem =
        |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
    for version in ["1.11", "1.13"] {
        let place = place(site, &[INSTALLER]);
        place.write("ca.crt", pem("CERTIFICATE", "Y2E="));
        place.write("client.crt", pem("CERTIFICATE", "Y2xpZW50"));
        place.write("client.key", pem("PRIVATE KEY", "aHVzaA=="));
        place.write("account", "puller:secret word\n");
        let said = render(&place, &["--set", &format!("version={version}")]);
        assert!(
            said.contains("credentials.yaml") && said.contains("holds credentials"),
            "{said}"
        );
        let public = place.read("out/registry.yaml");
        for secret in ["secret word", "aHVzaA", "clientIdentity", "auth"] {
            assert!(!public.contains(secret), "{secret}: {public}");
        }
        let documents = documents(&place, "out/credentials.yaml");
        let text = place.read("out/credentials.yaml");
        if version == "1.13" {
            assert_eq!(documents[0]["password"], "secret word");
            let identity = &documents[1]["clientIdentity"];
            assert_eq!(identity["key"], pem("PRIVATE KEY", "aHVzaA=="), "{text}");
            assert_eq!(identity["cert"], pem("CERTIFICATE", "Y2xpZW50"), "{text}");
        } else {
            let config = &documents[0]["machine"]["registries"]["config"]["registry.test:5000"];
            assert_eq!(config["auth"]["password"], "secret word");
            assert!(
                config["tls"]["clientIdentity"]["crt"]
                    .as_str()
                    .unwrap()
                    .starts_with("LS0t")
            );
        }
    }
}

#[test]
fn merging_is_left_to_talosctl() {
    let place = place(ROOT, IMAGES);
    place.write("mine.yaml", "machine: {}\n");
    let args = [
        "render",
        "talos",
        "--site",
        "site.yaml",
        "--into",
        "mine.yaml",
    ];
    let message = place.stderr(2, &args);
    assert!(
        message.contains("talosctl machineconfig patch"),
        "{message}"
    );
}
