//! Converts all formats of signatures into one: a Sigstore bundle and the content that it signs.

use crate::document::{SignatureDocument, SignatureFormat};
use crate::statement::SignedStatement;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::{Value, json};
use sigstore_verify::types::{
    Artifact, Bundle, DerCertificate, Sha256Hash, SignatureBytes, SignatureContent,
};

/// The annotations of cosign.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const CHAIN: &str = "dev.sigstore.cosign/chain";
const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";
const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";

const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// A signature that claims to be about the right image. The signature itself is not verified yet.
pub(crate) struct SignedContent {
    /// The signature with its certificate, log entries and timestamps.
    pub(crate) bundle: Bundle,
    pub(crate) signature: SignatureBytes,
    /// The bytes that are signed.
    pub(crate) message: Vec<u8>,
    /// The digest of the image if the signature is over a statement about it; `None` if it is over
    /// cosign's payload.
    subject: Option<Sha256Hash>,
    /// The statement of the signature about the image.
    pub(crate) statement: SignedStatement,
}

impl SignedContent {
    /// Reads `document`. Fails with a text for people if it is malformed, or not about the image
    /// with the digest `subject`.
    pub(crate) fn read(
        document: &SignatureDocument,
        subject: &Digest,
    ) -> Result<SignedContent, String> {
        let bundle = match document.format {
            SignatureFormat::SimpleSigning => simple_signing_bundle(document)?,
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
        let (signature, message, statement, is_statement) = match &bundle.content {
            SignatureContent::DsseEnvelope(envelope) => {
                let statement = SignedStatement::in_toto(envelope.payload.as_bytes(), subject)?;
                (
                    envelope.signature.sig.clone(),
                    envelope.pae(),
                    statement,
                    true,
                )
            }
            SignatureContent::MessageSignature(signed)
                if document.format == SignatureFormat::SimpleSigning =>
            {
                let statement = SignedStatement::simple_signing(&document.bytes, subject)?;
                let message = document.bytes.clone();
                (signed.signature.clone(), message, statement, false)
            }
            _ => return Err("a bundle with the signature of a file, not of an image".into()),
        };
        let subject = Sha256Hash::from_hex(&subject.hex())
            .map_err(|_| format!("{subject} is not a SHA-256 digest"))?;
        Ok(SignedContent {
            bundle,
            signature,
            message,
            subject: is_statement.then_some(subject),
            statement,
        })
    }

    /// Returns the signed content in the form that `sigstore-verify` expects.
    pub(crate) fn artifact(&self) -> Artifact<'_> {
        match &self.subject {
            Some(digest) => (*digest).into(),
            None => self.message.as_slice().into(),
        }
    }
}

/// The bundle for a payload whose signature is in the annotations.
fn simple_signing_bundle(document: &SignatureDocument) -> Result<Bundle, String> {
    let signature = document
        .annotations
        .get(SIGNATURE)
        .ok_or("a payload without a signature in its annotations")?;
    let digest = Digest::sha256(&document.bytes);
    let digest = Sha256Hash::from_hex(&digest.hex()).map_err(|error| error.to_string())?;
    let signed = json!({
        "messageDigest": {"algorithm": "SHA2_256", "digest": digest.to_base64()},
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
    // version 0.1 requires the promise of a log, and 0.2 its proof; annotations contain no proof
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
