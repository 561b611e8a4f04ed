//! Signatures, attestations and other referrers: found by `lock` alone, carried, and kept at the far
//! side, by registries with and without the referrers API.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::images::{OCI_INDEX, OCI_MANIFEST, noise};
use support::peers::{Server, docker_registry};
use support::{Images, Place, http, landfall_serve, need};

const NEEDS: [&str; 2] = ["docker-registry", "gzip"];
const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

fn digest(descriptor: &Value) -> &str {
    descriptor["digest"].as_str().unwrap()
}

/// `sha256-<hex><ending>`: a tag of cosign's, or the one of a list of referrers.
fn tag_of(descriptor: &Value, ending: &str) -> String {
    format!("{}{ending}", digest(descriptor).replace(':', "-"))
}

/// Sends a manifest of the layout and everything under it, by digest or tag; gives `OCI-Subject`.
fn send(images: &Images, address: &str, repository: &str, descriptor: &Value) -> Option<String> {
    images.push(address, repository, digest(descriptor), descriptor);
    let target = format!("/v2/{repository}/manifests/{}", digest(descriptor));
    let kind = [("Content-Type", descriptor["mediaType"].as_str().unwrap())];
    let put = http::request("PUT", address, &target, &kind, &images.bytes(digest(descriptor)));
    put.header("oci-subject").map(str::to_owned)
}

/// Puts `descriptors` as the list of what refers to `subject`.
fn send_list(images: &Images, address: &str, repository: &str, subject: &Value, descriptors: &[&Value]) {
    let list = images.index(&descriptors.iter().map(|&one| one.clone()).collect::<Vec<_>>());
    let bytes = images.bytes(digest(&list));
    http::put_manifest(address, repository, &tag_of(subject, ""), OCI_INDEX, &bytes);
}

/// The digests that a registry lists as referrers of `subject`: by its API, or else by the tag.
fn listed(address: &str, repository: &str, subject: &Value) -> BTreeSet<String> {
    let api = http::get(address, &format!("/v2/{repository}/referrers/{}", digest(subject)));
    let list = match api.status {
        404 => http::manifest(address, repository, &tag_of(subject, "")),
        _ => api,
    };
    let entries = if list.status == 200 { list.json()["manifests"].clone() } else { json!([]) };
    entries.as_array().unwrap().iter().map(|entry| digest(entry).to_owned()).collect()
}

/// An upstream with `app:v1` (an index of two), and what refers to it.
struct Signed {
    place: Place,
    images: Images,
    upstream: Server,
    index: Value,
    amd64: Value,
    /// cosign's `.sig` of the index.
    sig: Value,
    /// cosign's `.att` of the amd64 manifest.
    att: Value,
    /// A referrer of the index.
    sbom: Value,
    /// A referrer of that.
    sbom_sig: Value,
    /// A referrer of the amd64 manifest: an index of two.
    report: Value,
}

