//! Verifies the signatures of a file by the rules of `verify:`. The signatures are read from the
//! file's sidecars. They are verified when the file is locked, and later from a bundle or store
//! alone.

use super::checksum;
use super::locked::{LockedFile, LockedSidecar};
use crate::image::ReadError;
use landfall_content::{BlobRead, ContentError, digest_of};
use landfall_model::sign::SignatureTime;
use landfall_model::{Algorithm, Descriptor, Digest, Limits, media_type};
use landfall_signature::{
    FileSignatures, RuleSubject, SignatureFailure, SignaturePolicy, SignedFile, VerifiedSignature,
};
use std::io::{self, Read};

/// The reason why a file, or a chart of an HTTP repository, does not meet a policy.
#[derive(Debug, thiserror::Error)]
pub enum FileSignatureError {
    /// A signature or checksum file cannot be read.
    #[error("a signature cannot be read: {0}")]
    Read(#[from] ReadError),
    /// The signed checksum file lists no digest of this file, or a different one.
    #[error("its signed checksum file {0}")]
    Checksum(String),
    /// The verification was interrupted.
    #[error("its signatures were not verified: {0}")]
    Interrupted(String),
    /// The signatures do not meet the policy.
    #[error(transparent)]
    Policy(#[from] SignatureFailure),
}

impl From<ContentError> for FileSignatureError {
    fn from(error: ContentError) -> FileSignatureError {
        FileSignatureError::Read(error.into())
    }
}

impl LockedFile {
    /// Verifies the signatures of the file, which are read from `blobs`. Returns those that meet
    /// the policy; empty if the file needs none. OpenPGP signatures must be valid at `time`.
    ///
    /// # Errors
    /// If the file does not meet the policy, or a signature cannot be read.
    pub fn verified_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &dyn BlobRead,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, FileSignatureError> {
        if !policy.applies_to(self.rule_subject()) {
            return Ok(Vec::new());
        }
        let signatures = self.signatures(blobs)?;
        Ok(policy.verify_file(self.rule_subject(), &signatures, time)?)
    }

    /// The URLs by which rules match the file: clients get it under each of them.
    pub fn rule_subject(&self) -> RuleSubject {
        let urls = std::iter::once(&self.name).chain(&self.also);
        RuleSubject::Addresses(urls.cloned().collect())
    }

    /// The checksum file, if the manifest names one.
    pub(super) fn checksum_sidecar(&self) -> Option<&LockedSidecar> {
        self.sidecars
            .iter()
            .find(|sidecar| self.checksum.as_ref() == Some(&sidecar.url))
    }

    /// The signature files of the checksum file, and those of the file itself. The URL of a
    /// signature of the checksum file begins with the URL of the checksum file.
    pub(super) fn signatures<'a>(
        &'a self,
        blobs: &'a dyn BlobRead,
    ) -> Result<Vec<FileSignatures<'a>>, FileSignatureError> {
        let checksum = self.checksum_sidecar();
        let mut own = Vec::new();
        let mut about_checksum = Vec::new();
        for sidecar in &self.sidecars {
            if checksum.is_some_and(|checksum| checksum.url == sidecar.url) {
                continue;
            }
            let bytes = read_sidecar(sidecar, blobs)?;
            if checksum.is_some_and(|checksum| sidecar.url.starts_with(&checksum.url)) {
                about_checksum.push(bytes);
            } else {
                own.push(bytes);
            }
        }
        let mut found = Vec::new();
        if let Some(checksum) = checksum.filter(|_| !about_checksum.is_empty()) {
            self.check_listed(checksum, blobs)?;
            found.push(self.about(&checksum.digest, about_checksum, blobs));
        }
        if !own.is_empty() {
            found.push(self.about(&self.digest, own, blobs));
        }
        Ok(found)
    }

    fn about<'a>(
        &'a self,
        digest: &'a Digest,
        documents: Vec<Vec<u8>>,
        blobs: &'a dyn BlobRead,
    ) -> FileSignatures<'a> {
        let open = move || -> io::Result<Box<dyn Read + Send>> {
            blobs.open(digest, 0).map_err(io::Error::other)
        };
        FileSignatures {
            file: SignedFile {
                digest,
                open: Box::new(open),
            },
            documents,
            log_entry: self.log_entry.as_ref(),
        }
    }

    /// Checks that a checksum file contains the digest of the file. Otherwise a signature of the
    /// checksum file says nothing about the file.
    fn check_listed(
        &self,
        checksum: &LockedSidecar,
        blobs: &dyn BlobRead,
    ) -> Result<(), FileSignatureError> {
        let text = read_sidecar(checksum, blobs)?;
        let listed = checksum::find(&checksum::text_of(&text), &self.name)
            .map_err(FileSignatureError::Checksum)?;
        let found = match listed.algorithm() {
            Algorithm::Sha256 => self.digest.clone(),
            other @ Algorithm::Sha512 => {
                let mut content = blobs.open(&self.digest, 0)?;
                digest_of(&mut content, other).map_err(|error| {
                    FileSignatureError::Checksum(format!("cannot be checked: {error}"))
                })?
            }
        };
        if listed == found {
            return Ok(());
        }
        let why = format!("has {listed}, but the file is {found}");
        Err(FileSignatureError::Checksum(why))
    }
}

/// Reads a sidecar into memory. The size in the lock is untrusted, so it is bounded first.
pub(crate) fn read_sidecar(
    sidecar: &LockedSidecar,
    blobs: &dyn BlobRead,
) -> Result<Vec<u8>, ReadError> {
    if sidecar.size > Limits::default().document_bytes as u64 {
        return Err(ReadError::TooLarge(sidecar.digest.clone()));
    }
    Ok(blobs.read(&descriptor(sidecar))?)
}

/// The descriptor of a sidecar as a layer.
pub(super) fn descriptor(sidecar: &LockedSidecar) -> Descriptor {
    Descriptor {
        digest: sidecar.digest.clone(),
        size: sidecar.size,
        media_type: media_type::OCTETS.into(),
    }
}
