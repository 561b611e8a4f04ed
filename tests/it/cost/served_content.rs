//! Bundles with large content of every kind that `landfall serve` has a route for, besides git
//! repositories.

use super::requests::LARGE;
use crate::support::Place;
use crate::support::apt::{AptUpstream, deb};
use crate::support::charts::{Chart, Upstream};
use crate::support::http::{put_blob, request};
use crate::support::images::{OCI_MANIFEST, hex, noise, sha256};
use crate::support::peers::file_server;
use crate::support::providers::ProviderFiles;
use crate::support::yum::YumUpstream;
use landfall_item::zip_package;
use serde_json::json;

/// How many tags the repository `tags` gets.
const TAGS: usize = 2_000;

/// Bundles, and targets of their large content by route.
#[derive(Default)]
pub struct ServedContent {
    pub bundles: Vec<String>,
    pub targets: Vec<(&'static str, String)>,
    /// The folders of the bundles.
    places: Vec<Place>,
}

impl ServedContent {
    /// Packs a bundle of each kind whose programs this machine has.
    pub fn new() -> ServedContent {
        let mut all = ServedContent::default();
        all.add_file();
        all.add_chart();
        all.add_provider();
        if let Some(up) = AptUpstream::new() {
            all.add_apt(up);
        }
        if let Some(up) = YumUpstream::new() {
            all.add_yum(up);
        }
        all
    }

    /// Locks, pulls and packs `m.yaml` in `place`.
    fn pack(&mut self, place: Place) {
        place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"]);
        place.ok(&["pull", "--site", "site.yaml"]);
        place.ok(&["pack", "-o", "b.tar.zst"]);
        let bundle = place.path("b.tar.zst");
        self.bundles.push(bundle.to_str().unwrap().to_owned());
        self.places.push(place);
    }

    fn add(&mut self, route: &'static str, target: String) {
        self.targets.push((route, target));
    }

    fn add_file(&mut self) {
        let place = place_with_site(Place::new(), "");
        place.write("www/large", noise(1, LARGE));
        let server = file_server(&place.path("www"));
        place.write(
            "m.yaml",
            manifest("files", &format!("{{url: \"{}/large\"}}", server.url())),
        );
        self.pack(place);
        self.add("/files/", format!("/files/{}/large", server.address));
    }

    fn add_chart(&mut self) {
        let up = Upstream::new();
        let text = hex(&noise(2, LARGE / 2));
        up.repository(&[Chart::new("app", "1.0.0", "", &[("files/large", &text)])]);
        let chart = json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]);
        up.manifest(&chart, "");
        self.pack(place_with_site(up.place, ""));
        for file in ["index.yaml", "app-1.0.0.tgz"] {
            self.add("/charts/", format!("/charts/{file}"));
        }
    }

    fn add_provider(&mut self) {
        let mut files = ProviderFiles::new();
        let program = noise(3, LARGE);
        let archive = zip_package(&[("terraform-provider-random_v1.0.0", &program)]);
        files.put("1.0.0", "linux_amd64", &archive);
        let server = file_server(&files.root());
        let mirror = format!(
            "upstreams: {{registry.test: {{mirror: '{}'}}}}\n",
            server.url()
        );
        let place = place_with_site(Place::new(), &mirror);
        let entry = "{source: registry.test/acme/random, version: 1.0.0}";
        place.write("m.yaml", manifest("providers", entry));
        self.pack(place);
        let folder = "/providers/registry.test/acme/random";
        for file in ["index.json", "1.0.0.json"] {
            self.add("/providers/", format!("{folder}/{file}"));
        }
        let archive = format!("{folder}/terraform-provider-random_1.0.0_linux_amd64.zip");
        self.add("/providers/", archive);
    }

    fn add_apt(&mut self, up: AptUpstream) {
        up.place.write("build/app_1_amd64/large", noise(4, LARGE));
        up.build("pool/stable", &[deb("app", "1", "")]);
        up.suite("stable", "");
        up.wants("stable", "app", "");
        let host = up.server.address.clone();
        self.pack(place_with_site(up.place, ""));
        for file in ["dists/stable/InRelease", "pool/stable/app_1_amd64.deb"] {
            self.add("/apt/", format!("/apt/{host}/r/{file}"));
        }
    }

    fn add_yum(&mut self, up: YumUpstream) {
        up.build(&[("app", "1", "", &[])]);
        up.index("gz");
        up.wants("install: [app]");
        let host = up.server.address.clone();
        self.pack(place_with_site(up.place, ""));
        for file in ["repodata/repomd.xml", "Packages/app-1-1.noarch.rpm"] {
            self.add("/yum/", format!("/yum/{host}/r/{file}"));
        }
    }
}

/// Writes a site with these lines.
fn place_with_site(place: Place, lines: &str) -> Place {
    let head = "apiVersion: landfall/v1\nkind: Site\n";
    place.write("site.yaml", format!("{head}{lines}"));
    place
}

fn manifest(section: &str, entry: &str) -> String {
    format!("apiVersion: landfall/v1\nkind: Manifest\n{section}:\n- {entry}\n")
}

/// Pushes the repository `tags` with many tags of one manifest to a writable server.
pub fn push_tags(address: &str) {
    let digest = sha256(b"{}");
    put_blob(address, "tags", &digest, b"{}");
    let config = json!({"mediaType": "x/y", "digest": digest, "size": 2});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [],
    });
    let manifest = manifest.to_string();
    for number in 0..TAGS {
        let target = format!("/v2/tags/manifests/{}{number:05}", "t".repeat(100));
        let headers = [("Content-Type", OCI_MANIFEST)];
        let pushed = request("PUT", address, &target, &headers, manifest.as_bytes());
        assert_eq!(pushed.status, 201);
    }
}
