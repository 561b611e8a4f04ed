//! Converts all formats of signatures into one: a Sigstore bundle and the content that it signs.

use crate::annotations::{CERTIFICATE, CHAIN, LOG_ENTRY, SIGNATURE, TIMESTAMP};
use crate::document::{SignatureDocument, SignatureFormat};
use crate::pem::BEGIN_CERTIFICATE;
use crate::signed_message::{SignatureSubject, SignedMessage, sha256_hash};
use crate::statement::SignedStatement;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::{Value, json};
use sigstore_verify::types::{
    Bundle, DerCertificate, HashAlgorithm, Sha256Hash, SignatureBytes, SignatureContent,
};
use sigstore_verify::{Policy, VerificationResult, Verifier};

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
