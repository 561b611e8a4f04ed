//! Converts all formats of signatures into one: a Sigstore bundle and the content that it signs.

use crate::signing_key::BEGIN_CERTIFICATE;
use crate::verified::{SignatureSubject, SignedMessage, SignedStatement, sha256_hash};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::{Digest, from_json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sigstore_verify::types::{
    Bundle, DerCertificate, HashAlgorithm, Sha256Hash, SignatureBytes, SignatureContent,
};
use sigstore_verify::{Policy, VerificationResult, Verifier};
use std::collections::BTreeMap;

/// A signature that claims to be about the right image or file. The signature itself is not
/// verified yet. The digest of a file is compared only if a statement names it.
pub(crate) struct SignedContent<'a> {
    /// The signature with its certificate, log entries and timestamps.
    pub(crate) bundle: Bundle,
    pub(crate) signature: SignatureBytes,
    /// What is signed.
    pub(crate) message: SignedMessage<'a>,
    /// The statement of the signature about the image or file.
    pub(crate) statement: SignedStatement,
}

impl<'a> SignedContent<'a> {
    /// Reads `document`. Fails with a message if it is malformed, or not about `subject`.
    pub(crate) fn read(
        document: &SignatureDocument,
        subject: &SignatureSubject<'a>,
    ) -> Result<SignedContent<'a>, String> {
        let digest = subject.digest();
        let bundle = match document.format {
            SignatureFormat::SimpleSigning => {
                message_bundle(document, &Digest::sha256(&document.bytes))?
            }
            SignatureFormat::Detached => message_bundle(document, digest)?,
            SignatureFormat::Envelope => {
                let envelope: Value = serde_json::from_slice(&document.bytes)
                    .map_err(|error| malformed("DSSE envelope", error))?;
                parse(&bundle_json(document, "dsseEnvelope", envelope)?)?
            }
            SignatureFormat::Bundle => {
                let text = std::str::from_utf8(&document.bytes)
                    .map_err(|error| malformed("bundle", error))?;
                Bundle::from_json(text).map_err(|error| malformed("bundle", error))?
            }
        };
        let is_simple = document.format == SignatureFormat::SimpleSigning;
        let (signature, message, statement) = match (&bundle.content, subject) {
            (SignatureContent::DsseEnvelope(envelope), _) => {
                let statement = SignedStatement::in_toto(envelope.payload.as_bytes(), digest)?;
                let message = SignedMessage::Statement {
                    bytes: envelope.pae(),
                    subject: sha256_hash(digest)?,
                };
                (envelope.signature.sig.clone(), message, statement)
            }
            (SignatureContent::MessageSignature(signed), SignatureSubject::Image(_))
                if is_simple =>
            {
                let statement = SignedStatement::simple_signing(&document.bytes, digest)?;
                let message = SignedMessage::Payload(document.bytes.clone());
                (signed.signature.clone(), message, statement)
            }
            (SignatureContent::MessageSignature(signed), SignatureSubject::File(file)) => {
                let signed_digest = signed.message_digest.as_ref();
                let message = SignedMessage::File {
                    file,
                    algorithm: signed_digest.map(|digest| digest.algorithm),
                };
                (
                    signed.signature.clone(),
                    message,
                    SignedStatement::Signature,
                )
            }
            _ => return Err("a bundle with the signature of a file, not of an image".into()),
        };
        Ok(SignedContent {
            bundle,
            signature,
            message,
            statement,
        })
    }

    /// Verifies the signature by `policy`. The error is a message.
    pub(crate) fn verify(
        &self,
        verifier: &Verifier,
        policy: &impl Policy,
    ) -> Result<VerificationResult, String> {
        let result = match &self.message {
            SignedMessage::Statement { subject, .. } => {
                verifier.verify(*subject, &self.bundle, policy)
            }
            SignedMessage::Payload(bytes) => verifier.verify(bytes, &self.bundle, policy),
            SignedMessage::File {
                file,
                algorithm: Some(HashAlgorithm::Sha2256),
            } => verifier.verify(sha256_hash(file.digest)?, &self.bundle, policy),
            SignedMessage::File { file, .. } => {
                let content = file.content()?;
                verifier.verify_reader(content, &self.bundle, policy)
            }
        };
        result.map_err(|error| error.to_string())
    }
}

/// Builds a bundle from the signature in the annotations of `document`. `digest` is that of the
/// signed message.
fn message_bundle(document: &SignatureDocument, digest: &Digest) -> Result<Bundle, String> {
    let signature = document
        .annotations
        .get(SIGNATURE)
        .ok_or("a payload without a signature in its annotations")?;
    let signed = json!({
        "messageDigest": {"algorithm": "SHA2_256", "digest": sha256_hash(digest)?.to_base64()},
        "signature": signature,
    });
    parse(&bundle_json(document, "messageSignature", signed)?)
}

