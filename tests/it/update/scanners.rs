//! The scanner databases of the catalogue, updated by nightly refreshes.

use super::moved;
use super::upstream::Upstream;
use crate::support::faults::{Content, Faults};
use crate::support::images::{OCI_MANIFEST, sha256};
use serde_json::{Value, json};

const LAYER: &str = "application/vnd.aquasec.trivy.db.layer.v1.tar+gzip";

/// A manifest of the catalogue, with its hosts replaced by the registry and web server of the test.
fn shipped(up: &Upstream, text: &str) -> String {
    text.replace("ghcr.io/", &format!("{}/", up.faults.address))
        .replace(
            "https://grype.anchore.io",
            &format!("http://{}/files", up.faults.address),
        )
}

impl Upstream {
    /// Publishes a database of Trivy under a tag, as Trivy's own pipeline does.
    fn publish_trivy(&self, repository: &str, tag: &str, text: &str) -> String {
        self.faults.content(|content| {
            let config = content.blob(
                repository,
                "application/vnd.aquasec.trivy.config.v1+json",
                b"{}".to_vec(),
            );
            let mut layer = content.blob(repository, LAYER, text.as_bytes().to_vec());
            layer["annotations"] = json!({"org.opencontainers.image.title": "db.tar.gz"});
            let document = json!({
                "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer],
                "annotations": {"org.opencontainers.image.created": "2020-01-01T00:00:00Z"},
            });
            let manifest = content.manifest(repository, OCI_MANIFEST, &document);
            content.tag(repository, tag, &manifest);
            manifest["digest"].as_str().unwrap().to_owned()
        })
    }

    /// Publishes a database of Grype, and removes the older ones.
    fn publish_grype(&self, day: u8) -> String {
        let name =
            format!("vulnerability-db_v6.1.9_2026-11-{day:02}T00:37:02Z_17905780{day:02}.tar.zst");
        self.faults.content(|content| {
            content
                .files
                .retain(|path, _| !path.contains("vulnerability-db"));
        });
        self.file(
            &format!("databases/v6/{name}"),
            format!("database of day {day}"),
        );
        let listing = json!({"status": "active", "schemaVersion": "v6.1.9", "path": name, "checksum": "sha256:…"});
        self.file("databases/v6/latest.json", listing.to_string());
        name
    }
}

#[test]
fn databases_of_scanners_are_updated_every_night() {
    let up = Upstream::new();
    let far = Faults::new(Content::default());
    let trivy = include_str!("../../../manifests/scanners/trivy.yaml");
    let grype = include_str!("../../../manifests/scanners/grype.yaml");
    up.place.write("m.yaml", shipped(&up, trivy));
    up.place.write("grype.yaml", shipped(&up, grype));
    up.place.write("sent.lock", "version: 1\n");
    for (night, day) in (1..).zip([1_u8, 2, 9]) {
        let mut digests = Vec::new();
        for (repository, tag) in [
            ("trivy-db", "2"),
            ("trivy-java-db", "1"),
            ("trivy-checks", "2"),
        ] {
            let repository = format!("aquasecurity/{repository}");
            let text = format!("{repository} of day {day}");
            digests.push((
                repository.clone(),
                tag,
                up.publish_trivy(&repository, tag, &text),
            ));
        }
        let archive = up.publish_grype(day);
        let out = format!("night-{night}");
        let report = up.run(
            0,
            "refresh",
            &["-f", "grype.yaml", "--since", "sent.lock", "-o", &out],
        );
        assert_eq!(
            moved(&report),
            [("grype".to_owned(), archive.clone())],
            "{report:#}"
        );
        let taken = report["notices"].as_array().unwrap().iter();
        let taken = taken.filter(|notice| notice["taken"] == true).count();
        assert_eq!(taken, if night == 1 { 0 } else { 3 }, "{report:#}");
        let to = far.address.as_str();
        up.place.json(
            0,
            &["push", &out, "--to", to, "--plain-http", to, "--move-tags"],
        );
        up.place.write("sent.lock", up.place.read("landfall.lock"));
        for (repository, tag, digest) in digests {
            far.content(|content| {
                assert_eq!(content.tags[&(repository.clone(), tag.to_owned())], digest);
                let manifest = &content.manifests[&(repository, digest)];
                let layers: Value = serde_json::from_slice(&manifest.1).unwrap();
                assert_eq!(layers["layers"][0]["mediaType"], LAYER);
            });
        }
        let lock = up.place.read("landfall.lock");
        let content = sha256(format!("database of day {day}").as_bytes());
        assert!(lock.contains(&archive) && lock.contains(&content), "{lock}");
    }
    let said = up.place.ok(&up.args(
        "refresh",
        &["-f", "grype.yaml", "--since", "sent.lock", "-o", "none"],
    ));
    assert_eq!(said, "unchanged\n");
}
