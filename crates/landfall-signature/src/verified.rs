//! Verified signatures of images, files and charts, as locks and reports contain them.

use crate::file_signatures::SignedFile;
use derive_more::Display;
use landfall_model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sigstore_verify::types::{HashAlgorithm, Sha256Hash};
use std::fmt;
use std::io::{self, Read};

/// A signature that was verified.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedSignature {
    /// Whether a key or an identity signed.
    pub by: SignerKind,
    /// The SHA-256 of the public key, `sha256:…`; or the name of a key of minisign, OpenSSH or
    /// OpenPGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The identity provider that the certificate names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The identity that the certificate names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When it was signed, according to a transparency log or timestamp authority; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The builder in the provenance, if the policy requires a provenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<String>,
    /// The source repository in the provenance, if the policy requires a provenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The kinds of signers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[display(rename_all = "lowercase")]
pub enum SignerKind {
    /// A public key of the policy.
    Key,
    /// An identity in a certificate of Fulcio.
    Keyless,
}

impl VerifiedSignature {
    /// A signature by the key with this fingerprint or name.
    pub fn by_key(fingerprint: String) -> VerifiedSignature {
        VerifiedSignature {
            by: SignerKind::Key,
            fingerprint: Some(fingerprint),
            issuer: None,
            identity: None,
            time: None,
            builder: None,
            source: None,
        }
    }

    /// Returns the fields with a value, in the order of the lock.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let by = Some(self.by.to_string());
        let all = [
            ("by", &by),
            ("fingerprint", &self.fingerprint),
            ("issuer", &self.issuer),
            ("identity", &self.identity),
            ("time", &self.time),
            ("builder", &self.builder),
            ("source", &self.source),
        ];
        all.into_iter()
            .filter_map(|(key, value)| Some((key, value.clone()?)))
            .collect()
    }
}

impl fmt::Display for VerifiedSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.fingerprint, &self.identity) {
            (Some(fingerprint), _) => write!(f, "key {fingerprint}")?,
            (None, Some(identity)) => f.write_str(identity)?,
            (None, None) => f.write_str("an unnamed signer")?,
        }
        match &self.builder {
            Some(builder) => write!(f, ", built by {builder}"),
            None => Ok(()),
        }
    }
}

/// Reads and writes the signatures of an item in a lock: a single one by itself, and several as a
/// list.
pub mod verified_list {
    use super::VerifiedSignature;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Reads one signature or a list of them.
    ///
    /// # Errors
    /// If a signature is malformed or has unknown fields.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        source: D,
    ) -> Result<Vec<VerifiedSignature>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum LockedSignatures {
            One(Box<VerifiedSignature>),
            Many(Vec<VerifiedSignature>),
        }
        Ok(match LockedSignatures::deserialize(source)? {
            LockedSignatures::One(one) => vec![*one],
            LockedSignatures::Many(many) => many,
        })
    }

    /// Writes a single signature by itself, and several as a list.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn serialize<S: Serializer>(
        verified: &[VerifiedSignature],
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match verified {
            [one] => one.serialize(out),
            _ => verified.serialize(out),
        }
    }
}

// The statement of a signature about an image or file: that the signer approves it, or how it was
// built.

/// The predicate type of cosign's signatures in bundles.
pub(crate) const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

const SLSA_02: &str = "https://slsa.dev/provenance/v0.2";

const SLSA_1: &str = "https://slsa.dev/provenance/v1";

/// The members of `externalParameters` in which builders name the source repository: GitHub, Google
/// Cloud Build (two), BuildKit, container-based builds of the SLSA project, and GitLab.
const SLSA_1_SOURCES: [&str; 6] = [
    "workflow/repository",
    "buildConfigSource/repository",
    "sourceToBuild/repository",
    "configSource/uri",
    "source/uri",
    "source",
];

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
                source: SLSA_1_SOURCES
                    .iter()
                    .find_map(|name| text(&format!("/buildDefinition/externalParameters/{name}"))),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_source_in_the_provenance_of_each_builder_is_found() {
        let subject = Digest::sha256(b"image");
        let source = |parameters: &Value| {
            let statement = json!({
                "subject": [{"digest": {"sha256": subject.hex()}}],
                "predicateType": SLSA_1,
                "predicate": {"buildDefinition": {"externalParameters": parameters}},
            });
            let read = SignedStatement::in_toto(statement.to_string().as_bytes(), &subject);
            match read.unwrap() {
                SignedStatement::Provenance(provenance) => provenance.source,
                other => panic!("{other:?}"),
            }
        };
        for parameters in [
            json!({"workflow": {"repository": "s", "ref": "r"}}),
            json!({"buildConfigSource": {"repository": "s"}}),
            json!({"sourceToBuild": {"repository": "s"}}),
            json!({"configSource": {"uri": "s", "path": "Dockerfile"}, "request": {}}),
            json!({"source": {"uri": "s"}}),
            json!({"source": "s", "entryPoint": "build"}),
        ] {
            assert_eq!(source(&parameters).as_deref(), Some("s"), "{parameters}");
        }
        assert_eq!(source(&json!({"source": {"digest": {}}})), None);
    }

    #[test]
    fn a_record_is_read_as_one_signature_or_a_list() {
        #[derive(Deserialize)]
        struct Locked {
            #[serde(deserialize_with = "verified_list::deserialize")]
            verified: Vec<VerifiedSignature>,
        }
        let one = r#"{"by":"key","fingerprint":"sha256:aa","time":"2026-01-01T12:00:00Z"}"#;
        let other = r#"{"by":"keyless","issuer":"i","identity":"j","builder":"b"}"#;
        let read = |text: String| {
            let locked: Result<Locked, _> = serde_json::from_str(&text);
            locked.map(|locked| locked.verified)
        };
        let single = read(format!(r#"{{"verified":{one}}}"#)).unwrap();
        assert_eq!(single[0].to_string(), "key sha256:aa");
        let both = read(format!(r#"{{"verified":[{one},{other}]}}"#)).unwrap();
        assert_eq!((&both[0], both.len()), (&single[0], 2));
        assert_eq!(both[1].to_string(), "j, built by b");
        let keys: Vec<&str> = both[1].fields().iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["by", "issuer", "identity", "builder"]);
        assert!(read(r#"{"verified":{"by":"key","other":1}}"#.into()).is_err());
    }
}