/// A bundle with `content`, and certificate, log entry and timestamp from the annotations.
fn bundle_json(
    document: &SignatureDocument,
    content_key: &str,
    content: Value,
) -> Result<Value, String> {
    let annotation = |key: &str| {
        document
            .annotations
            .get(key)
            .filter(|text| !text.is_empty())
    };
    let mut material = match annotation(CERTIFICATE) {
        None => json!({"publicKey": {"hint": ""}}),
        Some(leaf) => {
            let chain = annotation(CHAIN).map(String::as_str).unwrap_or_default();
            let certificates = pem_certificates(leaf)?
                .into_iter()
                .chain(pem_certificates(chain)?)
                .map(|certificate| json!({"rawBytes": certificate.to_base64()}))
                .collect::<Vec<_>>();
            json!({"x509CertificateChain": {"certificates": certificates}})
        }
    };
    // Version 0.2 requires a log entry to have a proof. Entries in annotations have only a
    // promise, which version 0.1 requires.
    let mut version = "0.2";
    if let Some(text) = annotation(LOG_ENTRY) {
        version = "0.1";
        material["tlogEntries"] = json!([log_entry(text)?]);
    }
    if let Some(text) = annotation(TIMESTAMP) {
        let timestamp: TimestampAnnotation =
            serde_json::from_str(text).map_err(|error| malformed("timestamp", error))?;
        let timestamps = json!([{"signedTimestamp": timestamp.signed}]);
        material["timestampVerificationData"] = json!({"rfc3161Timestamps": timestamps});
    }
    Ok(json!({
        "mediaType": format!("application/vnd.dev.sigstore.bundle+json;version={version}"),
        "verificationMaterial": material,
        content_key: content,
    }))
}

fn parse(bundle: &Value) -> Result<Bundle, String> {
    Bundle::from_json(&bundle.to_string()).map_err(|error| malformed("signature", error))
}

fn pem_certificates(text: &str) -> Result<Vec<DerCertificate>, String> {
    text.split(BEGIN_CERTIFICATE)
        .skip(1)
        .map(|body| {
            DerCertificate::from_pem(&format!("{BEGIN_CERTIFICATE}{body}"))
                .map_err(|error| malformed("certificate", error))
        })
        .collect()
}

#[derive(Deserialize)]
struct TimestampAnnotation {
    #[serde(rename = "SignedRFC3161Timestamp")]
    signed: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LogAnnotation {
    signed_entry_timestamp: String,
    payload: LogPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogPayload {
    body: String,
    integrated_time: i64,
    log_index: i64,
    #[serde(rename = "logID")]
    log_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogBody {
    api_version: String,
    kind: String,
}

/// The log entry of a bundle, from the annotation that older signatures have.
fn log_entry(text: &str) -> Result<Value, String> {
    let entry: LogAnnotation =
        serde_json::from_str(text).map_err(|error| malformed("log entry", error))?;
    let LogPayload {
        body,
        integrated_time,
        log_index,
        log_id,
    } = entry.payload;
    let decoded = STANDARD
        .decode(&body)
        .map_err(|error| malformed("log entry", error))?;
    let kind: LogBody =
        serde_json::from_slice(&decoded).map_err(|error| malformed("log entry", error))?;
    let log_id = Sha256Hash::from_hex(&log_id).map_err(|error| malformed("log entry", error))?;
    Ok(json!({
        "logIndex": log_index.to_string(),
        "logId": {"keyId": log_id.to_base64()},
        "kindVersion": {"kind": kind.kind, "version": kind.api_version},
        "integratedTime": integrated_time.to_string(),
        "inclusionPromise": {"signedEntryTimestamp": entry.signed_entry_timestamp},
        "canonicalizedBody": body,
    }))
}

fn malformed(what: &str, error: impl std::fmt::Display) -> String {
    format!("a malformed {what} ({error})")
}

// The annotations in which cosign stores a signature with its certificates, log entry and
// timestamp.

pub(crate) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
pub(crate) const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
pub(crate) const CHAIN: &str = "dev.sigstore.cosign/chain";
pub(crate) const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";
pub(crate) const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";

// Signatures and attestations as registries store them, and signatures of files.

/// The media type of the payloads of cosign's signatures.
pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The media type of DSSE envelopes, as in cosign's `.att` tags.
const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
/// The prefix of the media types of Sigstore bundles.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// A signature or attestation: a layer of a manifest that refers to an image, or the signature of a
/// file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureDocument {
    pub(crate) format: SignatureFormat,
    /// The bytes of the layer.
    pub(crate) bytes: Vec<u8>,
    /// The annotations of the layer's descriptor.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The formats of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureFormat {
    /// The payload of cosign, whose signature is in annotations.
    SimpleSigning,
    /// A DSSE envelope, whose certificate is in annotations.
    Envelope,
    /// A Sigstore bundle.
    Bundle,
    /// The signature of a file. The signature is in an annotation, and the document has no bytes.
    Detached,
}

impl SignatureFormat {
    /// Returns the format of layers with this media type. `None` if they are not signatures.
    pub fn of(media_type: &str) -> Option<SignatureFormat> {
        match media_type {
            SIMPLE_SIGNING => Some(SignatureFormat::SimpleSigning),
            DSSE => Some(SignatureFormat::Envelope),
            _ if media_type.starts_with(BUNDLE) => Some(SignatureFormat::Bundle),
            _ => None,
        }
    }
}

impl SignatureDocument {
    /// A layer in `format`, with the annotations of its descriptor.
    pub fn new(
        format: SignatureFormat,
        bytes: Vec<u8>,
        annotations: BTreeMap<String, String>,
    ) -> SignatureDocument {
        SignatureDocument {
            format,
            bytes,
            annotations,
        }
    }
}

// Transparency log entries for signatures that are published without their entry, such as those of
// Kubernetes' release binaries: the query to the log, and the part of its answer that locks keep.

/// The path of Rekor's search for an entry (version 1 of its API).
const SEARCH: &str = "/api/v1/log/entries/retrieve";

/// An entry of a transparency log, without its body, which is computed from the file and its
/// signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// The position in the log.
    pub index: u64,
    /// When the log added the entry, in seconds since 1970.
    pub time: i64,
    /// The SHA-256 of the log's public key, in hex.
    pub log: String,
    /// The log's signature of the entry, in base64.
    pub promise: String,
}

/// The body of a log entry: a signature of a file (`hashedrekord` 0.0.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedSignature(Value);

/// A query that asks a transparency log for an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// The URL to which the query is sent, by POST.
    pub url: String,
    body: LoggedSignature,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundEntry {
    body: String,
    integrated_time: i64,
    log_index: u64,
    #[serde(rename = "logID")]
    log_id: String,
    verification: EntryVerification,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryVerification {
    signed_entry_timestamp: String,
}

impl LoggedSignature {
    /// The body for a signature of a file. `digest` is the SHA-256 of the file in hex, `signature`
    /// is in base64, and `verifier` is the certificate or key in PEM.
    pub(crate) fn new(digest: &str, signature: &str, verifier: &str) -> LoggedSignature {
        LoggedSignature(json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": digest}},
                "signature": {
                    "content": signature,
                    "publicKey": {"content": STANDARD.encode(verifier)},
                },
            },
        }))
    }

    /// The bytes that the log has signed, in base64. The members have the order of RFC 8785.
    fn base64(&self) -> String {
        STANDARD.encode(self.0.to_string())
    }

    /// Returns `entry` in the form in which cosign stores it next to signatures of images.
    pub(crate) fn annotation(&self, entry: &LogEntry) -> String {
        let annotation = json!({
            "SignedEntryTimestamp": entry.promise,
            "Payload": {
                "body": self.base64(),
                "integratedTime": entry.time,
                "logIndex": entry.index,
                "logID": entry.log,
            },
        });
        annotation.to_string()
    }
}

