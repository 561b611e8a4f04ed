//! Probes: the same requests to a registry that behaves as a profile says and to the real one,
//! whose responses must agree in everything that the lines of a profile can say.

use super::far_side::path_of;
use super::{FarSide, Profile};
use crate::support::http::{ACCEPT, Response};
use crate::support::images::{
    DOCKER_CONFIG, DOCKER_MANIFEST, OCI_CONFIG, OCI_EMPTY, OCI_GZIP, OCI_INDEX, OCI_MANIFEST,
    noise, sha256,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The repository for the probes.
const REPOSITORY: &str = "team/probe";

/// Asserts that the profile with this name and the real registry answer the probes alike.
pub fn compare(name: &str, real: &FarSide) {
    let profile = Profile::read(name);
    let expected = answers(&FarSide::without_token(&profile));
    let found = answers(real);
    let differences: Vec<String> = expected
        .iter()
        .filter(|(probe, answer)| found[*probe] != **answer)
        .map(|(probe, answer)| {
            format!("{probe}:\n  profile: {answer}\n  real:    {}", found[probe])
        })
        .collect();
    assert!(
        differences.is_empty(),
        "{name}:\n{}",
        differences.join("\n")
    );
}

/// The responses to all probes, by the names of the probes.
fn answers(registry: &FarSide) -> BTreeMap<&'static str, String> {
    let mut answers = BTreeMap::new();
    let layer = noise(1, 5000);
    let config = json!({"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": []}});
    let config = config.to_string().into_bytes();
    let descriptor = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": sha256(bytes), "size": bytes.len()});
    for bytes in [&layer[..], &config, b"{}", b""] {
        registry.put_blob(REPOSITORY, bytes);
    }
    let manifest = |kind: &str, config_type: &str, config: &[u8], layers: &[Value]| {
        json!({
            "schemaVersion": 2, "mediaType": kind, "config": descriptor(config_type, config),
            "layers": layers,
        })
    };
    let layers = [descriptor(OCI_GZIP, &layer)];
    let image = manifest(OCI_MANIFEST, OCI_CONFIG, &config, &layers);
    let put = |reference: &str, kind: &str, document: &Value| {
        registry.put_manifest(REPOSITORY, reference, kind, document.to_string().as_bytes())
    };
    let of = |document: &Value| sha256(document.to_string().as_bytes());
    let child = |document: &Value, kind: &str| {
        let mut child = descriptor(kind, document.to_string().as_bytes());
        child["platform"] = json!({"os": "linux", "architecture": "amd64"});
        child
    };
    let mut note = |probe, answer: String| answers.insert(probe, answer);

    let path = format!("/v2/{REPOSITORY}/blobs/uploads/");
    let begun = registry.request("POST", &path, &[], b"");
    let location = begun.header("location").unwrap_or_default();
    let form = if location.contains("://") {
        "a URL"
    } else {
        "a path"
    };
    note("upload", format!("{} at {form}", begun.status));
    let mount = format!("?mount={}", sha256(&layer));
    let answer = registry.request("POST", &format!("{path}{mount}"), &[], b"");
    note("mount without from", class(&answer));
    note("image", shown(&put("v1", OCI_MANIFEST, &image)));
    let other = path.replace("probe", "other");
    registry.put_blob("team/other", b"{}");
    let from = format!("{other}{mount}&from={REPOSITORY}");
    note("mount", class(&registry.request("POST", &from, &[], b"")));

    let docker = manifest(DOCKER_MANIFEST, DOCKER_CONFIG, &config, &layers);
    note(
        "Docker image",
        shown(&put("docker", DOCKER_MANIFEST, &docker)),
    );
    let old = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.artifact.manifest.v1+json", "blobs": []});
    let kind = "application/vnd.oci.artifact.manifest.v1+json";
    note(
        "manifest of an unknown type",
        class(&put("old", kind, &old)),
    );
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [child(&image, OCI_MANIFEST)]});
    note("index", shown(&put("index", OCI_INDEX, &index)));
    let lacking = json!({"missing": true});
    let sparse = json!({
        "schemaVersion": 2, "mediaType": OCI_INDEX,
        "manifests": [child(&image, OCI_MANIFEST), child(&lacking, OCI_MANIFEST)],
    });
    note("sparse index", shown(&put("sparse", OCI_INDEX, &sparse)));
    let nested = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [child(&index, OCI_INDEX)]});
    note("nested index", shown(&put("nested", OCI_INDEX, &nested)));
    let hollow = manifest(
        OCI_MANIFEST,
        OCI_CONFIG,
        &config,
        &[descriptor(OCI_GZIP, b"")],
    );
    note("empty layer", shown(&put("hollow", OCI_MANIFEST, &hollow)));
    let mut artifact = manifest(
        OCI_MANIFEST,
        OCI_EMPTY,
        b"{}",
        &[descriptor("text/plain", &layer)],
    );
    artifact["artifactType"] = json!("application/vnd.example.thing");
    note("artifact", shown(&put("artifact", OCI_MANIFEST, &artifact)));
    artifact["subject"] = descriptor(OCI_MANIFEST, image.to_string().as_bytes());
    let referrer = put(&of(&artifact), OCI_MANIFEST, &artifact);
    let subject = if referrer.header("oci-subject").is_some() {
        "with"
    } else {
        "without"
    };
    note(
        "referrer",
        format!("{} {subject} OCI-Subject", shown(&referrer)),
    );
    let mut large = image.clone();
    large["annotations"] = json!({"a": "a".repeat(4 << 20)});
    note(
        "manifest of 4 MiB and more",
        class(&put("large", OCI_MANIFEST, &large)),
    );

    let get = |target: &str| registry.request("GET", target, &[("Accept", ACCEPT)], b"");
    let list = format!("/v2/{REPOSITORY}/referrers/{}", of(&image));
    note("referrers", listed(&get(&list)));
    let list = format!("/v2/{REPOSITORY}/referrers/{}", of(&lacking));
    note("referrers of an unknown manifest", listed(&get(&list)));
    let tags = format!("/v2/{REPOSITORY}/tags/list");
    let list = |target: &str| registry.request("GET", target, &[], b"");
    note("first page of tags", linked(&list(&format!("{tags}?n=2"))));
    note("all tags", linked(&list(&tags)));
    note(
        "tags of an unknown repository",
        class(&list("/v2/team/unknown/tags/list")),
    );
    let missing = |name: &str| format!("/v2/{REPOSITORY}/manifests/{name}");
    note("missing manifest", shown(&get(&missing("missing"))));
    let head = registry.request("HEAD", &missing("v1"), &[("Accept", ACCEPT)], b"");
    let named = head.header("docker-content-digest").is_some();
    note(
        "HEAD of a manifest",
        format!("{}, digest {named}", head.status),
    );
    let blob = format!("/v2/{REPOSITORY}/blobs/{}", sha256(&layer));
    let range = registry.request("GET", &blob, &[("Range", "bytes=4000-")], b"");
    note(
        "range of a blob",
        format!("{}, {} bytes", range.status, range.body.len()),
    );
    note(
        "missing blob",
        shown(&get(&blob.replace(&sha256(&layer), &of(&lacking)))),
    );

    let delete = |reference: &str| registry.request("DELETE", &missing(reference), &[], b"");
    note("deletion of a tag", shown(&delete("hollow")));
    note("deletion of a child", shown(&delete(&of(&image))));
    note("deletion of an index", shown(&delete(&of(&index))));
    answers
}

/// The status of a response, and the code of its error.
fn shown(answer: &Response) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match document["errors"][0]["code"].as_str() {
        Some(code) => format!("{} {code}", answer.status),
        None => answer.status.to_string(),
    }
}

/// Only the status of a response.
fn class(answer: &Response) -> String {
    answer.status.to_string()
}

/// The status of a list of referrers, and the number of its entries.
fn listed(answer: &Response) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match document["manifests"].as_array() {
        Some(entries) => format!("{}, {} entries", answer.status, entries.len()),
        None => answer.status.to_string(),
    }
}

/// The number of tags in a list, and the form of its `Link`.
fn linked(answer: &Response) -> String {
    let document: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let count = document["tags"].as_array().map(Vec::len);
    let link = answer.header("link").map(|link| {
        let target = link
            .trim_start_matches('<')
            .split('>')
            .next()
            .unwrap_or_default();
        let form = if target.contains("://") {
            "URL"
        } else {
            "path"
        };
        let path = path_of(target).split('?').next().unwrap_or_default();
        format!("{form} {path}")
    });
    format!("{}, {count:?} tags, link {link:?}", answer.status)
}
