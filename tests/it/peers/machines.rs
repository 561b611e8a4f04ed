//! The script of a rendered profile of operating-system-manager, run on a node that reaches the site alone.

use super::closed_network::{NEEDS, carried};
use crate::support::netns::{Network, REGISTRY};
use crate::support::{World, need, run};
use serde_yaml::Value;

#[test]
fn a_profiles_script_gets_its_binaries_from_the_site() {
    if !need(&NEEDS) || !need(&["bash", "sha256sum"]) {
        return;
    }
    let world = World::new();
    let far = carried(&world);
    let Some(network) = Network::new() else { return };
    let mut serve = far.command();
    serve.args(["serve", "bundle.tar.zst", "--listen", REGISTRY, "--site", "site.yaml"]);
    let _server = network.serve("registry", &serve, REGISTRY);
    let site = "registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\nfiles: http://172.20.0.2:5000/files\n\
                consumers: [kubermatic]\n";
    far.write("far.yaml", format!("apiVersion: landfall/v1\nkind: Site\n{site}"));
    far.write("osp.yaml", include_str!("../../data/osp-example.yaml"));
    let render =
        ["render", "kubermatic", "--osp", "osp.yaml", "--bundle", "bundle.tar.zst", "--site", "far.yaml"];
    far.ok(&[&render[..], &["-o", "kkp"]].concat());
    let profile: Value = serde_yaml::from_str(&far.read("kkp/osp-example-landfall.yaml")).unwrap();
    let script = profile["spec"]["provisioningConfig"]["templates"]["fetchBinaries"].as_str().unwrap();
    // what the template engine of operating-system-manager does with it
    let script = script.replace("{{- /* where binaries go */}}", "").replace("{{ .KubeVersion }}", "v1.33.4");
    std::fs::create_dir(far.path("bin")).unwrap();
    let mut bash = far.clean("bash");
    bash.args(["-euo", "pipefail", "-c", &script]).env("BIN_DIR", far.path("bin"));
    let said = run(&mut network.on("node", &bash));
    assert!(String::from_utf8_lossy(&said).contains("kubelet: OK"));
    let arch = if cfg!(target_arch = "x86_64") { "amd64" } else { "arm64" };
    assert_eq!(far.read_bytes("bin/kubelet"), [&world.kubelet[..], arch.as_bytes()].concat());
}
