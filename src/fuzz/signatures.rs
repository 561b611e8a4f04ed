//! The target for signatures of images.

use landfall_model::Digest;

/// A payload of cosign with a log entry in its annotation, and a bundle.
pub(super) fn signature_seeds() -> Vec<Vec<u8>> {
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
