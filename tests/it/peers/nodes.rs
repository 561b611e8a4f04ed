//! Nodes configured with rendered files: containerd pulls by the original names from the private
//! registry only, with `ctr` and as the kubelet does. podman and dockerd pull as well, and skopeo
//! reads the manifests.

use super::far_side::{CREDENTIALS, FarSide};
use super::runtimes::{docker, dockerd, short, start_dockerd};
use crate::support::library::Digest;
use crate::support::netns::{REGISTRY, containerd};
use crate::support::peers::docker_registry_config;
use crate::support::{run, which};

/// Pushes the bundle with the site. On a node with the rendered files, pulls every image except the
/// nested index.
fn deliver_and_pull(side: &FarSide, site: &str, args: &[&str]) {
    let FarSide {
        network,
        place: far,
        world,
    } = side;
    side.site(site);
    side.push();
    let _ = std::fs::remove_dir_all(far.path("node"));
    let render = [
        "containerd",
        "-o",
        "node",
        "--set",
        "sandbox=registry.k8s.io/pause:3.10.1",
    ];
    side.render(&[&render, args].concat());
    let node = network.containerd_with(far, &far.path("node"));
    let hosts = far
        .path("node/etc/containerd/certs.d")
        .display()
        .to_string();
    let by_header = !args.contains(&"auth=config");
    // containerd 1.6 cannot pull a nested index for one platform
    for upstream in world
        .upstreams
        .iter()
        .filter(|upstream| !upstream.name.contains("nested"))
    {
        let digest = upstream.descriptor["digest"].as_str().unwrap();
        if by_header {
            let options = ["--hosts-dir", &hosts, "--platform", "linux/amd64"];
            assert_eq!(node.pull(far, &options, upstream.name), digest, "{site}");
        }
        let answer = node.pull_for_kubernetes(far, upstream.name);
        assert!(
            answer.contains("grpc-status: 0"),
            "{}: {answer}",
            upstream.name
        );
    }
    // a short name, and a name with an alias of the host `registry.k8s.io`
    for name in ["calico/node:v3.8.2", "k8s.gcr.io/pause:3.10.1"] {
        let answer = node.pull_for_kubernetes(far, name);
        assert!(answer.contains("grpc-status: 0"), "{name}: {answer}");
    }
    // an image that the registry lacks is not requested from another registry, whether or not the
    // lock has images of the same host
    for name in ["quay.io/prometheus/none:v1", "far.test/a/b:1"] {
        let answer = node.pull_for_kubernetes(far, name);
        assert!(
            !answer.contains("grpc-status: 0") && answer.contains("not found"),
            "{name}: {answer}"
        );
    }
    // containerd's log says what was missing
    far.write("containerd.log", node.log());
    far.write("empty.lock", "version: 1\n");
    let audit = [
        "audit",
        "--lock",
        "empty.lock",
        "--access-log",
        "containerd.log",
    ];
    let report = far.json(4, &audit);
    let missing = report["missing"].to_string();
    for name in ["quay.io/prometheus/none:v1", "far.test/a/b:1"] {
        assert!(missing.contains(name), "{missing}\n{}", node.log());
    }
    inspect_by_skopeo(side);
    pull_by_podman(side);
    let dump = run(&mut node.shell(
        far,
        &format!(
            "{} --config {} config dump",
            containerd().display(),
            far.path("node.toml").display()
        ),
    ));
    let dump = String::from_utf8_lossy(&dump).replace('\'', "\"");
    assert!(
        dump.contains("config_path = \"/etc/containerd/certs.d\""),
        "{dump}"
    );
    assert!(
        dump.lines()
            .any(|line| line.contains("sandbox") && line.contains("172.20.0.2:5000/")),
        "{dump}"
    );
}

/// Reads the manifest of every image by its original name, with the rendered registries.conf,
/// certificates and account.
fn inspect_by_skopeo(side: &FarSide) {
    let FarSide {
        network,
        place: far,
        world,
    } = side;
    let _ = std::fs::remove_dir_all(far.path("machine"));
    side.render(&["podman", "-o", "machine"]);
    let machine = |path: &str| far.path("machine").join(path);
    for upstream in &world.upstreams {
        let mut skopeo = far.clean("skopeo");
        skopeo
            .arg("--registries-conf")
            .arg(machine("etc/containers/registries.conf.d/50-landfall.conf"));
        skopeo.arg("inspect").args(["--raw", "--cert-dir"]);
        skopeo.arg(machine(&format!("etc/containers/certs.d/{REGISTRY}")));
        if machine("auth.json").exists() {
            skopeo.arg("--authfile").arg(machine("auth.json"));
        }
        skopeo.arg(format!("docker://{}", upstream.name));
        let raw = run(&mut network.on("node", &skopeo));
        assert_eq!(
            Digest::sha256(&raw).to_string(),
            upstream.descriptor["digest"],
            "{}",
            upstream.name
        );
    }
}

