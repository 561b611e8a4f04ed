//! What servers say, what a store remembers of them, and files of passwords.

use landfall_model::report;

/// What a store remembers of the hosts that were asked.
pub(super) fn egress_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"version":1,"hosts":[{"host":"quay.io","port":443,"scheme":"https","why":["manifests of quay.io"],"namedBy":[],"by":["pull"]},{"host":"fd00::7","port":80,"scheme":"http","why":[],"namedBy":["quay.io:443"],"by":["lock"]}]}"#
            .to_vec(),
    ]
}

/// Reads the bytes as such a record, and what is written of it again.
pub(super) fn egress(bytes: &[u8]) {
    crate::egress::fuzz(bytes);
}

/// A file of passwords.
pub(super) fn htpasswd_seeds() -> Vec<Vec<u8>> {
    vec![
        b"# users\nann:$2y$05$abcdefghijklmnopqrstuuKIXhHDCrPeGpm2pnh.Y3LWBhUBo6hJq\n\nbob:$2b$10$abcdefghijklmnopqrstuuKIXhHDCrPeGpm2pnh.Y3LWBhUBo6hJq\n"
            .to_vec(),
    ]
}

/// Reads the bytes as a file of passwords.
pub(super) fn htpasswd(bytes: &[u8]) {
    landfall_serve::fuzz(bytes);
}

/// Answers of registries and of what stands before them.
pub(super) fn error_seeds() -> Vec<Vec<u8>> {
    vec![
        br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown\u001b[2J","detail":{"name":"a"}}]}"#.to_vec(),
        b"<html><head><title>502 Bad\n Gateway</title></head></html>".to_vec(),
    ]
}

/// Reads the bytes as the body of a refusal: what is shown of it is one line.
pub(super) fn registry_error(bytes: &[u8]) {
    let shown = report::one_line(&landfall_content::registry::fuzz(bytes));
    assert!(!shown.contains(char::is_control), "{shown:?}");
}
