//! Nodes set up by rendered files: containerd starts with them, and pulls by the original names from the site's registry
//! alone, as `ctr` and as Kubernetes ask it to.

use super::closed_network::{NEEDS, carried};
use crate::support::library::Digest;
use crate::support::netns::{Network, REGISTRY};
use crate::support::peers::docker_registry_config;
use crate::support::pki::Authority;
use crate::support::{Place, World, need, run};
use std::process::Command;

/// A command of the operator's, with the account.
fn operator(network: &Network, far: &Place, args: &[&str]) -> Command {
    let mut command = far.command();
    command
        .args(args)
        .args(["--site", "far.yaml", "--progress", "none"])
        .env("U", "robot")
        .env("P", "hush 100%");
    network.on("operator", &command)
}

/// Delivers the bundle by the site, and pulls every image on a node with the rendered files.
fn deliver_and_pull(world: &World, network: &Network, far: &Place, site: &str, args: &[&str]) {
    far.write("far.yaml", format!("apiVersion: landfall/v1\nkind: Site\n{site}"));
    run(&mut operator(network, far, &["push", "bundle.tar.zst"]));
    let _ = std::fs::remove_dir_all(far.path("node"));
    let render = ["render", "containerd", "--bundle", "bundle.tar.zst", "-o", "node", "--set"];
    let sandbox = "sandbox=registry.k8s.io/pause:3.10.1";
    run(&mut operator(network, far, &[&render[..], &[sandbox], args].concat()));
    let node = network.containerd_with(far, &far.path("node"));
    let hosts = far.path("node/etc/containerd/certs.d").display().to_string();
    let by_header = !args.contains(&"auth=config");
    for upstream in world.upstreams.iter().filter(|upstream| !upstream.name.contains("nested")) {
        // containerd 1.6 pulls no nested index for one platform
        let digest = upstream.descriptor["digest"].as_str().unwrap();
        if by_header {
            let options = ["--hosts-dir", &hosts, "--platform", "linux/amd64"];
            assert_eq!(node.pull(far, &options, upstream.name), digest, "{site}");
        }
        let answer = node.pull_for_kubernetes(far, upstream.name);
        assert!(answer.contains("grpc-status: 0"), "{}: {answer}", upstream.name);
    }
    // a short name, and an alias of the host
    for name in ["calico/node:v3.8.2", "k8s.gcr.io/pause:3.10.1"] {
        let answer = node.pull_for_kubernetes(far, name);
        assert!(answer.contains("grpc-status: 0"), "{name}: {answer}");
    }
    // what the registry lacks is not asked for elsewhere, of a known host and of an unknown one
    for name in ["quay.io/prometheus/none:v1", "far.test/a/b:1"] {
        let answer = node.pull_for_kubernetes(far, name);
        assert!(!answer.contains("grpc-status: 0") && answer.contains("not found"), "{name}: {answer}");
    }
    pull_by_skopeo(world, network, far);
    let dump =
        run(&mut node
            .shell(far, &format!("containerd --config {} config dump", far.path("node.toml").display())));
    let dump = String::from_utf8_lossy(&dump).into_owned();
    assert!(dump.contains("config_path = \"/etc/containerd/certs.d\""), "{dump}");
    assert!(
        dump.lines().any(|line| line.contains("sandbox_image") && line.contains("172.20.0.2:5000/")),
        "{dump}"
    );
}

/// Asks for every image by its original name with the rendered registries.conf, certificates and account.
fn pull_by_skopeo(world: &World, network: &Network, far: &Place) {
    let _ = std::fs::remove_dir_all(far.path("machine"));
    run(&mut operator(network, far, &["render", "podman", "--bundle", "bundle.tar.zst", "-o", "machine"]));
    let machine = |path: &str| far.path("machine").join(path);
    for upstream in &world.upstreams {
        let mut skopeo = far.clean("skopeo");
        skopeo.arg("--registries-conf").arg(machine("etc/containers/registries.conf.d/50-landfall.conf"));
        skopeo.arg("inspect").args(["--raw", "--cert-dir"]);
        skopeo.arg(machine(&format!("etc/containers/certs.d/{REGISTRY}")));
        if machine("auth.json").exists() {
            skopeo.arg("--authfile").arg(machine("auth.json"));
        }
        skopeo.arg(format!("docker://{}", upstream.name));
        let raw = run(&mut network.on("node", &skopeo));
        assert_eq!(Digest::sha256(&raw).to_string(), upstream.descriptor["digest"], "{}", upstream.name);
    }
}

#[test]
fn a_node_pulls_original_names_over_plain_http() {
    if !need(&NEEDS) {
        return;
    }
    let world = World::new();
    let far = carried(&world);
    let Some(network) = Network::new() else { return };
    let _registry = network.docker_registry(&far);
    let dropped = "registry:\n  address: 172.20.0.2:5000\n  plainHTTP: true\n  \
                   paths: {k8s.gcr.io: kubernetes, gcr.io/google_containers: kubernetes}\nconsumers: [containerd]\n";
    deliver_and_pull(&world, &network, &far, dropped, &[]);
    let kept = "registry: {address: \"172.20.0.2:5000/mirror\", plainHTTP: true, keepHost: true}\n";
    deliver_and_pull(&world, &network, &far, kept, &[]);
}

#[test]
fn a_node_pulls_original_names_over_tls_with_an_account() {
    if !need(&NEEDS) || !need(&["htpasswd"]) {
        return;
    }
    let world = World::new();
    let far = carried(&world);
    let Some(network) = Network::new() else { return };
    let authority = Authority::new(&far, "corp");
    let (certificate, key) = authority.issue(&far, &["172.20.0.2"]);
    let (client, client_key) = authority.issue(&far, &["node.corp.test"]);
    let users = run(far.clean("htpasswd").args(["-Bbn", "robot", "hush 100%"]));
    let users = far.write("users", users);
    let more = format!(
        "http: {{addr: \"{REGISTRY}\", tls: {{certificate: {certificate:?}, key: {key:?}, clientcas: [{:?}]}}}}\n\
         auth: {{htpasswd: {{realm: corp, path: {users:?}}}}}",
        authority.pem
    );
    let mut command = far.clean("docker-registry");
    command.arg("serve").arg(docker_registry_config(&far, REGISTRY, &more));
    let _registry = network.serve("registry", &command, REGISTRY);
    let site = format!(
        "registry:\n  address: {REGISTRY}\n  ca: {:?}\n  clientCert: {client:?}\n  clientKey: {client_key:?}\n  \
         credentials: {{usernameEnv: U, passwordEnv: P}}\n",
        authority.pem
    );
    deliver_and_pull(&world, &network, &far, &site, &[]);
    deliver_and_pull(&world, &network, &far, &site, &["--set", "auth=config"]);
}
