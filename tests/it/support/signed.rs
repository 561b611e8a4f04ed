//! An upstream with an image that has many referrers: tags of cosign, and OCI referrers by API or
//! by tag.

use super::images::{OCI_INDEX, OCI_MANIFEST, digest, noise};
use super::peers::{Server, docker_registry, landfall_serve, own_registry};
use super::{Images, Place, http};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// `sha256-<hex><ending>`: a tag of cosign, or of the referrers tag schema.
pub fn tag_of(descriptor: &Value, ending: &str) -> String {
    format!("{}{ending}", digest(descriptor).replace(':', "-"))
}

/// Uploads a manifest of the layout and everything below it, by digest. Returns the `OCI-Subject`
/// of the response.
pub fn send(
    images: &Images,
    address: &str,
    repository: &str,
    descriptor: &Value,
) -> Option<String> {
    images.push(address, repository, digest(descriptor), descriptor);
    let target = format!("/v2/{repository}/manifests/{}", digest(descriptor));
    let kind = [("Content-Type", descriptor["mediaType"].as_str().unwrap())];
    let put = http::request(
        "PUT",
        address,
        &target,
        &kind,
        &images.bytes(digest(descriptor)),
    );
    put.header("oci-subject").map(str::to_owned)
}

/// Uploads `descriptors` as the list of referrers of `subject`.
pub fn send_list(
    images: &Images,
    address: &str,
    repository: &str,
    subject: &Value,
    descriptors: &[&Value],
) {
    let list = images.index(
        &descriptors
            .iter()
            .map(|&one| one.clone())
            .collect::<Vec<_>>(),
    );
    let bytes = images.bytes(digest(&list));
    http::put_manifest(address, repository, &tag_of(subject, ""), OCI_INDEX, &bytes);
}

/// The digests that a registry lists as referrers of `subject`: by its referrers API, or else by
/// the referrers tag.
pub fn listed(address: &str, repository: &str, subject: &Value) -> BTreeSet<String> {
    let api = http::get(
        address,
        &format!("/v2/{repository}/referrers/{}", digest(subject)),
    );
    let list = match api.status {
        404 => http::manifest(address, repository, &tag_of(subject, "")),
        _ => api,
    };
    let entries = if list.status == 200 {
        list.json()["manifests"].clone()
    } else {
        json!([])
    };
    entries
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| digest(entry).to_owned())
        .collect()
}

/// The kind of upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Upstream {
    /// The fault registry without the referrers API.
    Own,
    /// docker-registry, also without the referrers API.
    DockerRegistry,
    /// `landfall serve --writable`, with the referrers API.
    Serve,
}

/// An upstream with `app:v1` (an index of two manifests), and its referrers.
pub struct Signed {
    pub place: Place,
    pub images: Images,
    pub upstream: Server,
    pub index: Value,
    pub amd64: Value,
    /// cosign's `.sig` of the index.
    pub sig: Value,
    /// cosign's `.att` of the amd64 manifest.
    pub att: Value,
    /// A referrer of the index.
    pub sbom: Value,
    /// A referrer of `sbom`.
    pub sbom_sig: Value,
    /// A referrer of the amd64 manifest: an index of two artifacts.
    pub report: Value,
}

impl Signed {
    pub fn new(upstream: Upstream) -> Signed {
        let place = Place::new();
        let images = Images::new(place.path("layout"));
        let upstream = match upstream {
            Upstream::Own => own_registry(),
            Upstream::DockerRegistry => docker_registry(),
            Upstream::Serve => writable(&place, "upstream"),
        };
        let image = |platform: &str, seed| {
            images.image(platform, &[images.layer(&[("a", &noise(seed, 3000))])])
        };
        let amd64 = image("linux/amd64", 1);
        let arm64 = image("linux/arm64", 2);
        let index = images.index(&[amd64.clone(), arm64]);
        let sig = images.artifact(SIMPLE, b"signature of the index", None);
        let att = images.artifact(
            "application/vnd.dsse.envelope.v1+json",
            b"attestation of amd64",
            None,
        );
        let sbom = images.artifact("application/spdx+json", b"{\"sbom\":1}", Some(&index));
        let sbom_sig = images.artifact(
            "application/vnd.cncf.notary.signature",
            b"signed sbom",
            Some(&sbom),
        );
        let parts =
            [b"one", b"two"].map(|content| images.artifact("application/x.part", content, None));
        let report = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "artifactType": "application/x.report",
            "manifests": parts, "annotations": {"made.by": "test"},
            "subject": {"mediaType": OCI_MANIFEST, "digest": amd64["digest"], "size": amd64["size"]}});
        let report = images.blob(OCI_INDEX, &serde_json::to_vec(&report).unwrap());
        let signed = Signed {
            place,
            images,
            upstream,
            index,
            amd64,
            sig,
            att,
            sbom,
            sbom_sig,
            report,
        };
        signed.fill();
        signed
    }

    pub fn fill(&self) {
        let images = &self.images;
        let at = &*self.upstream.address;
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
    pub fn referrers(&self) -> [(&Value, &Value); 3] {
        [
            (&self.sbom, &self.index),
            (&self.sbom_sig, &self.sbom),
            (&self.report, &self.amd64),
        ]
    }

    pub fn manifest(&self, body: &str) {
        let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
        self.place.write(
            "m.yaml",
            format!("{head}{}", body.replace("REG", &self.upstream.address)),
        );
    }

    pub fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place.json(
            exit,
            &[&["lock", "-f", "m.yaml", "--store", "store"], more].concat(),
        )
    }

    /// Locks `app:v1`, pulls it and packs it as `b`.
    pub fn pack(&self) {
        self.manifest("images: [REG/app:v1]\n");
        self.lock(0, &[]);
        self.place.json(0, &["pull", "--store", "store"]);
        self.place.json(0, &["pack", "--store", "store", "-o", "b"]);
    }

    /// Asserts that `registry` has all content in `repository`, byte for byte, and lists the
    /// referrers.
    pub fn check(&self, registry: &str, repository: &str) {
        for (tag, top) in [
            ("v1".to_owned(), &self.index),
            (tag_of(&self.index, ".sig"), &self.sig),
            (tag_of(&self.amd64, ".att"), &self.att),
        ] {
            let there = http::manifest(registry, repository, &tag);
            assert_eq!(
                there.header("docker-content-digest"),
                Some(digest(top)),
                "{tag}"
            );
        }
        let tops = [
            &self.index,
            &self.sig,
            &self.att,
            &self.sbom,
            &self.sbom_sig,
            &self.report,
        ];
        for found in tops.iter().flat_map(|top| self.images.closure(top)) {
            let manifest = http::manifest(registry, repository, &found);
            let blob = || http::get(registry, &format!("/v2/{repository}/blobs/{found}"));
            let there = if manifest.status == 200 {
                manifest
            } else {
                blob()
            };
            assert!(
                there.status == 200 && there.body == self.images.bytes(&found),
                "{found}"
            );
        }
        for (referrer, subject) in self.referrers() {
            assert_eq!(
                listed(registry, repository, subject),
                BTreeSet::from([digest(referrer).to_owned()])
            );
        }
    }
}

pub fn writable(place: &Place, dir: &str) -> Server {
    landfall_serve(place, &["--writable", place.path(dir).to_str().unwrap()])
}
