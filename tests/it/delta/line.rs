//! Three releases: their upstream, their bundles and deltas, and checks of the delivered content.

use super::STORE;
use crate::support::images::{noise, sha256};
use crate::support::peers::{Server, file_server, own_registry};
use crate::support::{Images, Place, http};
use serde_json::Value;
use std::collections::BTreeSet;

/// An upstream with three releases, each locked as `N.lock`; the store `store` has all of them.
pub(super) struct DeltaReleases {
    pub(super) place: Place,
    pub(super) images: Images,
    /// The layers by their names in the releases.
    pub(super) layers: Vec<(&'static str, Value)>,
    pub(super) tool: Vec<u8>,
    pub(super) servers: [Server; 2],
}

impl DeltaReleases {
    pub(super) fn new() -> DeltaReleases {
        let place = Place::new();
        let registry = own_registry();
        let files = file_server(&place.path("www"));
        let images = Images::new(place.path("layout"));
        let names = [
            ("base", 300_000),
            ("a1", 3000),
            ("a2", 4000),
            ("a3", 5000),
            ("tool", 6000),
            ("new", 7000),
        ];
        let layers: Vec<(&str, Value)> = names
            .iter()
            .enumerate()
            .map(|(seed, (name, size))| {
                (
                    *name,
                    images.layer(&[(name, &noise(seed as u64 + 1, *size))]),
                )
            })
            .collect();
        let image = |wanted: &[&str]| {
            let of = |name: &&str| {
                layers
                    .iter()
                    .find(|(known, _)| known == name)
                    .unwrap()
                    .1
                    .clone()
            };
            images.image("linux/amd64", &wanted.iter().map(of).collect::<Vec<_>>())
        };
        let tool = noise(99, 80_000);
        place.write("www/tool", &tool);
        let host = &registry.address;
        for (repository, tag, wanted) in [
            ("one/app", "1", &["base", "a1"][..]),
            ("one/app", "2", &["base", "a1", "a2"]),
            ("one/app", "3", &["base", "a2", "a3"]),
            ("two/tool", "1", &["base", "tool"]),
            ("three/new", "1", &["base", "new"]),
        ] {
            images.push(host, repository, tag, &image(wanted));
        }
        let releases = [
            ("1", &["one/app:1", "two/tool:1"][..]),
            ("2", &["one/app:2", "two/tool:1", "three/new:1"]),
            ("3", &["one/app:3", "three/new:1"]),
        ];
        for (release, list) in releases {
            let images: String = list
                .iter()
                .map(|name| format!("- {host}/{name}\n"))
                .collect();
            let manifest = format!(
                "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages:\n{images}files:\n- {{url: \"{}/tool\", checksum: \"{}\"}}\n",
                files.url(),
                sha256(&tool)
            );
            let manifest_file = format!("{release}.yaml");
            let lock = format!("{release}.lock");
            place.write(&manifest_file, manifest);
            place.ok(&[&["lock", "-f", &manifest_file, "--lock", &lock], &STORE[..]].concat());
            place.ok(&[&["pull", "--lock", &lock], &STORE[..]].concat());
        }
        DeltaReleases {
            place,
            images,
            layers,
            tool,
            servers: [registry, files],
        }
    }

    pub(super) fn digest(&self, layer: &str) -> String {
        let found = self.layers.iter().find(|(name, _)| *name == layer).unwrap();
        found.1["digest"].as_str().unwrap().to_owned()
    }

    pub(super) fn tool_digest(&self) -> String {
        sha256(&self.tool)
    }

    /// Packs a release against bases, and returns the member `bundle` of the report.
    pub(super) fn pack(&self, release: &str, out: &str, since: &[&str]) -> Value {
        let lock = format!("{release}.lock");
        let mut args = vec!["pack", "--lock", &lock, "-o", out, "--store", "store"];
        args.extend(since.iter().flat_map(|base| ["--since", base]));
        self.place.json(0, &args)["bundle"].clone()
    }

    /// The full bundle of release 1, the delta of 2 since that bundle, and the delta of 3 since
    /// that delta.
    pub(super) fn chain(&self) -> [Value; 3] {
        [
            self.pack("1", "b1", &[]),
            self.pack("2", "d2", &["b1"]),
            self.pack("3", "d3", &["d2"]),
        ]
    }

    /// The names of the content that a bundle omits.
    pub(super) fn omitted(&self, bundle: &Value) -> BTreeSet<String> {
        let tool = ("the file", self.tool_digest());
        let names: Vec<(&str, String)> = self
            .layers
            .iter()
            .map(|(name, _)| (*name, self.digest(name)))
            .chain([tool])
            .collect();
        let name = |blob: &Value| {
            let digest = blob["digest"].as_str().unwrap();
            names
                .iter()
                .find(|(_, known)| known == digest)
                .map_or(digest, |(name, _)| name)
                .to_owned()
        };
        bundle["omitted"]
            .as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect()
    }

    pub(super) fn push(&self, exit: i32, files: &[&str], to: &str, more: &[&str]) -> Value {
        self.place.json(
            exit,
            &[&["push"], files, &["--to", to, "--plain-http", to], more].concat(),
        )
    }

    /// Asserts that the registry has all images of a release: tags, manifests, configs and layers.
    pub(super) fn assert_delivered(&self, registry: &Server, release: &str) {
        let lock = self.place.read(&format!("{release}.lock"));
        let source = self.servers[0].address.as_str();
        let prefix = format!("- name: \"{source}/");
        let names = lock
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix)?.strip_suffix('"'));
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 1, "{lock}");
        for name in names {
            let (repository, tag) = name.split_once(':').unwrap();
            let wanted = http::manifest(source, repository, tag);
            let found = http::manifest(&registry.address, repository, tag);
            assert_eq!((wanted.status, found.status), (200, 200), "{name}");
            assert_eq!(wanted.body, found.body, "{name}");
            let manifest = found.json();
            let layers = manifest["layers"].as_array().unwrap().iter();
            for blob in layers.chain([&manifest["config"]]) {
                let target = format!(
                    "/v2/{repository}/blobs/{}",
                    blob["digest"].as_str().unwrap()
                );
                let answer = http::request("GET", &registry.address, &target, &[], b"");
                assert_eq!(answer.status, 200, "{name} {target}");
                assert_eq!(sha256(&answer.body), blob["digest"].as_str().unwrap());
            }
        }
    }
}
