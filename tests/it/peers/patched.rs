//! Layers that skopeo compressed are delivered as patches, and skopeo and containerd pull them.

use crate::support::images::{noise, sha256, tarball};
use crate::support::netns::{Network, REGISTRY};
use crate::support::peers::{docker_registry, skopeo};
use crate::support::{Images, Place, http, need, run};
use serde_json::Value;
use std::fs;

const OCI_TAR: &str = "application/vnd.oci.image.layer.v1.tar";

/// Two releases of an image with a layer that skopeo compressed, and a bundle of each release. The
/// second bundle has patches.
struct PatchedRelease {
    place: Place,
    /// The manifests of both releases.
    manifests: [Vec<u8>; 2],
}

impl PatchedRelease {
    fn new() -> PatchedRelease {
        let place = Place::new();
        let upstream = docker_registry();
        let mut manifests = Vec::new();
        for release in ["1", "2"] {
            let mut images = Images::new(place.path(format!("layout-{release}")));
            let program = [&noise(7, 200_000), release.as_bytes(), &noise(8, 90_000)].concat();
            let files = [
                ("bin/app", &program[..]),
                ("etc/version", release.as_bytes()),
            ];
            let layer = images.blob(OCI_TAR, &tarball(&files));
            let image = images.image("linux/amd64", &[layer]);
            images.tag("app", &image);
            // skopeo compresses the layer as buildah and podman do
            let mut copy = skopeo(&place);
            copy.args(["copy", "--quiet", "--dest-tls-verify=false"]);
            copy.arg(format!("oci:{}:app", images.dir().display()));
            run(copy.arg(format!("docker://{}/one/app:{release}", upstream.address)));
            manifests.push(http::manifest(&upstream.address, "one/app", release).body);

            let manifest = format!(
                "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages:\n- {}/one/app:{release}\n",
                upstream.address
            );
            place.write("manifest.yaml", manifest);
            let lock = format!("{release}.lock");
            place.ok(&["lock", "-f", "manifest.yaml", "--lock", &lock]);
            place.ok(&["pull", "--lock", &lock]);
        }
        place.ok(&["pack", "--lock", "1.lock", "-o", "old"]);
        let since = ["--since", "old", "--patches"];
        let packed = place.json(
            0,
            &[&["pack", "--lock", "2.lock", "-o", "new"], &since[..]].concat(),
        );
        let recipes = packed["bundle"]["recipes"].as_array().unwrap();
        assert_eq!(recipes.len(), 1, "{packed:#}");
        assert!(place.ok(&["verify", "new", "old"]).contains("all rebuilt"));
        PatchedRelease {
            place,
            manifests: manifests.try_into().unwrap(),
        }
    }
}

/// The digests of the layers of a manifest.
fn layers(manifest: &[u8]) -> Vec<String> {
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    let layers = manifest["layers"].as_array().unwrap().iter();
    let digests = layers.map(|layer| layer["digest"].as_str().unwrap().to_owned());
    digests.collect()
}

#[test]
fn skopeo_copies_an_image_that_was_delivered_as_patches() {
    if !need(&["docker-registry", "skopeo"]) {
        return;
    }
    let PatchedRelease { place, manifests } = PatchedRelease::new();
    let to = docker_registry();
    let push = ["--to", &to.address, "--plain-http", &to.address];
    place.ok(&[&["push", "old"], &push[..]].concat());
    // the command does not name the base, so the older layer is read from the registry
    place.ok(&[&["push", "new"], &push[..]].concat());
    for (release, manifest) in ["1", "2"].into_iter().zip(manifests) {
        assert!(http::manifest(&to.address, "one/app", release).body == manifest);
        let folder = place.path(format!("copied-{release}"));
        let mut copy = skopeo(&place);
        copy.args(["copy", "--quiet", "--src-tls-verify=false"]);
        copy.arg(format!("docker://{}/one/app:{release}", to.address));
        run(copy.arg(format!("dir:{}", folder.display())));
        assert!(fs::read(folder.join("manifest.json")).unwrap() == manifest);
        for digest in layers(&manifest) {
            let layer = fs::read(folder.join(&digest["sha256:".len()..])).unwrap();
            assert_eq!(sha256(&layer), digest);
        }
    }
}

#[test]
fn containerd_pulls_an_image_that_was_delivered_as_patches() {
    let needed = ["docker-registry", "skopeo", "containerd", "ctr", "curl"];
    if !need(&needed) {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let PatchedRelease { place, manifests } = PatchedRelease::new();
    let _registry = network.docker_registry(&place);
    for bundle in ["old", "new"] {
        let mut push = place.command();
        push.args(["push", bundle, "--to", REGISTRY, "--plain-http", REGISTRY]);
        run(&mut network.on("operator", &push));
    }
    let node = network.containerd(&place);
    for (release, manifest) in ["1", "2"].into_iter().zip(manifests) {
        // containerd unpacks the layers, and compares the digests of the compressed and of the
        // uncompressed bytes
        let options = ["--plain-http", "--platform", "linux/amd64"];
        let name = format!("{REGISTRY}/one/app:{release}");
        assert_eq!(node.pull(&place, &options, &name), sha256(&manifest));
    }
}
