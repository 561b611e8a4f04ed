//! Targets for responses of servers, the record of contacted hosts, evidence logs, and password
//! files.

use landfall_model::report;

/// A record of contacted hosts, as a store keeps it.
pub(super) fn egress_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"version":1,"hosts":[{"host":"quay.io","port":443,"scheme":"https","why":["manifests of quay.io"],"namedBy":[],"by":["pull"]},{"host":"fd00::7","port":80,"scheme":"http","why":[],"namedBy":["quay.io:443"],"by":["lock"]}]}"#
            .to_vec(),
    ]
}

/// Reads the bytes as a record of hosts, writes it, and reads the result.
pub(super) fn egress(bytes: &[u8]) {
    crate::egress::fuzz(bytes);
}

/// An evidence log of three records, the second after an incomplete line.
pub(super) fn evidence_seeds() -> Vec<Vec<u8>> {
    vec![crate::evidence::fuzz_seed()]
}

/// Reads the bytes as an evidence log, and also their first half.
pub(super) fn evidence(bytes: &[u8]) {
    crate::evidence::fuzz(bytes);
}

/// A password file with two users.
pub(super) fn htpasswd_seeds() -> Vec<Vec<u8>> {
    vec![
        b"# users\nann:$2y$05$abcdefghijklmnopqrstuuKIXhHDCrPeGpm2pnh.Y3LWBhUBo6hJq\n\nbob:$2b$10$abcdefghijklmnopqrstuuKIXhHDCrPeGpm2pnh.Y3LWBhUBo6hJq\n"
            .to_vec(),
    ]
}

/// Reads the bytes as a password file.
pub(super) fn htpasswd(bytes: &[u8]) {
    landfall_serve::fuzz(bytes);
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

/// Checks the bytes as the configuration of a node.
pub(super) fn node_config(bytes: &[u8]) {
    crate::doctor::fuzz_node_config(bytes);
}

/// An answer of a Git LFS server to a batch request.
pub(super) fn lfs_answer_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"transfer":"basic","objects":[{"oid":"aa","size":1,"actions":{"download":{"href":"https://h.test/a","header":{"X-A":"b","n":1}}}},{"oid":"bb","error":{"code":404,"message":"gone"}}]}"#
            .to_vec(),
    ]
}

/// Reads the bytes as an answer of a Git LFS server.
pub(super) fn lfs_answer(bytes: &[u8]) {
    landfall_content::upstream::fuzz(bytes);
}

/// A response of a token service.
pub(super) fn token_seeds() -> Vec<Vec<u8>> {
    vec![br#"{"token":"t","access_token":"a","expires_in":"300.5","issued_at":"x"}"#.to_vec()]
}

/// Reads the bytes as the response of a token service.
pub(super) fn token(bytes: &[u8]) {
    landfall_content::registry::fuzz_token(bytes);
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

/// Reads the bytes as a document that is attached to an image.
pub(super) fn sbom(bytes: &[u8]) {
    landfall_bundle::sbom::fuzz(bytes);
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
