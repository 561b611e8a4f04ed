//! A registry without a configured scheme: landfall may have detected plain http, while nodes use
//! https.

use super::{place, refused};

/// Every platform whose nodes pull from the registry, with its arguments except `--site` and `-o`.
const PLATFORMS: [&[&str]; 16] = [
    &["containerd"],
    &["docker"],
    &["crio"],
    &["podman"],
    &["nerdctl"],
    &["k3s"],
    &["rke2"],
    &["k0s"],
    &["talos"],
    &["kubespray"],
    &["openshift"],
    &["kubeone"],
    &["kubeadm"],
    &["kubermatic"],
    &["capi", "--set", "cluster=c"],
    &["tkg", "--set", "cluster=c", "--set", "namespace=n"],
];

const NOTE: &str = "over https and must trust its certificate";
const ADVICE: &str = "; if it speaks plain http, set registry.plainHTTP: true";

#[test]
fn rendering_for_nodes_prints_the_https_note() {
    let render = |site: &str, args: &[&str]| {
        let place = place(site, &["docker.io/library/nginx:1.27"]);
        place.ok(&[&["render"], args, &["--site", "site.yaml", "-o", "out"]].concat())
    };
    for args in PLATFORMS {
        let printed = render("registry: {address: \"172.20.0.2:5000\"}\n", args);
        assert_eq!(printed.matches(NOTE).count(), 1, "{args:?}: {printed}");
        // TKG refuses the setting, so it is not advised
        assert_eq!(
            printed.contains(ADVICE),
            args[0] != "tkg",
            "{args:?}: {printed}"
        );
        // no note is needed if the scheme is configured, or for a host name: landfall probes only
        // addresses and localhost
        if args[0] != "tkg" {
            let printed = render(
                "registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\n",
                args,
            );
            assert!(!printed.contains(NOTE), "{args:?}: {printed}");
        }
        let printed = render("registry: {address: \"registry.test:5000\"}\n", args);
        assert!(!printed.contains(NOTE), "{args:?}: {printed}");
    }
    // platforms that only change names do not configure nodes
    let printed = render("registry: {address: \"172.20.0.2:5000\"}\n", &["kyverno"]);
    assert!(!printed.contains(NOTE), "{printed}");
}

#[test]
fn an_address_without_a_port_needs_the_https_note_too() {
    for address in ["172.20.0.2", "[fd00::2]"] {
        let site = format!("registry: {{address: \"{address}\"}}\n");
        let place = place(&site, &["docker.io/library/nginx:1.27"]);
        let printed = place.ok(&["render", "k3s", "--site", "site.yaml", "-o", "out"]);
        assert_eq!(printed.matches(NOTE).count(), 1, "{address}: {printed}");
        // containerd/containerd#10055
        let is_ignored = printed.contains("containerd 1.x, which ignores a mirror");
        assert_eq!(is_ignored, address.starts_with('['), "{printed}");
    }
}

#[test]
fn the_https_note_is_printed_once_for_all_clusters() {
    let site = "registry: {address: \"[fd00::2]:5000\"}\nclusters: [{name: a, namespace: n}, {name: b, namespace: n}]\n";
    let place = place(site, &["docker.io/library/nginx:1.27"]);
    let printed = place.ok(&["render", "capi", "--site", "site.yaml", "-o", "out"]);
    assert_eq!(printed.matches(NOTE).count(), 1, "{printed}");
}

#[test]
fn plain_http_may_be_named_by_its_url() {
    let site = "registry: {address: \"172.20.0.2:5000\"}\n";
    for named in [
        "172.20.0.2:5000",
        "http://172.20.0.2:5000",
        "HTTP://172.20.0.2/",
    ] {
        let place = place(site, &["docker.io/library/nginx:1.27"]);
        let flags = ["--site", "site.yaml", "-o", "out", "--plain-http", named];
        let printed = place.ok(&[&["render", "containerd"][..], &flags].concat());
        let hosts = place.read("out/etc/containerd/certs.d/docker.io/hosts.toml");
        assert!(
            !printed.contains(NOTE) && hosts.contains("\"http://172.20.0.2:5000\""),
            "{named}: {printed}{hosts}"
        );
    }
    // other texts equal no host, so they would have no effect
    for named in [
        "https://172.20.0.2:5000",
        "172.20.0.2:5000/team",
        "*.corp.test",
    ] {
        let place = place(site, &["docker.io/library/nginx:1.27"]);
        let printed = refused(&place, 2, &["containerd", "--plain-http", named]);
        assert!(
            printed.contains("write HOST or HOST:PORT"),
            "{named}: {printed}"
        );
    }
}