impl LogQuery {
    /// The query that asks the log at `base` for an entry with this body.
    pub(crate) fn new(base: &str, body: LoggedSignature) -> LogQuery {
        LogQuery {
            url: format!("{}{SEARCH}", base.trim_end_matches('/')),
            body,
        }
    }

    /// Returns the JSON document to send.
    pub fn request(&self) -> String {
        json!({"entries": [self.body.0]}).to_string()
    }

    /// Finds the entry in the log's answer by its body; the log's signature is not verified.
    /// Returns `None` if the log has no such entry.
    ///
    /// # Errors
    /// If `answer` is not the answer of a log.
    pub fn find(&self, answer: &[u8]) -> Result<Option<LogEntry>, String> {
        let body = self.body.base64();
        let entries: Vec<BTreeMap<String, FoundEntry>> = from_json(answer)
            .map_err(|error| format!("{}: not the answer of a log: {error}", self.url))?;
        let mut entries = entries.into_iter().flat_map(BTreeMap::into_values);
        let found = entries.find(|entry| entry.body == body);
        Ok(found.map(|entry| LogEntry {
            index: entry.log_index,
            time: entry.integrated_time,
            log: entry.log_id,
            promise: entry.verification.signed_entry_timestamp,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_entry_with_the_same_body_is_found_in_an_answer() {
        let query = LogQuery::new(
            "https://rekor.test/",
            LoggedSignature::new("aa", "c2ln", "PEM"),
        );
        assert_eq!(query.url, "https://rekor.test/api/v1/log/entries/retrieve");
        let body: Value = serde_json::from_str(&query.request()).unwrap();
        let body = STANDARD.encode(body["entries"][0].to_string());
        let answer = |body: &str| {
            let entry = json!({
                "body": body, "integratedTime": 7, "logID": "ab", "logIndex": 3,
                "verification": {"signedEntryTimestamp": "cHJvbWlzZQ==", "inclusionProof": {}},
            });
            json!([{"24296fb2": entry}]).to_string()
        };
        let found = query.find(answer(&body).as_bytes()).unwrap();
        let expected = LogEntry {
            index: 3,
            time: 7,
            log: "ab".into(),
            promise: "cHJvbWlzZQ==".into(),
        };
        assert_eq!(found, Some(expected));
        assert_eq!(query.find(answer("b3RoZXI=").as_bytes()), Ok(None));
        assert_eq!(query.find(b"[]"), Ok(None));
        assert!(
            query
                .find(b"<html>")
                .unwrap_err()
                .starts_with("https://rekor.test/")
        );
    }
}
