//! Nodes set up by rendered files: containerd starts with them, and pulls by the original names from the site's registry
//! alone, as `ctr` and as Kubernetes ask it to.

use super::closed_network::{NEEDS, carried};
use super::runtimes::{docker, dockerd, short, start_dockerd};
use crate::support::library::Digest;
use crate::support::netns::{Network, REGISTRY, containerd};
use crate::support::peers::docker_registry_config;
use crate::support::pki::Authority;
use crate::support::{Place, World, need, run, which};
use serde_yaml::Value;
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
    pull_by_podman(network, far);
    let dump = run(&mut node.shell(
        far,
        &format!("{} --config {} config dump", containerd().display(), far.path("node.toml").display()),
    ));
    let dump = String::from_utf8_lossy(&dump).replace('\'', "\"");
    assert!(dump.contains("config_path = \"/etc/containerd/certs.d\""), "{dump}");
    assert!(dump.lines().any(|line| line.contains("sandbox") && line.contains("172.20.0.2:5000/")), "{dump}");
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

/// Pulls as podman does, from a short name too; without podman nothing is pulled.
fn pull_by_podman(network: &Network, far: &Place) {
    if which("podman").is_none() {
        return;
    }
    let dir = short();
    let at = dir.path().display();
    let storage = format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{at}/root\"\nrunroot = \"{at}/run\"\n");
    let storage = far.write("storage.conf", storage);
    let machine = |path: &str| far.path("machine").join(path);
    far.write("home/.config/containers/policy.json", r#"{"default":[{"type":"insecureAcceptAnything"}]}"#);
    for name in ["quay.io/kubermatic/util:2.0", "calico/node:v3.8.2", "registry.k8s.io/pause:3.10.1"] {
        let mut podman = far.clean("podman");
        podman
            .args(["pull", "--quiet", "--cert-dir"])
            .arg(machine(&format!("etc/containers/certs.d/{REGISTRY}")));
        if machine("auth.json").exists() {
            podman.arg("--authfile").arg(machine("auth.json"));
        }
        podman
            .arg(name)
            .env("CONTAINERS_STORAGE_CONF", &storage)
            .env("CONTAINERS_REGISTRIES_CONF", machine("etc/containers/registries.conf.d/50-landfall.conf"));
        let id = run(&mut network.on("node", &podman));
        assert_eq!(id.trim_ascii().len(), 64, "{name}: {}", String::from_utf8_lossy(&id));
    }
}

#[test]
fn dockerd_pulls_the_hubs_images_from_the_rendered_mirror() {
    if !need(&NEEDS) || !need(&["dockerd", "docker", "nsenter"]) {
        return;
    }
    let world = World::new();
    let far = carried(&world);
    let Some(network) = Network::new() else { return };
    let _registry = network.docker_registry(&far);
    let site = "registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\n";
    far.write("far.yaml", format!("apiVersion: landfall/v1\nkind: Site\n{site}"));
    run(&mut operator(&network, &far, &["push", "bundle.tar.zst"]));
    run(&mut operator(&network, &far, &["render", "docker", "--bundle", "bundle.tar.zst", "-o", "node"]));
    let dir = short();
    let flags = format!("--config-file {}", far.path("node/etc/docker/daemon.json").display());
    let daemon = network.on_with_sys("node", &dockerd(&far, dir.path(), &flags));
    let _daemon = start_dockerd(&far, dir.path(), daemon);
    for name in ["calico/node:v3.8.2", "172.20.0.2:5000/kubermatic/util:2.0"] {
        run(&mut docker(&far, dir.path(), &format!("docker pull --quiet {name}")));
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

#[test]
fn a_machine_of_tkg_trusts_the_sites_authority() {
    if !need(&NEEDS) {
        return;
    }
    let world = World::new();
    let far = carried(&world);
    let Some(network) = Network::new() else { return };
    let authority = Authority::new(&far, "corp");
    let (certificate, key) = authority.issue(&far, &["172.20.0.2"]);
    let tls =
        format!("http: {{addr: \"{REGISTRY}\", tls: {{certificate: {certificate:?}, key: {key:?}}}}}\n");
    let mut command = far.clean("docker-registry");
    command.arg("serve").arg(docker_registry_config(&far, REGISTRY, &tls));
    let _registry = network.serve("registry", &command, REGISTRY);
    let site = format!("registry: {{address: \"{REGISTRY}\", ca: {:?}}}\nconsumers: [tkg]\n", authority.pem);
    far.write("far.yaml", format!("apiVersion: landfall/v1\nkind: Site\n{site}"));
    run(&mut operator(&network, &far, &["push", "bundle.tar.zst"]));
    let render = ["render", "tkg", "--set", "source=registry.k8s.io", "--set", "cluster=blue", "-o", "tkg"];
    run(&mut operator(&network, &far, &[&render[..], &["--bundle", "bundle.tar.zst"]].concat()));
    let template: Value = serde_yaml::from_str(&far.read("tkg/kubeadm-config-template.yaml")).unwrap();
    let spec = &template["spec"]["template"]["spec"];
    // the machine: containerd's configuration as its image has it, and /etc/containerd in a folder
    let pause = "[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"projects.registry.vmware.com/tkg/pause:3.10.1\"\n";
    let config = far.write("machine/config-1.x.toml", format!("version = 2\n\n{pause}"));
    for file in spec["files"].as_sequence().unwrap() {
        let path = file["path"].as_str().unwrap();
        far.write(&format!("machine{path}"), file["content"].as_str().unwrap());
    }
    let commands = spec["preKubeadmCommands"].as_sequence().unwrap().iter().filter_map(Value::as_str);
    for command in commands.filter(|command| command.contains("/etc/containerd/config.toml")) {
        let command = command.replace("/etc/containerd/config.toml", &config.display().to_string());
        // cloud-init may run them again
        run(far.clean("sh").args(["-ec", &format!("{command}\n{command}")]));
    }
    let config = far.read("machine/config-1.x.toml");
    assert!(config.contains("sandbox_image = \"172.20.0.2:5000/pause:3.10.1\""), "{config}");
    assert_eq!(config.matches(".registry.configs.").count(), 1, "{config}");
    let node = network.containerd_with(&far, &far.path("machine"));
    let answer = node.pull_for_kubernetes(&far, "172.20.0.2:5000/pause:3.10.1");
    assert!(answer.contains("grpc-status: 0"), "{answer}");
}
