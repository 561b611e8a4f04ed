//! The SBOM of a bundle, the documents that it links, and their export.

use crate::support::Place;
use crate::support::images::{Images, noise, sha256};
use crate::support::need;
use crate::support::peers::own_registry;
use serde_json::{Value, json};

const CARRIED: &str = r#"{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 2,
    "serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79", "components": []}"#;

/// A bundle `b` with an image that has a CycloneDX document and a signature.
fn packed() -> Place {
    let place = Place::new();
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let image = images.image("linux/amd64", &[images.layer(&[("app", &noise(1, 3000))])]);
    images.push(&upstream.address, "team/app", "v1", &image);
    let tag = image["digest"].as_str().unwrap().replace(':', "-");
    let sbom = images.artifact("application/vnd.cyclonedx+json", CARRIED.as_bytes(), None);
    images.push(&upstream.address, "team/app", &format!("{tag}.sbom"), &sbom);
    let signature = images.artifact("application/vnd.example.signature", b"signed", None);
    images.push(
        &upstream.address,
        "team/app",
        &format!("{tag}.sig"),
        &signature,
    );
    let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
    place.write(
        "m.yaml",
        format!("{head}images: [\"{}/team/app:v1\"]\n", upstream.address),
    );
    for line in [
        &["lock", "-f", "m.yaml"][..],
        &["pull"],
        &["pack", "-o", "b", "--serial", "7"],
    ] {
        place.ok(&[line, &["--store", "s"]].concat());
    }
    place
}

#[test]
fn the_document_has_the_fields_of_cyclonedx_and_links_the_attached_sboms() {
    if !need(&["gzip"]) {
        return;
    }
    let place = packed();
    let text = place.ok(&["sbom", "b"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            &document["bomFormat"],
            &document["specVersion"],
            &document["version"]
        ),
        (&json!("CycloneDX"), &json!("1.6"), &json!(1))
    );
    let serial = document["serialNumber"].as_str().unwrap();
    let groups: Vec<usize> = serial
        .strip_prefix("urn:uuid:")
        .unwrap()
        .split('-')
        .map(str::len)
        .collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{serial}");
    let subject = &document["metadata"]["component"];
    assert_eq!(
        (&subject["name"], &subject["version"]),
        (&json!("t"), &json!("7"))
    );
    assert_eq!(
        document["metadata"].get("timestamp"),
        None,
        "the document has no time unless one is given"
    );

    let [component] = &document["components"].as_array().unwrap()[..] else {
        panic!("{text}")
    };
    let lock = place.json(0, &["ls", "b"]);
    let digest = lock["items"][0]["digest"].as_str().unwrap();
    assert_eq!(
        component["hashes"],
        json!([{"alg": "SHA-256", "content": digest["sha256:".len()..]}])
    );
    assert_eq!(
        (&component["type"], &component["version"]),
        (&json!("container"), &json!("v1"))
    );
    let purl = component["purl"].as_str().unwrap();
    assert!(
        purl.starts_with("pkg:oci/app@sha256%3A") && purl.ends_with("/team/app&tag=v1"),
        "{purl}"
    );
    let references = component["externalReferences"].as_array().unwrap();
    let of = |kind: &str| {
        references
            .iter()
            .find(|reference| reference["type"] == kind)
            .unwrap()
    };
    assert_eq!(
        of("bom")["url"],
        "urn:cdx:3e671687-395b-41f5-a30f-a58921a69b79/2"
    );
    assert_eq!(
        of("bom")["hashes"][0]["content"],
        sha256(CARRIED.as_bytes())["sha256:".len()..]
    );
    assert!(
        of("digital-signature")["url"]
            .as_str()
            .unwrap()
            .starts_with("oci://127.0.0.1:")
    );
    assert_eq!(
        document["dependencies"][0]["dependsOn"],
        json!([component["bom-ref"]])
    );
    assert_eq!(document["compositions"][0]["aggregate"], "complete");
}

#[test]
fn the_document_is_reproducible_and_has_a_time_if_one_is_given() {
    if !need(&["gzip"]) {
        return;
    }
    let place = packed();
    let first = place.ok(&["sbom", "b"]);
    std::fs::rename(place.path("b"), place.path("c")).unwrap();
    place.ok(&["sbom", "c", "-o", "sbom.json"]);
    assert_eq!(
        place.read("sbom.json"),
        first,
        "the document does not depend on the name of the bundle"
    );
    let made = place
        .command()
        .args(["sbom", "c"])
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(made["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    let bad = place
        .command()
        .args(["sbom", "c"])
        .env("SOURCE_DATE_EPOCH", "today")
        .output()
        .unwrap();
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn attached_documents_are_exported_byte_for_byte() {
    if !need(&["gzip"]) {
        return;
    }
    let place = packed();
    let report = place.json(0, &["export", "referrers", "b", "-o", "out"]);
    let names: Vec<&str> = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{report:#}");
    let sbom = names
        .iter()
        .find(|name| name.contains("/team/app/v1/sbom-"))
        .unwrap();
    assert_eq!(place.read(sbom), CARRIED);
    let signature = names
        .iter()
        .find(|name| name.contains("/signature-"))
        .unwrap();
    assert_eq!(place.read(signature), "signed");
    // an export from the store also works, even into a folder that already has the files
    place.ok(&["export", "referrers", "--store", "s", "-o", "out"]);
    // documents that the store lacks are reported, not omitted
    place.write("empty.lock", "version: 1\n");
    place.ok(&["pull", "empty.lock", "--store", "none"]);
    let report = place.json(1, &["export", "referrers", "--store", "none", "-o", "out"]);
    let missing: Vec<&Value> = report["items"].as_array().unwrap().iter().collect();
    assert_eq!(missing.len(), 2, "{report:#}");
    assert!(
        missing.iter().all(|item| item["status"] == "missing"),
        "{report:#}"
    );
    // so are images that a partial bundle lacks
    let lost = "\nunresolved:\n- {kind: image, name: \"quay.io/gone/app:v1\", cause: gone}\n...\n";
    let lock = place.read("landfall.lock").replace("\n...\n", lost);
    place.write("lost.lock", lock);
    let pack = ["pack", "--lock", "lost.lock", "--store", "s", "-o", "c"];
    place.json(3, &[&pack[..], &["--allow-partial"]].concat());
    let partial = ["export", "referrers", "c", "--allow-partial", "-o", "out"];
    let report = place.json(3, &partial);
    let last = report["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["name"], &last["status"]),
        (&json!("quay.io/gone/app:v1"), &json!("missing")),
        "{report:#}"
    );
}
