//! `landfall render kubespray`: the group variables of an inventory.

use super::both_sites::ROOT;
use super::{CERTIFICATE, place, refused};
use crate::support::Place;
use serde_yaml::Value;

const IMAGES: &[&str] = &[
    "docker.io/library/nginx:1.28.2-alpine",
    "quay.io/calico/node:v3.31.5",
    "registry.k8s.io/coredns/coredns:v1.12.4",
];

fn variables(place: &Place) -> Value {
    place.ok(&["render", "kubespray", "--site", "site.yaml", "-o", "out"]);
    serde_yaml::from_str(&place.read("out/group_vars/all/landfall.yml")).unwrap()
}

#[test]
fn each_registry_has_its_path() {
    let site = "registry: {address: \"registry.test:5000/mirror\", keepHost: true}\n";
    let variables = variables(&place(site, IMAGES));
    for (variable, path) in [
        ("kube_image_repo", "registry.k8s.io"),
        ("gcr_image_repo", "gcr.io"),
        ("docker_image_repo", "docker.io"),
        ("quay_image_repo", "quay.io"),
        ("github_image_repo", "ghcr.io"),
    ] {
        let expected = format!("registry.test:5000/mirror/{path}");
        assert_eq!(variables[variable], expected.as_str(), "{variable}");
    }
    let mirrors = variables["containerd_registries_mirrors"]
        .as_sequence()
        .unwrap();
    let quay = mirrors
        .iter()
        .find(|mirror| mirror["prefix"] == "quay.io")
        .unwrap();
    assert_eq!(quay["mirrors"][0]["override_path"], true);
    assert_eq!(
        quay["mirrors"][0]["host"],
        "https://registry.test:5000/v2/mirror/quay.io"
    );
    assert_eq!(quay["server"], "https://registry.test:5000");
}

#[test]
fn a_repository_with_its_own_path_is_refused_unless_kubespray_is_a_consumer() {
    let site = "registry:\n  address: registry.test:5000\n  paths: {quay.io/calico: net/calico}\n";
    let message = refused(&place(site, IMAGES), 4, &["kubespray"]);
    assert!(
        message.contains("quay.io/calico/node: [net/calico/node, calico/node]"),
        "{message}"
    );
    variables(&place(&format!("{site}consumers: [kubespray]\n"), IMAGES));
}

#[test]
fn nodes_with_cri_o_get_its_variables() {
    let site = "registry:\n  address: registry.test:5000\n  ca: ca.crt\n  credentials: {file: account}\n  \
                paths: {quay.io: quay}\n";
    let place = place(site, IMAGES);
    place.write("ca.crt", CERTIFICATE);
    place.write("account", "robot:hush\n");
    let args = ["render", "kubespray", "--site", "site.yaml", "-o", "out"];
    let args = [&args[..], &["--set", "container-manager=crio"]].concat();
    let read = |file: &str| -> Value {
        place.ok(&args);
        serde_yaml::from_str(&place.read(&format!("out/group_vars/all/{file}"))).unwrap()
    };
    let variables = read("landfall.yml");
    assert!(variables.get("containerd_registries_mirrors").is_none());
    let expected = "- {prefix: docker.io, location: \"registry.test:5000\", insecure: false}\n\
                    - {prefix: k8s.gcr.io, location: \"registry.test:5000\", insecure: false}\n\
                    - {prefix: quay.io, location: \"registry.test:5000/quay\", insecure: false}\n\
                    - {prefix: registry.k8s.io, location: \"registry.test:5000\", insecure: false}\n";
    let expected: Value = serde_yaml::from_str(expected).unwrap();
    assert_eq!(variables["crio_registries"], expected);
    let account = read("landfall-credentials.yml")["crio_registry_auth"][0].clone();
    assert_eq!(account["registry"], "registry.test:5000");
    assert_eq!(
        [&account["username"], &account["password"]],
        ["robot", "hush"]
    );
    let trusted = place.path("out/node/etc/containers/certs.d/registry.test:5000/ca.crt");
    assert!(trusted.exists());
    // upstream is the location, and the registry is its mirror
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: r.test, plainHTTP: true, upstreamFallback: true}\n",
    );
    let list = read("landfall.yml")["crio_registries"].clone();
    let expected = "{prefix: quay.io, location: quay.io, insecure: false, \
                    mirrors: [{location: r.test, insecure: true}]}";
    let expected: Value = serde_yaml::from_str(expected).unwrap();
    assert_eq!(list[2], expected);
    let own: Value = serde_yaml::from_str("{location: r.test, insecure: true}").unwrap();
    assert_eq!(list[4], own);
}

#[test]
fn without_a_file_server_the_output_says_so() {
    let site = ROOT.replace("files: \"http://172.20.0.2:8080\"\n", "");
    let place = place(&site, IMAGES);
    let said = place.ok(&["render", "kubespray", "--site", "site.yaml", "-o", "out"]);
    assert!(
        said.contains("nodes download files from upstream"),
        "{said}"
    );
    assert!(
        !place
            .read("out/group_vars/all/landfall.yml")
            .contains("github_url")
    );
}
