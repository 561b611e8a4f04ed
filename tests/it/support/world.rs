//! A stand-in for the internet on loopback: two docker-registries and a file server with known
//! content, and a site that maps the real hosts to them.

use super::images::noise;
use super::peers::{self, Server};
use super::{Images, Place, http};
use serde_json::Value;
use std::collections::BTreeSet;

/// One of the two upstream registries.
#[derive(Clone, Copy)]
pub enum UpstreamRegistry {
    Kubernetes,
    Others,
}

/// An image of an upstream registry.
pub struct Upstream {
    /// The full name of the image.
    pub name: &'static str,
    pub at: UpstreamRegistry,
    /// The image's repository at the upstream, including the path of the mirror.
    pub repository: &'static str,
    pub tag: &'static str,
    /// The repository in the private registry, without the host.
    pub destination: &'static str,
    pub descriptor: Value,
}

pub struct World {
    pub place: Place,
    pub images: Images,
    pub upstreams: Vec<Upstream>,
    pub kubernetes: Server,
    pub others: Server,
    pub files: Server,
    pub kubelet: Vec<u8>,
}

/// The programs that a [`World`] needs, for [`super::need`].
pub const NEEDS: [&str; 4] = ["docker-registry", "skopeo", "nginx", "gzip"];

/// A manifest with everything that a [`World`] has.
pub const MANIFEST: &str = r#"apiVersion: landfall/v1
kind: Manifest
metadata: {name: world}
vars: {kubernetes: v1.33.4, arch: [amd64, arm64]}
images:
  - registry.k8s.io/pause:3.10.1
  - k8s.gcr.io/pause:3.1                                  # a Docker list, by an older host name
  - gcr.io/google_containers/hyperkube-amd64:v1.15.3      # one platform, Docker's format
  - quay.io/prometheus/node-exporter:v1.9.0               # with attestations
  - quay.io/kubermatic/util:2.0
  - quay.io/odd/nested:v1                                 # an index in an index, an artifact, zstd
  - calico/node:v3.8.2                                    # docker.io left out
files:
  - url: https://dl.k8s.io/release/${kubernetes}/bin/linux/${arch}/kubelet
    checksum: "${url}.sha256"
    mode: "0755"
"#;

impl World {
    pub fn new() -> World {
        let place = Place::new();
        let mut images = Images::new(place.path("layout"));
        let base = images.layer(&[
            ("etc/os-release", b"ID=base\n"),
            ("usr/lib/base", &noise(1, 300_000)),
        ]);
        let docker_base = images.docker_layer(&[("usr/lib/old", &noise(2, 200_000))]);
        let layer = |path: &str, seed| images.layer(&[(path, &noise(seed, 50_000))]);

        let pause = images.index(&[
            images.image("linux/amd64", &[layer("pause", 10)]),
            images.image("linux/arm64", &[layer("pause", 11)]),
            images.image("linux/s390x", &[layer("pause", 12)]),
        ]);
        let old_pause = images.docker_list(&[
            images.docker_image("linux/amd64", std::slice::from_ref(&docker_base)),
            images.docker_image("linux/arm64", std::slice::from_ref(&docker_base)),
        ]);
        let top = images.docker_layer(&[("hyperkube", &noise(20, 400_000))]);
        let hyperkube = images.docker_image("linux/amd64", &[docker_base.clone(), top]);
        let exporters = [
            ("linux/amd64", 30),
            ("linux/arm64", 31),
            ("linux/arm/v7", 32),
        ]
        .map(|(platform, seed)| images.image(platform, &[base.clone(), layer("exporter", seed)]));
        let attestation = images.attestation(&exporters[0]);
        let exporter = images.index(&[&exporters[..], &[attestation]].concat());
        let util = images.image("linux/amd64", &[base.clone(), layer("util", 40)]);
        let zstd = images.image("linux/amd64", &[base, images.zstd_layer(&[("z", b"zstd")])]);
        let artifact = images.artifact("application/vnd.example.sbom", b"{\"sbom\":true}", None);
        let nested = images.index(&[images.index(&[zstd]), artifact]);
        let calico = images.docker_list(&[
            images.docker_image(
                "linux/amd64",
                &[images.docker_layer(&[("calico", &noise(50, 90_000))])],
            ),
            images.docker_image(
                "linux/arm64",
                &[images.docker_layer(&[("calico", &noise(51, 90_000))])],
            ),
        ]);

        let upstream = |name, at, repository, tag, destination, descriptor: &Value| Upstream {
            name,
            at,
            repository,
            tag,
            destination,
            descriptor: descriptor.clone(),
        };
        let upstreams = vec![
            upstream(
                "registry.k8s.io/pause:3.10.1",
                UpstreamRegistry::Kubernetes,
                "k8s/pause",
                "3.10.1",
                "pause",
                &pause,
            ),
            upstream(
                "k8s.gcr.io/pause:3.1",
                UpstreamRegistry::Kubernetes,
                "old/pause",
                "3.1",
                "kubernetes/pause",
                &old_pause,
            ),
            upstream(
                "gcr.io/google_containers/hyperkube-amd64:v1.15.3",
                UpstreamRegistry::Kubernetes,
                "gcr/google_containers/hyperkube-amd64",
                "v1.15.3",
                "kubernetes/hyperkube-amd64",
                &hyperkube,
            ),
            upstream(
                "quay.io/prometheus/node-exporter:v1.9.0",
                UpstreamRegistry::Others,
                "quay/prometheus/node-exporter",
                "v1.9.0",
                "prometheus/node-exporter",
                &exporter,
            ),
            upstream(
                "quay.io/kubermatic/util:2.0",
                UpstreamRegistry::Others,
                "quay/kubermatic/util",
                "2.0",
                "kubermatic/util",
                &util,
            ),
            upstream(
                "quay.io/odd/nested:v1",
                UpstreamRegistry::Others,
                "quay/odd/nested",
                "v1",
                "odd/nested",
                &nested,
            ),
            upstream(
                "docker.io/calico/node:v3.8.2",
                UpstreamRegistry::Others,
                "calico/node",
                "v3.8.2",
                "calico/node",
                &calico,
            ),
        ];

        let kubelet = noise(60, 700_000);
        for arch in ["amd64", "arm64"] {
            let content = [&kubelet[..], arch.as_bytes()].concat();
            let sum = super::images::sha256_hex(&content);
            let path = format!("www/release/v1.33.4/bin/linux/{arch}/kubelet");
            place.write(&path, &content);
            place.write(&format!("{path}.sha256"), sum);
        }

        let kubernetes = peers::docker_registry();
        let others = peers::docker_registry();
        let files = peers::nginx(&place.path("www"));
        for (count, upstream) in upstreams.iter().enumerate() {
            let address = match upstream.at {
                UpstreamRegistry::Kubernetes => &kubernetes.address,
                UpstreamRegistry::Others => &others.address,
            };
            // skopeo pushes the ordinary images. It supports neither nested indexes nor artifacts
            // in an index, and accepts Docker's types only from a registry.
            let plain = [
                "application/vnd.oci.image.index.v1+json",
                "application/vnd.oci.image.manifest.v1+json",
            ];
            let ordinary = plain
                .iter()
                .any(|plain| upstream.descriptor["mediaType"] == *plain);
            if ordinary && !upstream.repository.contains("nested") {
                let name = format!("item-{count}");
                images.tag(&name, &upstream.descriptor);
                let to = format!("{address}/{}:{}", upstream.repository, upstream.tag);
                peers::skopeo_push(&place, images.dir(), &name, &to);
            } else {
                images.push(
                    address,
                    upstream.repository,
                    upstream.tag,
                    &upstream.descriptor,
                );
            }
        }
        let world = World {
            place,
            images,
            upstreams,
            kubernetes,
            others,
            files,
            kubelet,
        };
        world.place.write("manifest.yaml", MANIFEST);
        world
    }

