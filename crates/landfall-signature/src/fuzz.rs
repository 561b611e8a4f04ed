//! The fuzz target of this crate.

use crate::file_signatures::{FileSignatures, SignedFile};
use crate::requirement::{SignatureRequirement, SignerIdentity};
use crate::signed_content::{SignatureDocument, SignatureFormat};
use crate::trust_root::TrustRoot;
use landfall_model::sign::SignatureTime;
use landfall_model::{Digest, TextPattern};
use sigstore_verify::trust_root::SIGSTORE_PRODUCTION_TRUSTED_ROOT;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Reads and verifies the bytes as a signature in every format. The part after the first zero byte
/// is the value of each of cosign's annotations except the certificate chain.
///
/// # Panics
/// If the bytes are accepted as a signature: no input can have a certificate of the public Sigstore
/// instance for this image.
pub fn image_signature(bytes: &[u8]) {
    static ROOT: LazyLock<Option<TrustRoot>> =
        LazyLock::new(|| TrustRoot::parse(SIGSTORE_PRODUCTION_TRUSTED_ROOT).ok());
    let requirement = SignatureRequirement {
        identities: vec![SignerIdentity {
            issuer: TextPattern::new("*"),
            identity: TextPattern::new("*"),
        }],
        trust_root: ROOT.clone(),
        ..SignatureRequirement::default()
    };
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let content = parts.next().unwrap_or_default();
    let annotation = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let annotations: BTreeMap<String, String> = [
        "dev.cosignproject.cosign/signature",
        "dev.sigstore.cosign/certificate",
        "dev.sigstore.cosign/bundle",
        "dev.sigstore.cosign/rfc3161timestamp",
    ]
    .map(|key| (key.to_owned(), annotation.to_string()))
    .into();
    let documents = [
        SignatureFormat::SimpleSigning,
        SignatureFormat::Envelope,
        SignatureFormat::Bundle,
    ]
    .map(|format| SignatureDocument::new(format, content.to_vec(), annotations.clone()));
    let digest = Digest::sha256(b"image");
    let verified = requirement.verify(&digest, &documents);
    assert!(verified.is_err(), "{verified:?}");
    let file = FileSignatures {
        file: SignedFile {
            digest: &digest,
            open: Box::new(|| Ok(Box::new(&b"image"[..]))),
        },
        documents: vec![content.to_vec(), annotation.into_owned().into_bytes()],
        log_entry: None,
    };
    let verified = requirement.verify_file(&[file], SignatureTime::Now);
    assert!(verified.is_err(), "{verified:?}");
}
