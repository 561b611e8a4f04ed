//! The statement of a signature about an image or file: that the signer approves it, or how it was
//! built.

use crate::file_signatures::SignedFile;
use landfall_model::Digest;
use serde::Deserialize;
use serde_json::Value;
use sigstore_verify::types::{HashAlgorithm, Sha256Hash};
use std::io::{self, Read};

/// The predicate type of cosign's signatures in bundles.
pub(crate) const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
const SLSA_02: &str = "https://slsa.dev/provenance/v0.2";
const SLSA_1: &str = "https://slsa.dev/provenance/v1";

/// The statement of a signature about an image or file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SignedStatement {
    /// The signer approves the image or file, and states nothing else.
    Signature,
    /// The provenance: how the image or file was built.
    Provenance(Provenance),
    /// Another statement, with the type of its predicate.
    Other(String),
}

/// The builder and the source repository that a provenance names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Provenance {
    pub(crate) builder: Option<String>,
    pub(crate) source: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InToto {
    subject: Vec<StatementSubject>,
    predicate_type: String,
    #[serde(default)]
    predicate: Value,
}

#[derive(Deserialize)]
struct StatementSubject {
    /// Other subjects may have none.
    #[serde(default)]
    digest: Value,
}

impl SignedStatement {
    /// Reads cosign's payload, which must name the digest `subject`.
    pub(crate) fn simple_signing(
        payload: &[u8],
        subject: &Digest,
    ) -> Result<SignedStatement, String> {
        let payload: Value = serde_json::from_slice(payload)
            .map_err(|error| format!("a malformed payload ({error})"))?;
        let digest = payload["critical"]["image"]["docker-manifest-digest"]
            .as_str()
            .unwrap_or_default();
        check_digest(digest == subject.to_string(), digest)?;
        Ok(SignedStatement::Signature)
    }

    /// Reads an in-toto statement, which must have the digest `subject` among its subjects.
    pub(crate) fn in_toto(payload: &[u8], subject: &Digest) -> Result<SignedStatement, String> {
        let InToto {
            subject: subjects,
            predicate_type,
            predicate,
        } = serde_json::from_slice(payload)
            .map_err(|error| format!("a malformed in-toto statement ({error})"))?;
        let algorithm = subject.algorithm().as_str();
        let digests: Vec<&str> = subjects
            .iter()
            .filter_map(|subject| subject.digest[algorithm].as_str())
            .collect();
        let is_subject = digests.contains(&subject.hex().as_str());
        check_digest(is_subject, digests.first().unwrap_or(&""))?;
        let text = |pointer: &str| predicate.pointer(pointer)?.as_str().map(str::to_owned);
        Ok(match predicate_type.as_str() {
            COSIGN_SIGN => SignedStatement::Signature,
            SLSA_02 => SignedStatement::Provenance(Provenance {
                builder: text("/builder/id"),
                source: text("/invocation/configSource/uri"),
            }),
            SLSA_1 => SignedStatement::Provenance(Provenance {
                builder: text("/runDetails/builder/id"),
                // GitHub's builders, and Google Cloud Build
                source: text("/buildDefinition/externalParameters/workflow/repository").or_else(
                    || text("/buildDefinition/externalParameters/buildConfigSource/repository"),
                ),
            }),
            _ => SignedStatement::Other(predicate_type),
        })
    }
}

fn check_digest(is_subject: bool, found: &str) -> Result<(), String> {
    if is_subject {
        Ok(())
    } else {
        Err(format!("a signature of another digest ({found})"))
    }
}

/// What a signature has to be about.
pub(crate) enum SignatureSubject<'a> {
    /// The image with this digest.
    Image(&'a Digest),
    /// This file.
    File(&'a SignedFile<'a>),
}

/// What is signed.
pub(crate) enum SignedMessage<'a> {
    /// A statement about an image or file with the digest `subject`.
    Statement { bytes: Vec<u8>, subject: Sha256Hash },
    /// A payload of cosign, which names an image.
    Payload(Vec<u8>),
    /// A file. If the signature names a digest, `algorithm` is the algorithm of that digest.
    File {
        file: &'a SignedFile<'a>,
        algorithm: Option<HashAlgorithm>,
    },
}

impl SignatureSubject<'_> {
    /// The SHA-256 of the image or file.
    pub(crate) fn digest(&self) -> &Digest {
        match self {
            SignatureSubject::Image(digest) => digest,
            SignatureSubject::File(file) => file.digest,
        }
    }
}

impl SignedFile<'_> {
    /// Opens the content. The error is a message.
    pub(crate) fn content(&self) -> Result<Box<dyn Read + Send>, String> {
        (self.open)().map_err(|error| unreadable(&error))
    }
}

/// The message for content that cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> String {
    format!("the signed content cannot be read: {error}")
}

/// The digest in the form that `sigstore-verify` expects. The error is a message.
pub(crate) fn sha256_hash(digest: &Digest) -> Result<Sha256Hash, String> {
    Sha256Hash::from_hex(&digest.hex()).map_err(|_| format!("{digest} is not a SHA-256 digest"))
}
