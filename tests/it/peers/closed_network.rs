//! A realistic closed network: namespaces without a route out, a copied bundle, the private
//! registry at 172.20.0.2:5000, and a node whose containerd pulls rewritten and original names.

use super::far_side::FarSide;
use crate::support::netns::{NODE, OPERATOR, REGISTRY, hosts_toml};
use crate::support::{Place, run};

const POD: &str = "\
apiVersion: v1
kind: Pod
spec:
  containers:
    - image: k8s.gcr.io/pause:3.1
    - image: quay.io/prometheus/node-exporter:v1.9.0
";

/// The rewritten references of [`POD`], in the order of its containers.
fn rewritten(far: &Place) -> Vec<String> {
    far.write("pod.yaml", POD);
    let text = far.ok(&[
        "rewrite",
        "pod.yaml",
        "--bundle",
        "bundle.tar.zst",
        "--site",
        "site.yaml",
    ]);
    text.lines()
        .filter_map(|line| line.split_once("image: "))
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[test]
fn a_node_pulls_images_that_were_pushed_from_a_bundle() {
    let Some(FarSide {
        network,
        place: far,
        world,
    }) = FarSide::new(&[])
    else {
        return;
    };
    let registry = network.docker_registry(&far);
    let mut push = far.command();
    push.args([
        "push",
        "bundle.tar.zst",
        "--to",
        REGISTRY,
        "--site",
        "site.yaml",
        "--progress",
        "none",
    ]);
    run(&mut network.on("operator", &push));
    assert!(registry.log().contains(OPERATOR), "{}", registry.log());

    let names = rewritten(&far);
    assert_eq!(
        names,
        [
            format!("{REGISTRY}/kubernetes/pause:3.1"),
            format!("{REGISTRY}/prometheus/node-exporter:v1.9.0")
        ]
    );
    let node = network.containerd(&far);
    for name in names {
        let digest = node.pull(&far, &["--plain-http", "--platform", "linux/amd64"], &name);
        let source = world
            .upstreams
            .iter()
            .find(|up| name.ends_with(&format!("{}:{}", up.destination, up.tag)));
        assert_eq!(
            source.unwrap().descriptor["digest"],
            digest.as_str(),
            "{name}"
        );
    }
    assert!(registry.log().contains(NODE), "{}", registry.log());
}

#[test]
fn a_node_pulls_original_names_from_a_served_bundle() {
    let Some(FarSide {
        network,
        place: far,
        world,
    }) = FarSide::new(&[])
    else {
        return;
    };
    let mut serve = far.command();
    serve.args([
        "serve",
        "bundle.tar.zst",
        "--listen",
        REGISTRY,
        "--site",
        "site.yaml",
    ]);
    let server = network.serve("registry", &serve, REGISTRY);

    let hosts = far.path("certs.d");
    for host in [
        "registry.k8s.io",
        "k8s.gcr.io",
        "quay.io",
        "docker.io",
        "gcr.io",
    ] {
        hosts_toml(&hosts, host, &format!("http://{REGISTRY}"));
    }
    let hosts = hosts.display().to_string();
    let node = network.containerd(&far);
    for upstream in &world.upstreams {
        if upstream.name.contains("nested") {
            continue; // containerd 1.6 pulls no nested index for one platform
        }
        let options = ["--hosts-dir", &hosts, "--platform", "linux/amd64"];
        let digest = node.pull(&far, &options, upstream.name);
        assert_eq!(
            upstream.descriptor["digest"],
            digest.as_str(),
            "{}\n{}",
            upstream.name,
            server.log()
        );
    }
    // the node can also pull by rewritten names, without any hosts.toml
    for name in rewritten(&far) {
        node.pull(&far, &["--plain-http", "--platform", "linux/amd64"], &name);
    }
}

#[test]
fn a_node_pushes_to_a_writable_serve() {
    let Some(FarSide {
        network,
        place: far,
        ..
    }) = FarSide::new(&[])
    else {
        return;
    };
    // at an address other than loopback, the server requires an option that says who may push
    let refused = ["serve", "--writable", "pushed", "--listen", REGISTRY];
    let refusal = network
        .on("registry", far.command().args(refused))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&refusal.stderr);
    assert!(
        refusal.status.code() == Some(2) && printed.contains("--htpasswd"),
        "{printed}"
    );

    let mut serve = far.command();
    serve.args([
        "serve",
        "bundle.tar.zst",
        "--writable",
        "pushed",
        "--anonymous-push",
        "--listen",
        REGISTRY,
    ]);
    serve.args(["--site", "site.yaml"]);
    let server = network.serve("registry", &serve, REGISTRY);
    let node = network.containerd(&far);
    let name = format!("{REGISTRY}/kubermatic/util:2.0");
    let copy = format!("{REGISTRY}/team/util:copied");
    let pulled = node.pull(&far, &["--plain-http", "--platform", "linux/amd64"], &name);
    node.push(&far, &name, &copy);
    let again = network.containerd(&far);
    let digest = again.pull(&far, &["--plain-http", "--platform", "linux/amd64"], &copy);
    assert_eq!(digest, pulled, "{}", server.log());
}