    /// The site: real hosts are mapped to the stand-ins, and `registry` is the private registry.
    pub fn site(&self, registry: &str) -> String {
        let (kubernetes, others, files) =
            (self.kubernetes.url(), self.others.url(), self.files.url());
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {registry}\n  paths:\n    \
             k8s.gcr.io: kubernetes\n    gcr.io/google_containers: kubernetes\nupstreams:\n  \
             registry.k8s.io: {{mirror: \"{kubernetes}/k8s\"}}\n  \
             k8s.gcr.io: {{mirror: \"{kubernetes}/old\"}}\n  \
             gcr.io: {{mirror: \"{kubernetes}/gcr\"}}\n  \
             quay.io: {{mirror: \"{others}/quay\"}}\n  \
             docker.io: {{mirror: \"{others}\"}}\n  \
             dl.k8s.io: {{mirror: \"{files}\"}}\n"
        )
    }

    /// The number of requests to the upstream registries and the file server so far.
    pub fn requests(&self) -> usize {
        self.kubernetes.requests("") + self.others.requests("") + self.files.requests("")
    }

    /// Asserts that `registry` has every image with all its manifests and blobs, byte for byte.
    /// With `skopeo`, also compares each top manifest as skopeo reads it from both registries.
    pub fn assert_arrived(&self, registry: &str, skopeo: bool) {
        for upstream in &self.upstreams {
            self.assert_image(registry, upstream);
            if skopeo {
                let source = match upstream.at {
                    UpstreamRegistry::Kubernetes => &self.kubernetes.address,
                    UpstreamRegistry::Others => &self.others.address,
                };
                let raw = |address: &str, repository: &str| {
                    peers::skopeo_raw(
                        &self.place,
                        &format!("{address}/{repository}:{}", upstream.tag),
                    )
                };
                let there = raw(registry, upstream.destination);
                let here = raw(source, upstream.repository);
                assert!(
                    there == here,
                    "{}: the bytes in the private registry differ",
                    upstream.name
                );
            }
        }
    }

    fn assert_image(&self, registry: &str, upstream: &Upstream) {
        let name = upstream.name;
        let top = upstream.descriptor["digest"].as_str().unwrap();
        let there = http::manifest(registry, upstream.destination, upstream.tag);
        assert_eq!(there.status, 200, "{name}: {}", there.text());
        assert_eq!(there.header("docker-content-digest"), Some(top), "{name}");
        assert_eq!(
            there.header("content-type"),
            upstream.descriptor["mediaType"].as_str(),
            "{name}"
        );
        for digest in self.images.closure(&upstream.descriptor) {
            let manifest = http::manifest(registry, upstream.destination, &digest);
            let blob = || {
                http::get(
                    registry,
                    &format!("/v2/{}/blobs/{digest}", upstream.destination),
                )
            };
            let there = if manifest.status == 200 {
                manifest
            } else {
                blob()
            };
            assert_eq!(there.status, 200, "{name}: {digest}: {}", there.text());
            assert!(
                there.body == self.images.bytes(&digest),
                "{name}: {digest} differs"
            );
        }
    }

    /// The digests of all blobs and manifests of all images.
    pub fn digests(&self) -> BTreeSet<String> {
        self.upstreams
            .iter()
            .flat_map(|upstream| self.images.closure(&upstream.descriptor))
            .collect()
    }
}
