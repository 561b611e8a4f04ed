//! What is signed: a statement about an image or file, a payload of cosign, or a file.

use crate::file_signatures::SignedFile;
use landfall_model::Digest;
use sigstore_verify::types::{HashAlgorithm, Sha256Hash};
use std::io::{self, Read};

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
