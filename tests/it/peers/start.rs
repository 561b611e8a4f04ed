//! Tests of the test support: peers start, generated images are delivered byte for byte, and peers
//! end.

use crate::support::netns::{Network, REGISTRY};
use crate::support::run;
use crate::support::{Images, Place, docker_registry, http, need, peers};

#[test]
fn images_arrive_in_docker_registry_byte_for_byte() {
    if !need(&["docker-registry", "skopeo"]) {
        return;
    }
    let place = Place::new();
    let mut images = Images::new(place.path("layout"));
    let base = images.layer(&[("etc/os-release", b"ID=test\n")]);
    let amd64 = images.image(
        "linux/amd64",
        &[base.clone(), images.layer(&[("bin/a", b"a")])],
    );
    let arm64 = images.image(
        "linux/arm64/v8",
        &[base.clone(), images.zstd_layer(&[("bin/a", b"b")])],
    );
    let attestation = images.attestation(&amd64);
    let index = images.index(&[amd64.clone(), arm64, attestation]);
    let nested = images.index(&[
        index.clone(),
        images.artifact("application/x.test", b"hello", None),
    ]);
    let layer = images.docker_layer(&[("etc/motd", b"docker\n")]);
    let docker = images.docker_list(&[
        images.docker_image("linux/amd64", std::slice::from_ref(&layer)),
        images.docker_image("linux/arm64", &[layer]),
    ]);
    images.tag("multi", &index);

    let registry = docker_registry();
    peers::skopeo_push(
        &place,
        images.dir(),
        "multi",
        &format!("{}/by-skopeo:v1", registry.address),
    );
    for (repository, descriptor) in [("by-put", &index), ("nested", &nested), ("docker", &docker)] {
        images.push(&registry.address, repository, "v1", descriptor);
    }
    for (repository, descriptor) in [
        ("by-skopeo", &index),
        ("by-put", &index),
        ("nested", &nested),
        ("docker", &docker),
    ] {
        let digest = descriptor["digest"].as_str().unwrap();
        let there = http::manifest(&registry.address, repository, "v1");
        assert_eq!(
            there.header("docker-content-digest"),
            Some(digest),
            "{repository}"
        );
        assert_eq!(there.body, images.bytes(digest), "{repository}");
        let raw = peers::skopeo_raw(&place, &format!("{}/{repository}:v1", registry.address));
        assert_eq!(raw, images.bytes(digest), "{repository}");
    }
    assert!(
        registry.requests("\"PUT /v2/nested/manifests/") >= 5,
        "{}",
        registry.log()
    );
}

#[test]
fn a_server_ends_with_its_guard() {
    if !need(&["docker-registry"]) {
        return;
    }
    let registry = docker_registry();
    let address = registry.address.clone();
    let pid = registry.pid();
    assert_eq!(http::get(&address, "/v2/").status, 200);
    drop(registry);
    assert!(std::net::TcpStream::connect(&address).is_err());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn nginx_serves_files() {
    if !need(&["nginx"]) {
        return;
    }
    let place = Place::new();
    place.write("www/dl.k8s.io/release/kubelet", "binary");
    let server = peers::nginx(&place.path("www"));
    assert_eq!(
        http::get(&server.address, "/dl.k8s.io/release/kubelet").body,
        b"binary"
    );
    assert_eq!(http::get(&server.address, "/nothing").status, 404);
    assert_eq!(server.requests("\"GET /dl.k8s.io"), 1, "{}", server.log());
}

#[test]
fn a_node_without_routes_pulls_from_the_private_registry() {
    if !need(&["docker-registry", "skopeo", "containerd", "ctr", "curl"]) {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let place = Place::new();
    let mut images = Images::new(place.path("layout"));
    let pause = images.index(&[
        images.image("linux/amd64", &[images.layer(&[("pause", b"for amd64")])]),
        images.image("linux/arm64", &[images.layer(&[("pause", b"for arm64")])]),
    ]);
    images.tag("pause", &pause);
    let _registry = network.docker_registry(&place);
    let mut push = peers::skopeo(&place);
    push.args(["copy", "--quiet", "--all", "--dest-tls-verify=false"])
        .arg(format!("oci:{}:pause", images.dir().display()))
        .arg(format!("docker://{REGISTRY}/kubernetes/pause:3.1"));
    run(&mut network.on("operator", &push));

    let node = network.containerd(&place);
    let name = format!("{REGISTRY}/kubernetes/pause:3.1");
    let digest = node.pull(
        &place,
        &["--plain-http", "--platform", "linux/amd64"],
        &name,
    );
    assert_eq!(pause["digest"], digest.as_str());
    assert_eq!(node.file(&place, &name, "pause"), b"for amd64");
}
