//! What a rule demands of an image, and whether signatures meet it.

use crate::crypto;
use crate::document::SignatureDocument;
use crate::pattern::TextPattern;
use crate::signed_content::SignedContent;
use crate::signer_key::SignerKey;
use crate::statement::{Provenance, SignedStatement};
use crate::trust_root::TrustRoot;
use crate::verified::{SignerKind, VerifiedSignature};
use jiff::Timestamp;
use landfall_model::Digest;
use sigstore_verify::{
    PublicKeyVerificationPolicy, SubjectAltName, VerificationPolicy, VerificationResult, Verifier,
};
use std::collections::BTreeSet;

/// How many reasons a message has.
const REASONS: usize = 3;

/// Why an image does not meet a requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFailure {
    /// It has no signature at all.
    #[error("no signature found; wanted one by {wanted}")]
    NotFound {
        /// The signers that the policy accepts.
        wanted: String,
    },
    /// None of its signatures meets the requirement.
    #[error("found {found}; wanted a signature by {wanted}")]
    Refused {
        /// Why each signature was refused.
        found: String,
        /// The signers that the policy accepts.
        wanted: String,
    },
}

/// A signature that meets a requirement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AcceptedSignature {
    pub(crate) verified: VerifiedSignature,
    /// When a transparency log recorded it, as the log has signed. Unlike `verified.time`, it is
    /// never that of a timestamp authority.
    pub(crate) log_time: Option<Timestamp>,
}

/// A signature by one of several signers, with conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignatureRequirement {
    pub(crate) keys: Vec<SignerKey>,
    pub(crate) identities: Vec<SignerIdentity>,
    pub(crate) trust_root: Option<TrustRoot>,
    pub(crate) provenance: Option<ProvenanceConditions>,
}

/// An identity in certificates of Fulcio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignerIdentity {
    pub(crate) issuer: TextPattern,
    pub(crate) identity: TextPattern,
}

/// Conditions on the provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProvenanceConditions {
    pub(crate) builder: Option<TextPattern>,
    pub(crate) source: Option<TextPattern>,
}

impl SignatureRequirement {
    /// Whether a signature that was verified earlier still meets the requirement.
    pub(crate) fn accepts(&self, verified: &VerifiedSignature) -> bool {
        let is_signer = match verified.by {
            SignerKind::Key => {
                let is_logged = self.trust_root.is_none() || verified.time.is_some();
                let mut keys = self.keys.iter().map(|key| Some(&key.fingerprint));
                is_logged && keys.any(|key| key == verified.fingerprint.as_ref())
            }
            SignerKind::Keyless => {
                let issuer = verified.issuer.as_deref().unwrap_or_default();
                let identity = verified.identity.as_deref().unwrap_or_default();
                self.identities
                    .iter()
                    .any(|signer| signer.matches(issuer, identity))
            }
        };
        let provenance = Provenance {
            builder: verified.builder.clone(),
            source: verified.source.clone(),
        };
        let conditions = self.provenance.as_ref();
        is_signer && conditions.is_none_or(|conditions| conditions.check(&provenance).is_ok())
    }

    /// The signatures among `documents` that meet the requirement for the image with the digest
    /// `subject`, sorted. There is at least one.
    pub(crate) fn verify(
        &self,
        subject: &Digest,
        documents: &[SignatureDocument],
    ) -> Result<Vec<AcceptedSignature>, SignatureFailure> {
        crypto::install();
        let verifier = self.trust_root.as_ref().map(TrustRoot::verifier);
        let mut accepted = Vec::new();
        let mut refused = BTreeSet::new();
        for document in documents {
            match self.verify_document(verifier.as_ref(), subject, document) {
                Ok(verified) => accepted.push(verified),
                Err(why) => drop(refused.insert(why)),
            }
        }
        if !accepted.is_empty() {
            accepted.sort();
            return Ok(accepted);
        }
        let wanted = self.wanted();
        if refused.is_empty() {
            return Err(SignatureFailure::NotFound { wanted });
        }
        let more = refused.len().saturating_sub(REASONS);
        let mut found: Vec<String> = refused.into_iter().take(REASONS).collect();
        if more > 0 {
            found.push(format!("{more} more"));
        }
        let found = found.join(", ");
        Err(SignatureFailure::Refused { found, wanted })
    }

    fn verify_document(
        &self,
        verifier: Option<&Verifier>,
        subject: &Digest,
        document: &SignatureDocument,
    ) -> Result<AcceptedSignature, String> {
        let content = SignedContent::read(document, subject)?;
        let provenance = match (&self.provenance, &content.statement) {
            (None, SignedStatement::Signature) => None,
            (Some(conditions), SignedStatement::Provenance(provenance)) => {
                conditions.check(provenance)?;
                Some(provenance)
            }
            (None, SignedStatement::Provenance(_)) => {
                return Err("a provenance, which is not a signature".into());
            }
            (Some(_), SignedStatement::Signature) => {
                return Err("a signature, which is not a provenance".into());
            }
            (_, SignedStatement::Other(kind)) => return Err(format!("an attestation {kind}")),
        };
        let mut accepted = if content.bundle.signing_certificate().is_some() {
            self.verify_identity(verifier, &content)?
        } else {
            self.verify_key(verifier, &content)?
        };
        if let Some(Provenance { builder, source }) = provenance {
            accepted.verified.builder.clone_from(builder);
            accepted.verified.source.clone_from(source);
        }
        Ok(accepted)
    }

