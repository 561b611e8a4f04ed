//! The registries.yaml of k3s and RKE2, read by their own code: images are pulled by their original
//! names from the private registry only.

use super::far_side::{CREDENTIALS, FarSide};
use crate::support::library::Digest;
use crate::support::netns::REGISTRY;
use crate::support::programs::go_program;
use crate::support::run;
use std::path::Path;

/// Pushes the bundle with the site, and renders both platforms. With the rendered files, pulls
/// every image except the nested index.
fn deliver_and_pull(side: &FarSide, program: &Path, site: &str) {
    side.site(site);
    side.push();
    for platform in ["k3s", "rke2"] {
        let folder = format!("of-{platform}");
        let _ = std::fs::remove_dir_all(side.place.path(&folder));
        side.render(&[platform, "-o", &folder]);
        let file = format!("{folder}/etc/rancher/{platform}/registries.yaml");
        // registries.yaml has the paths of the certificates on a node; here, the certificates are
        // in the rendered folder
        let here = side
            .place
            .path(format!("{folder}/etc/rancher"))
            .display()
            .to_string();
        let text = side
            .place
            .read(&file)
            .replace(" /etc/rancher", &format!(" {here}"));
        let file = side.place.write("registries.yaml", text);
        let pull = |name: &str| {
            let mut pull = side.place.clean(program);
            pull.arg(&file).arg(name);
            side.network.on("node", &pull)
        };
        for upstream in side
            .world
            .upstreams
            .iter()
            .filter(|upstream| !upstream.name.contains("nested"))
        {
            let printed = String::from_utf8(run(&mut pull(upstream.name))).unwrap();
            let digest = printed.split_whitespace().next_back().unwrap();
            let index = side
                .world
                .images
                .bytes(upstream.descriptor["digest"].as_str().unwrap());
            let is_it = String::from_utf8_lossy(&index).contains(digest)
                || Digest::sha256(&index).to_string() == digest;
            assert!(is_it, "{platform}: {printed}");
        }
        let lacking = pull("quay.io/prometheus/none:v1").output().unwrap();
        let told = String::from_utf8_lossy(&lacking.stderr).into_owned();
        assert!(
            !lacking.status.success() && told.contains("MANIFEST_UNKNOWN"),
            "{platform}: {told}"
        );
    }
}

#[test]
fn k3s_and_rke2_pull_original_names_over_plain_http() {
    let Some(program) = go_program("registries-yaml") else {
        return;
    };
    let Some(side) = FarSide::new(&[]) else {
        return;
    };
    let _registry = side.network.docker_registry(&side.place);
    let dropped = "registry:\n  address: 172.20.0.2:5000\n  plainHTTP: true\n  \
                   paths: {k8s.gcr.io: kubernetes, quay.io/prometheus: monitoring}\nconsumers: [k3s, rke2]\n";
    deliver_and_pull(&side, &program, dropped);
    let kept = "registry: {address: \"172.20.0.2:5000/mirror\", plainHTTP: true, keepHost: true}\n";
    deliver_and_pull(&side, &program, kept);
}

#[test]
fn k3s_and_rke2_pull_original_names_over_tls_with_an_account() {
    let Some(program) = go_program("registries-yaml") else {
        return;
    };
    let Some(side) = FarSide::new(&["htpasswd"]) else {
        return;
    };
    let (_registry, authority) = side.registry_with_account(true);
    let (client, key) = authority.issue(&side.place, &["node.corp.test"]);
    let site = format!(
        "registry:\n  address: {REGISTRY}\n  ca: {:?}\n  clientCert: {client:?}\n  clientKey: {key:?}\n  {CREDENTIALS}\n",
        authority.pem
    );
    deliver_and_pull(&side, &program, &site);
}
