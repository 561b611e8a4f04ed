//! The seeds of the targets whose readers are called as they are: responses of servers, files of
//! users and nodes, packages of providers, and signatures of images.

use landfall_item::zip_package;
use landfall_model::{Digest, report};

/// Packages of providers of OpenTofu and Terraform.
pub(super) fn provider_package_seeds() -> Vec<Vec<u8>> {
    let text = b"text ".repeat(60);
    vec![
        zip_package(&[
            ("terraform-provider-a_v1.0.0", b"#!/bin/sh\n"),
            ("LICENSE", &text),
        ]),
        zip_package(&[]),
    ]
}

/// A lock file of OpenTofu and Terraform.
pub(super) fn provider_lock_file_seeds() -> Vec<Vec<u8>> {
    let file = "# comment\nprovider \"h.test/a/b\" {\n  version     = \"1.0.0\"\n  \
                constraints = \"~> 1.0\"\n  hashes = [\n    \"h1:x=\",\n    \"zh:00\",\n  ]\n}\n";
    vec![file.into()]
}

/// A payload of cosign with a log entry in its annotation, and a bundle.
pub(super) fn image_signature_seeds() -> Vec<Vec<u8>> {
    let image = Digest::sha256(b"image");
    let payload = format!(
        r#"{{"critical":{{"image":{{"docker-manifest-digest":"{image}"}},"type":"cosign container image signature"}}}}"#
    );
    let id = "ab".repeat(32);
    let entry = format!(
        r#"{{"SignedEntryTimestamp":"AAAA","Payload":{{"body":"eyJhcGlWZXJzaW9uIjoiMC4wLjEiLCJraW5kIjoiaGFzaGVkcmVrb3JkIn0=","integratedTime":1767268800,"logIndex":1,"logID":"{id}"}}}}"#
    );
    let bundle = r#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"certificate":{"rawBytes":"MIIB"},"tlogEntries":[]},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]}}"#;
    vec![
        format!("{payload}\0{entry}").into_bytes(),
        bundle.as_bytes().to_vec(),
    ]
}

/// A record of contacted hosts, as a store keeps it.
pub(super) fn egress_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"version":1,"hosts":[{"host":"quay.io","port":443,"scheme":"https","why":["manifests of quay.io"],"namedBy":[],"by":["pull"]},{"host":"fd00::7","port":80,"scheme":"http","why":[],"namedBy":["quay.io:443"],"by":["lock"]}]}"#
            .to_vec(),
    ]
}

/// A password file with two users.
pub(super) fn htpasswd_seeds() -> Vec<Vec<u8>> {
    vec![
        b"# users\nann:$2y$05$abcdefghijklmnopqrstuuKIXhHDCrPeGpm2pnh.Y3LWBhUBo6hJq\n\nbob:$2b$10$abcdefghijklmnopqrstuuKIXhHDCrPeGpm2pnh.Y3LWBhUBo6hJq\n"
            .to_vec(),
    ]
}

/// Configurations of containerd and podman.
pub(super) fn node_config_seeds() -> Vec<Vec<u8>> {
    vec![
        b"version = 3\nimports = [\"/etc/x/*.toml\"]\n[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = '/a:/b'\nmirrors = {\"docker.io\" = {endpoint = [\"http://m:5000\"]}}\n"
            .to_vec(),
        b"unqualified-search-registries = ['docker.io']\n[[registry]]\nlocation = \"docker.io\"\n[registries.search]\nregistries = []\n"
            .to_vec(),
    ]
}

/// An answer of a Git LFS server to a batch request.
pub(super) fn lfs_answer_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"transfer":"basic","objects":[{"oid":"aa","size":1,"actions":{"download":{"href":"https://h.test/a","header":{"X-A":"b","n":1}}}},{"oid":"bb","error":{"code":404,"message":"gone"}}]}"#
            .to_vec(),
    ]
}

/// A response of a token service.
pub(super) fn token_seeds() -> Vec<Vec<u8>> {
    vec![br#"{"token":"t","access_token":"a","expires_in":"300.5","issued_at":"x"}"#.to_vec()]
}

/// A CycloneDX and an SPDX document, and a statement around one.
pub(super) fn sbom_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"bomFormat":"CycloneDX","specVersion":"1.5","version":3,"serialNumber":"urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79","components":[{"name":"a"}]}"#
            .to_vec(),
        br#"{"predicateType":"https://spdx.dev/Document","predicate":{"spdxVersion":"SPDX-2.3","documentNamespace":"https://q.test/a","packages":[]}}"#
            .to_vec(),
    ]
}

/// Error responses of a registry, and of a proxy in front of one.
pub(super) fn error_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown\u001b[2J","detail":{"name":"a"}}]}"#.to_vec(),
        b"<html><head><title>502 Bad\n Gateway</title></head></html>".to_vec(),
    ]
}

/// Reads the bytes as the body of an error response. The message must be a single line without
/// control characters, which could move the cursor of a terminal.
pub(super) fn registry_error(bytes: &[u8]) {
    let message = report::one_line(&landfall_content::registry::fuzz(bytes));
    assert!(!message.contains(char::is_control), "{message:?}");
}
