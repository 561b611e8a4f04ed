//! The patches of `landfall render talos`, applied and read by Talos' own code.

use crate::platforms::place;
use crate::support::pki::Authority;
use crate::support::programs::go_program;
use crate::support::{Place, run};
use serde_json::{Value, json};
use std::path::Path;

const INSTALLER: &str = "ghcr.io/siderolabs/installer:v1.13.9";

const IMAGES: &[&str] = &[
    INSTALLER,
    "quay.io/calico/node:v3.31.5",
    "quay.io/prometheus/prometheus:v3.1.0",
    "registry.k8s.io/pause:3.10.1",
];

const SITE: &str = "registry:
  address: registry.test:5000/mirror
  ca: registry/ca.pem
  clientCert: registry/node.cert
  clientKey: registry/node.key
  credentials: {file: account}
  paths: {quay.io/prometheus: other/prometheus}
consumers: [talos]
proxy:
  http: http://10.0.0.1:3128
  https: http://10.0.0.1:3128
  ca: proxy/ca.pem
  credentials: {file: proxy-account}
  noProxy: {installation: [10.0.0.0/8]}
";

/// Renders the patches for `version`, and returns what Talos reads from a configuration with them.
fn read_by_talos(program: &Path, place: &Place, version: &str) -> Value {
    let setting = format!("version={version}");
    place.ok(&[
        "render",
        "talos",
        "--site",
        "site.yaml",
        "-o",
        version,
        "--set",
        &setting,
    ]);
    let mut talos = place.clean(program);
    talos.arg(format!("v{version}"));
    for file in ["registry.yaml", "credentials.yaml", "proxy.yaml"] {
        let patch = place.path(format!("{version}/{file}"));
        talos.arg(format!("@{}", patch.display()));
    }
    serde_json::from_slice(&run(&mut talos)).unwrap()
}

#[test]
fn talos_reads_the_patches_of_each_release() {
    let Some(program) = go_program("talos-config") else {
        return;
    };
    let place = place(SITE, IMAGES);
    Authority::new(&place, "proxy");
    let authority = Authority::new(&place, "registry");
    let (certificate, key) = authority.issue(&place, &["node"]);
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    place.write("account", "puller:pa:ss\"w\n");
    place.write("proxy-account", "me:p@ss 100%\n");

    for version in ["1.11", "1.12", "1.13"] {
        let read = read_by_talos(&program, &place, version);
        assert_eq!(read["installer"], INSTALLER, "{version}");
        let own = &read["trust"]["registry.test:5000"];
        assert_eq!(own["ca"], text(&authority.pem), "{version}");
        assert_eq!(own["cert"], text(&certificate), "{version}");
        assert_eq!(own["key"], text(&key), "{version}");
        assert_eq!(
            read["accounts"],
            json!({"registry.test:5000": ["puller", "pa:ss\"w"]}),
            "{version}"
        );

        let url = |path: &str| format!("https://registry.test:5000{path}");
        let hosts = ["*", "ghcr.io", "k8s.gcr.io", "quay.io", "registry.k8s.io"];
        for host in hosts {
            let mirror = &read["mirrors"][host];
            assert_eq!(mirror["skipFallback"], true, "{version}: {host}");
            let endpoint = json!({"url": url("/v2/mirror"), "overridePath": true});
            assert_eq!(mirror["endpoints"][0], endpoint, "{version}: {host}");
        }
        let endpoints = read["mirrors"]["quay.io"]["endpoints"].as_array().unwrap();
        assert_eq!(endpoints.len(), 2, "{version}");
        assert_eq!(endpoints[1]["url"], url("/v2/mirror/other"), "{version}");
        let itself = &read["mirrors"]["registry.test:5000"]["endpoints"];
        assert_eq!(
            *itself,
            json!([{"url": url(""), "overridePath": false}]),
            "{version}"
        );

        let proxy = "http://me:p%40ss%20100%25@10.0.0.1:3128";
        assert_eq!(read["environment"]["https_proxy"], proxy, "{version}");
        let direct = read["environment"]["no_proxy"].as_str().unwrap();
        assert!(
            direct.starts_with("10.0.0.0/8,") && direct.ends_with(",registry.test"),
            "{version}: {direct}"
        );
        let roots = read["roots"][0].as_str().unwrap();
        assert!(
            roots.contains(&place.read("proxy/ca.pem")),
            "{version}: {roots}"
        );
    }
}