    /// Verifies a signature without a certificate.
    fn verify_key(
        &self,
        verifier: Option<&Verifier>,
        content: &SignedContent,
    ) -> Result<AcceptedSignature, String> {
        let key = self
            .keys
            .iter()
            .find(|key| key.has_signed(&content.message, &content.signature))
            .ok_or("a signature by another key")?;
        let mut time = None;
        let mut log_time = None;
        if let (Some(verifier), Some(root)) = (verifier, &self.trust_root) {
            let mut policy = PublicKeyVerificationPolicy::new(key.der.clone());
            if !root.has_logs() {
                policy = policy.skip_tlog_unsafe();
            }
            let result = verifier
                .verify(content.artifact(), &content.bundle, &policy)
                .map_err(|error| format!("a signature by the key that does not verify: {error}"))?;
            time = signing_time(&result);
            log_time = result.integrated_time();
        }
        let verified = VerifiedSignature {
            by: SignerKind::Key,
            fingerprint: Some(key.fingerprint.clone()),
            issuer: None,
            identity: None,
            time,
            builder: None,
            source: None,
        };
        Ok(AcceptedSignature { verified, log_time })
    }

    /// Verifies a signature with a certificate.
    fn verify_identity(
        &self,
        verifier: Option<&Verifier>,
        content: &SignedContent,
    ) -> Result<AcceptedSignature, String> {
        let (Some(verifier), Some(root)) = (verifier, &self.trust_root) else {
            return Err("a keyless signature".into());
        };
        // identity and issuer may be patterns, so they are compared below
        let mut policy = VerificationPolicy::any_identity();
        if !root.has_certificate_logs() {
            policy = policy.skip_sct();
        }
        if !root.has_logs() {
            policy = policy.skip_tlog_unsafe();
        }
        let result = verifier
            .verify(content.artifact(), &content.bundle, &policy)
            .map_err(|error| format!("a keyless signature that does not verify: {error}"))?;
        let identity = result
            .identity()
            .map(SubjectAltName::as_str)
            .unwrap_or_default();
        let issuer = result.issuer().unwrap_or_default();
        if !result.certificate_verified() {
            return Err("a keyless signature whose certificate was not verified".into());
        }
        if !self
            .identities
            .iter()
            .any(|signer| signer.matches(issuer, identity))
        {
            return Err(format!("a signature by {identity} of {issuer}"));
        }
        let verified = VerifiedSignature {
            by: SignerKind::Keyless,
            fingerprint: None,
            issuer: Some(issuer.into()),
            identity: Some(identity.into()),
            time: signing_time(&result),
            builder: None,
            source: None,
        };
        Ok(AcceptedSignature {
            verified,
            log_time: result.integrated_time(),
        })
    }

    /// The signers and conditions, for messages.
    fn wanted(&self) -> String {
        let keys = self
            .keys
            .iter()
            .map(|key| format!("key {}", key.fingerprint));
        let identities = self
            .identities
            .iter()
            .map(|signer| format!("{} of {}", signer.identity, signer.issuer));
        let signers: Vec<String> = keys.chain(identities).collect();
        let conditions = match &self.provenance {
            Some(conditions) => conditions.to_string(),
            None => String::new(),
        };
        format!("{}{conditions}", signers.join(" or "))
    }
}

/// The earliest time that a log or timestamp authority confirmed.
fn signing_time(result: &VerificationResult) -> Option<String> {
    let times = result.verified_timestamps().iter().copied();
    times
        .chain(result.integrated_time())
        .min()
        .map(|time| time.to_string())
}

impl SignerIdentity {
    fn matches(&self, issuer: &str, identity: &str) -> bool {
        self.issuer.matches(issuer) && self.identity.matches(identity)
    }
}

impl ProvenanceConditions {
    fn check(&self, provenance: &Provenance) -> Result<(), String> {
        for (what, pattern, found) in [
            ("builder", &self.builder, &provenance.builder),
            ("source", &self.source, &provenance.source),
        ] {
            let Some(pattern) = pattern else { continue };
            let found = found.as_deref().unwrap_or("no value");
            if !pattern.matches(found) {
                return Err(format!("a provenance with the {what} {found}"));
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for ProvenanceConditions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(", of a provenance")?;
        if let Some(builder) = &self.builder {
            write!(f, " with the builder {builder}")?;
        }
        if let Some(source) = &self.source {
            write!(f, " with the source {source}")?;
        }
        Ok(())
    }
}