/// Pulls with podman, also by a short name; does nothing without podman.
fn pull_by_podman(
    FarSide {
        network,
        place: far,
        ..
    }: &FarSide,
) {
    if which("podman").is_none() {
        return;
    }
    let dir = short();
    let at = dir.path().display();
    let storage =
        format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{at}/root\"\nrunroot = \"{at}/run\"\n");
    let storage = far.write("storage.conf", storage);
    let machine = |path: &str| far.path("machine").join(path);
    far.write(
        "home/.config/containers/policy.json",
        r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
    );
    for name in [
        "quay.io/kubermatic/util:2.0",
        "calico/node:v3.8.2",
        "registry.k8s.io/pause:3.10.1",
    ] {
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
            .env(
                "CONTAINERS_REGISTRIES_CONF",
                machine("etc/containers/registries.conf.d/50-landfall.conf"),
            );
        let id = run(&mut network.on("node", &podman));
        assert_eq!(
            id.trim_ascii().len(),
            64,
            "{name}: {}",
            String::from_utf8_lossy(&id)
        );
    }
}

#[test]
fn dockerd_pulls_docker_hub_images_from_the_rendered_mirror() {
    let Some(side) = FarSide::new(&["dockerd", "docker", "nsenter"]) else {
        return;
    };
    let FarSide {
        network,
        place: far,
        ..
    } = &side;
    let _registry = network.docker_registry(far);
    side.site("registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\n");
    side.push();
    side.render(&["docker", "-o", "node"]);
    let dir = short();
    let flags = format!(
        "--config-file {}",
        far.path("node/etc/docker/daemon.json").display()
    );
    let daemon = network.on_with_sys("node", &dockerd(far, dir.path(), &flags));
    let _daemon = start_dockerd(far, dir.path(), daemon);
    for name in ["calico/node:v3.8.2", "172.20.0.2:5000/kubermatic/util:2.0"] {
        run(&mut docker(
            far,
            dir.path(),
            &format!("docker pull --quiet {name}"),
        ));
    }
}

#[test]
fn a_node_pulls_original_names_over_plain_http() {
    let Some(side) = FarSide::new(&[]) else {
        return;
    };
    let _registry = side.network.docker_registry(&side.place);
    let dropped = "registry:\n  address: 172.20.0.2:5000\n  plainHTTP: true\n  \
                   paths: {k8s.gcr.io: kubernetes, gcr.io/google_containers: kubernetes}\nconsumers: [containerd]\n";
    deliver_and_pull(&side, dropped, &[]);
    let kept = "registry: {address: \"172.20.0.2:5000/mirror\", plainHTTP: true, keepHost: true}\n";
    deliver_and_pull(&side, kept, &[]);
}

#[test]
fn a_node_pulls_original_names_over_tls_with_an_account() {
    let Some(side) = FarSide::new(&["htpasswd"]) else {
        return;
    };
    let (_registry, authority) = side.registry_with_account(true);
    let (client, client_key) = authority.issue(&side.place, &["node.corp.test"]);
    let site = format!(
        "registry:\n  address: {REGISTRY}\n  ca: {:?}\n  clientCert: {client:?}\n  clientKey: {client_key:?}\n  {CREDENTIALS}\n",
        authority.pem
    );
    deliver_and_pull(&side, &site, &[]);
    deliver_and_pull(&side, &site, &["--set", "auth=config"]);
}

/// containerd 1.x cannot read a hosts.toml with an IPv6 address in the name of a table.
#[test]
fn a_node_pulls_original_names_from_a_registry_with_an_ipv6_address() {
    const ADDRESS: &str = "[fd00::2]:5000";
    let Some(side) = FarSide::new(&[]) else {
        return;
    };
    let FarSide {
        network,
        place: far,
        world,
    } = &side;
    for (host, address) in [
        ("registry", "fd00::2/64"),
        ("operator", "fd00::10/64"),
        ("node", "fd00::3/64"),
    ] {
        if !network.add_ipv6(host, address) {
            return;
        }
    }
    let mut registry = far.clean("docker-registry");
    registry
        .arg("serve")
        .arg(docker_registry_config(far, ADDRESS, ""));
    let _registry = network.serve("registry", &registry, ADDRESS);
    side.site(&format!(
        "registry: {{address: \"{ADDRESS}\", plainHTTP: true}}\n"
    ));
    side.push();
    side.render(&["containerd", "-o", "node"]);
    let node = network.containerd_with(far, &far.path("node"));
    let hosts = far
        .path("node/etc/containerd/certs.d")
        .display()
        .to_string();
    for upstream in world
        .upstreams
        .iter()
        .filter(|upstream| !upstream.name.contains("nested"))
    {
        let digest = upstream.descriptor["digest"].as_str().unwrap();
        let options = ["--hosts-dir", &hosts, "--platform", "linux/amd64"];
        assert_eq!(
            node.pull(far, &options, upstream.name),
            digest,
            "{}",
            upstream.name
        );
        let answer = node.pull_for_kubernetes(far, upstream.name);
        assert!(
            answer.contains("grpc-status: 0"),
            "{}: {answer}",
            upstream.name
        );
    }
}
