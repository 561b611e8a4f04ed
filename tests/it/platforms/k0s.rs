//! `landfall render k0s`: the files of containerd in the folder that k0s reads.

use super::both_sites::corp_with;
use super::{files_without_header, golden};

const IMAGES: &[&str] = &[
    "quay.io/k0sproject/coredns:1.14.6-k0s.0",
    "quay.io/prometheus/node-exporter:v1.9.0",
];

#[test]
fn older_releases_have_the_configuration_of_containerd_1() {
    let args = ["k0s", "--set", "version=1.35", "--set", "auth=config"];
    golden(&corp_with(IMAGES), "k0s-1.35", &args);
}

#[test]
fn the_hosts_files_are_those_of_containerd() {
    let place = corp_with(IMAGES);
    for platform in ["k0s", "containerd"] {
        place.ok(&["render", platform, "--site", "site.yaml", "-o", platform]);
    }
    let k0s = files_without_header(&place.path("k0s/etc/k0s/containerd.d/certs.d"));
    assert_eq!(
        k0s,
        files_without_header(&place.path("containerd/etc/containerd/certs.d"))
    );
    assert!(k0s.len() >= 4, "{k0s:?}");
}
