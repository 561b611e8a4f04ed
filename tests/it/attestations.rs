//! Attestations that the index of an image lists, as BuildKit writes them: without one, the image
//! is carried with the digest of its index.

use crate::support::Place;
use crate::support::faults::{Content, Fault, FaultKind, Faults, RequestKind, Rule, Settings};
use serde_json::{Value, json};

/// An image with an attestation, and the digest of its index.
fn attested(content: &mut Content) -> (String, Value) {
    let image = content.image("app", "linux/amd64", &[(1, 400)]);
    let mut attestation = content.artifact("app", "provenance", None);
    attestation["platform"] = json!({"os": "unknown", "architecture": "unknown"});
    attestation["annotations"] = json!({
        "vnd.docker.reference.type": "attestation-manifest",
        "vnd.docker.reference.digest": image["digest"],
    });
    let index = content.index("app", &[image, attestation.clone()]);
    content.tag("app", "v1", &index);
    (index["digest"].as_str().unwrap().to_owned(), attestation)
}

fn digest(descriptor: &Value) -> String {
    descriptor["digest"].as_str().unwrap().to_owned()
}

/// The digest of the only layer of a manifest.
fn layer_of(content: &Content, manifest: &Value) -> String {
    let (_, bytes) = &content.manifests[&("app".to_owned(), digest(manifest))];
    let manifest: Value = serde_json::from_slice(bytes).unwrap();
    digest(&manifest["layers"][0])
}

/// A folder in which the image is locked.
fn locked(up: &Faults) -> Place {
    let place = Place::new();
    let image = format!("images: [\"{}/app:v1\"]\n", up.address);
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\n{image}"),
    );
    place.json(0, &["lock", "-f", "m.yaml", "--store", "s"]);
    place
}

/// A registry with one rule.
fn registry(rules: &Value) -> Faults {
    let down = Faults::new(Content::default());
    let rules: Vec<Rule> = serde_json::from_value(rules.clone()).unwrap();
    down.set(Settings {
        rules: rules.into(),
        ..Settings::default()
    });
    down
}

fn tag(down: &Faults) -> Option<String> {
    let key = ("app".to_owned(), "v1".to_owned());
    down.content(|content| content.tags.get(&key).cloned())
}

fn item<'r>(report: &'r Value, kind: &str) -> &'r Value {
    let items = report["items"].as_array().unwrap().iter();
    let found: Vec<&Value> = items.filter(|item| item["kind"] == kind).collect();
    assert_eq!(found.len(), 1, "{report:#}");
    found[0]
}

/// Before, the image was lost at every step.
#[test]
fn an_attestation_without_its_blob_costs_only_itself() {
    let mut content = Content::default();
    let (index, attestation) = attested(&mut content);
    let blob = layer_of(&content, &attestation);
    let up = Faults::new(content);
    let place = locked(&up);
    let broken = || {
        up.set_faults([Fault::always(RequestKind::Blob, FaultKind::Status(404)).at(&blob)]);
    };
    broken();
    let report = place.json(3, &["pull", "--store", "s"]);
    assert_eq!(item(&report, "image")["status"], "done");
    let lost = item(&report, "referrer");
    assert!(lost["name"].as_str().unwrap().ends_with(&blob), "{lost}");
    assert!(lost["reason"].as_str().unwrap().contains("404"), "{lost}");
    place.json(3, &["pack", "--store", "s", "-o", "b.tar.zst"]);
    let partial = ["pack", "--store", "s", "-o", "b.tar.zst", "--allow-partial"];
    let report = place.json(3, &partial);
    item(&report, "image");
    place.json(4, &["verify", "b.tar.zst"]);
    place.json(0, &["verify", "b.tar.zst", "--allow-partial"]);

    // the digest of the index stays, if the registry accepts missing children
    let down = registry(&json!([{"sparse-indexes": "accepted"}]));
    let to = ["--to", &down.address];
    let push = [&["push", "b.tar.zst", "--allow-partial"], &to[..]].concat();
    let report = place.json(3, &push);
    assert_eq!(item(&report, "image")["status"], "done", "{report:#}");
    assert_eq!(tag(&down).as_deref(), Some(&*index));
    for source in [vec!["push"], vec!["mirror", "-f", "m.yaml"]] {
        broken();
        let down = registry(&json!([{"sparse-indexes": "accepted"}]));
        let to = ["--store", "s", "--to", &down.address];
        // before, the second run reported success
        for _ in 0..2 {
            let report = place.json(3, &[&source[..], &to].concat());
            assert_eq!(item(&report, "image")["status"], "done", "{report:#}");
            assert_eq!(item(&report, "referrer")["status"], "failed");
            assert_eq!(tag(&down).as_deref(), Some(&*index), "{source:?}");
        }
    }
    // otherwise it is not pushed with another digest, and the message names the attestation
    broken();
    let down = Faults::new(Content::default());
    let to = [
        "mirror",
        "-f",
        "m.yaml",
        "--store",
        "s",
        "--to",
        &down.address,
    ];
    let report = place.json(1, &to);
    let why = item(&report, "image")["reason"].as_str().unwrap();
    assert!(why.contains(&digest(&attestation)), "{why}");
    assert_eq!(tag(&down), None);

    // before, the shard with the blob reported the loss of the image
    broken();
    let mut lost = Vec::new();
    for number in 1..=4 {
        let shard = format!("{number}/4");
        let output = place
            .landfall()
            .args([
                "pull", "--store", "shards", "--shard", &shard, "--output", "json",
            ])
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        for item in report["items"].as_array().unwrap() {
            let is_failed = item["status"] == "failed";
            assert!(!is_failed || item["kind"] == "referrer", "{report:#}");
            lost.extend(is_failed.then(|| output.status.code()));
        }
    }
    assert_eq!(lost, [Some(3)]);

    up.set_faults([]);
    place.json(0, &["pull", "--store", "s"]);
    place.json(0, &["pack", "--store", "s", "-o", "c.tar.zst"]);
    place.json(0, &["verify", "c.tar.zst"]);
}

/// Before, the image was lost.
#[test]
fn an_attestation_that_the_registry_refuses_costs_only_itself() {
    let mut content = Content::default();
    let (index, attestation) = attested(&mut content);
    let up = Faults::new(content);
    let place = locked(&up);
    place.json(0, &["pull", "--store", "s"]);
    let down = registry(&json!([{"sparse-indexes": "accepted"}]));
    let refused = FaultKind::Refusal(415, "UNSUPPORTED");
    let refused = Fault::always(RequestKind::PutManifest, refused).at(&digest(&attestation));
    down.set_faults([refused]);
    let push = ["push", "--store", "s", "--to", &down.address];
    let report = place.json(3, &push);
    assert_eq!(item(&report, "image")["status"], "done", "{report:#}");
    assert_eq!(item(&report, "referrer")["digest"], digest(&attestation));
    assert_eq!(tag(&down).as_deref(), Some(&*index));
    let required = [&push[..], &["--referrers", "required"]].concat();
    down.content(|content| *content = Content::default());
    place.json(1, &required);
    assert_eq!(tag(&down), None);
}