impl Signed {
    /// `upstream` is a docker-registry, or else a `landfall serve --writable`.
    fn new(docker: bool) -> Signed {
        let place = Place::new();
        let images = Images::new(place.path("layout"));
        let upstream = match docker {
            true => docker_registry(),
            false => writable(&place, "upstream"),
        };
        let image =
            |platform: &str, seed| images.image(platform, &[images.layer(&[("a", &noise(seed, 3000))])]);
        let (amd64, arm64) = (image("linux/amd64", 1), image("linux/arm64", 2));
        let index = images.index(&[amd64.clone(), arm64]);
        let sig = images.artifact(SIMPLE, b"signature of the index", None);
        let att = images.artifact("application/vnd.dsse.envelope.v1+json", b"attestation of amd64", None);
        let sbom = images.artifact("application/spdx+json", b"{\"sbom\":1}", Some(&index));
        let sbom_sig = images.artifact("application/vnd.cncf.notary.signature", b"signed sbom", Some(&sbom));
        let parts = [b"one", b"two"].map(|content| images.artifact("application/x.part", content, None));
        let report = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "artifactType": "application/x.report",
            "manifests": parts, "annotations": {"made.by": "test"},
            "subject": {"mediaType": OCI_MANIFEST, "digest": amd64["digest"], "size": amd64["size"]}});
        let report = images.blob(OCI_INDEX, &serde_json::to_vec(&report).unwrap());
        let signed = Signed { place, images, upstream, index, amd64, sig, att, sbom, sbom_sig, report };
        signed.fill();
        signed
    }

    fn fill(&self) {
        let (images, at) = (&self.images, &*self.upstream.address);
        images.push(at, "app", "v1", &self.index);
        images.push(at, "app", &tag_of(&self.index, ".sig"), &self.sig);
        images.push(at, "app", &tag_of(&self.amd64, ".att"), &self.att);
        for (referrer, subject) in self.referrers() {
            if send(images, at, "app", referrer).is_none() {
                send_list(images, at, "app", subject, &[referrer]);
            }
        }
    }

    /// The OCI referrers, each with its subject.
    fn referrers(&self) -> [(&Value, &Value); 3] {
        [(&self.sbom, &self.index), (&self.sbom_sig, &self.sbom), (&self.report, &self.amd64)]
    }

    fn manifest(&self, body: &str) {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
        self.place.write("m.yaml", format!("{head}{}", body.replace("REG", &self.upstream.address)));
    }

    fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place.json(exit, &[&["lock", "-f", "m.yaml", "--store", "store"], more].concat())
    }

    /// Locks `app:v1`, pulls it and packs it as `b`.
    fn pack(&self) {
        self.manifest("images: [REG/app:v1]\n");
        self.lock(0, &[]);
        self.place.json(0, &["pull", "--store", "store"]);
        self.place.json(0, &["pack", "--store", "store", "-o", "b"]);
    }

    /// Demands that `registry` has everything of `repository`, byte for byte, and lists it.
    fn check(&self, registry: &str, repository: &str) {
        for (tag, top) in [
            ("v1".to_owned(), &self.index),
            (tag_of(&self.index, ".sig"), &self.sig),
            (tag_of(&self.amd64, ".att"), &self.att),
        ] {
            let there = http::manifest(registry, repository, &tag);
            assert_eq!(there.header("docker-content-digest"), Some(digest(top)), "{tag}");
        }
        let tops = [&self.index, &self.sig, &self.att, &self.sbom, &self.sbom_sig, &self.report];
        for found in tops.iter().flat_map(|top| self.images.closure(top)) {
            let manifest = http::manifest(registry, repository, &found);
            let blob = || http::get(registry, &format!("/v2/{repository}/blobs/{found}"));
            let there = if manifest.status == 200 { manifest } else { blob() };
            assert!(there.status == 200 && there.body == self.images.bytes(&found), "{found}");
        }
        for (referrer, subject) in self.referrers() {
            assert_eq!(listed(registry, repository, subject), BTreeSet::from([digest(referrer).to_owned()]));
        }
    }
}

fn writable(place: &Place, dir: &str) -> Server {
    landfall_serve(place, &["--writable", place.path(dir).to_str().unwrap()])
}

/// The names of a locked image's referrers: `tag` or `subject`, and the digest.
fn referrers_of(lock: &str) -> BTreeSet<(String, String)> {
    let lock: Value = serde_yaml::from_str(lock).unwrap();
    let referrers = lock["images"][0]["referrers"].as_array().unwrap().clone();
    let name = |one: &Value| one["tag"].as_str().or(one["subject"].as_str()).unwrap_or("").to_owned();
    referrers.iter().map(|one| (name(one), digest(one).to_owned())).collect()
}

#[test]
fn everything_that_refers_to_an_image_is_locked_and_carried_to_both_kinds_of_registry() {
    if !need(&NEEDS) {
        return;
    }
    for docker in [true, false] {
        let signed = Signed::new(docker);
        signed.pack();
        let found = referrers_of(&signed.place.read("landfall.lock"));
        let mut wanted: BTreeSet<(String, String)> =
            [(tag_of(&signed.index, ".sig"), &signed.sig), (tag_of(&signed.amd64, ".att"), &signed.att)]
                .map(|(tag, one)| (tag, digest(one).to_owned()))
                .into();
        wanted.extend(signed.referrers().map(|(one, subject)| (digest(subject).into(), digest(one).into())));
        let report: Value = serde_json::from_slice(&signed.images.bytes(digest(&signed.report))).unwrap();
        let parts = report["manifests"].as_array().unwrap();
        wanted.extend(parts.iter().map(|part| (String::new(), digest(part).to_owned())));
        assert_eq!(found, wanted, "upstream is docker-registry: {docker}");

        // pull works from the lock and the store is whole without upstream
        let again = signed.place.json(0, &["pull", "--store", "store"]);
        assert_eq!(again["totals"]["requests"], 0);
        let registry = docker_registry();
        let other = writable(&signed.place, "target");
        for target in [&registry, &other] {
            signed.place.json(0, &["push", "b", "--to", &target.address]);
            signed.check(&target.address, "app");
            let warm = signed.place.json(0, &["push", "b", "--to", &target.address]);
            assert_eq!(warm["items"][0]["status"], "present");
        }
        let served = landfall_serve(&signed.place, &["b"]);
        signed.check(&served.address, "app");
        let list = http::manifest(&registry.address, "app", &tag_of(&signed.amd64, "")).json();
        assert_eq!(list["manifests"][0]["artifactType"], "application/x.report");
        assert_eq!(list["manifests"][0]["annotations"]["made.by"], "test");
    }
}
