//! Signatures and attestations as registries store them, and signatures of files.

use std::collections::BTreeMap;

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
