//! `landfall render nerdctl`: the files of containerd where nerdctl reads them, and the account.

use super::both_sites::corp_with;
use super::{files_without_header, golden, place};

const IMAGES: &[&str] = &["quay.io/prometheus/node-exporter:v1.9.0"];

#[test]
fn rootless_files_are_below_the_home_folder() {
    let args = ["nerdctl", "--set", "mode=rootless"];
    golden(&corp_with(IMAGES), "nerdctl-rootless", &args);
}

#[test]
fn with_headers_the_files_are_those_of_containerd() {
    let place = corp_with(IMAGES);
    for platform in ["nerdctl", "containerd"] {
        let args = ["render", platform, "--set", "auth=header"];
        place.ok(&[&args[..], &["--site", "site.yaml", "-o", platform]].concat());
    }
    let nerdctl = files_without_header(&place.path("nerdctl/etc/containerd/certs.d"));
    assert_eq!(
        nerdctl,
        files_without_header(&place.path("containerd/etc/containerd/certs.d"))
    );
    assert!(nerdctl.len() >= 4, "{nerdctl:?}");
    assert!(!place.path("nerdctl/config.json").exists());
}

#[test]
fn images_with_another_account_and_unreadable_files_are_listed() {
    let site = "registry:\n  address: \"[fd00::2]:5000\"\n  upstreamFallback: true\n  \
                credentials: {file: account}\n  paths:\n    quay.io/team: {to: [team], \
                credentials: {file: team}}\nconsumers: [containerd]\n";
    let place = place(site, &["quay.io/other/app:v1", "quay.io/team/app:v1"]);
    place.write("account", "all:hush\n");
    place.write("team", "team:hush\n");
    let printed = place.ok(&["render", "nerdctl", "--site", "site.yaml", "-o", "out"]);
    for words in [
        "team/app needs another account",
        "ignores the hosts.toml of quay.io",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    // a client runs no pods
    assert!(!printed.contains("imagePullSecret"), "{printed}");
}
