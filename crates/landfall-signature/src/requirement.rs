//! The requirement of a rule for an image, file or chart, and whether signatures meet it.

use crate::signed_content::{SignatureDocument, SignedContent};
use crate::signing_key::SignerKey;
use crate::trust_root::{self, TrustRoot};
use crate::verified::{
    Provenance, SignatureSubject, SignedStatement, SignerKind, VerifiedSignature,
};
use jiff::Timestamp;
use landfall_model::document::ProvenanceRule;
use landfall_model::sign::{FileKey, GitSigners};
use landfall_model::{Digest, TextPattern};
use sigstore_verify::{
    PublicKeyVerificationPolicy, SubjectAltName, VerificationPolicy, VerificationResult, Verifier,
};
use std::collections::BTreeSet;
use std::fmt;

/// The maximum number of reasons in a message.
const REASONS: usize = 3;

/// Why an image, file or chart does not meet a requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFailure {
    /// It has no signature in a format that the accepted signers use.
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
    /// When a transparency log recorded the signature. Unlike `verified.time`, this is never the
    /// time of a timestamp authority.
    pub(crate) log_time: Option<Timestamp>,
}

impl From<VerifiedSignature> for AcceptedSignature {
    fn from(verified: VerifiedSignature) -> AcceptedSignature {
        AcceptedSignature {
            verified,
            log_time: None,
        }
    }
}

/// A signature by one of several signers, with conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SignatureRequirement {
    pub(crate) keys: Vec<SignerKey>,
    /// Keys of minisign, OpenSSH and OpenPGP, which sign files, and provenance files of charts.
    pub(crate) file_keys: Vec<FileKey>,
    /// Keys that sign commits and tags of git. Only rules for git repositories have them.
    pub(crate) git_signers: Vec<GitSigners>,
    pub(crate) identities: Vec<SignerIdentity>,
    pub(crate) trust_root: Option<TrustRoot>,
    pub(crate) provenance: Option<ProvenanceConditions>,
}

impl SignatureRequirement {
    /// Whether a signature that was verified earlier still meets the requirement.
    pub(crate) fn accepts(&self, verified: &VerifiedSignature) -> bool {
        let is_signer = match verified.by {
            SignerKind::Key => {
                let needs_log = self.trust_root.as_ref().is_some_and(TrustRoot::has_logs);
                let is_logged = !needs_log || verified.time.is_some();
                let name = verified.fingerprint.as_deref().unwrap_or_default();
                let mut keys = self.keys.iter().map(|key| &*key.fingerprint);
                let mut file_keys = self.file_keys.iter();
                is_logged && keys.any(|key| key == name) || file_keys.any(|key| key.has(name))
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
        is_signer
            && match &self.provenance {
                None => provenance.builder.is_none() && provenance.source.is_none(),
                Some(conditions) => conditions.check(&provenance).is_ok(),
            }
    }

    /// The signatures among `documents` that meet the requirement for the image with the digest
    /// `subject`, sorted. There is at least one.
    pub(crate) fn verify(
        &self,
        subject: &Digest,
        documents: &[SignatureDocument],
    ) -> Result<Vec<AcceptedSignature>, SignatureFailure> {
        trust_root::install();
        let verifier = self.trust_root.as_ref().map(TrustRoot::verifier);
        let subject = SignatureSubject::Image(subject);
        let verdicts = documents
            .iter()
            .map(|document| self.verify_document(verifier.as_ref(), &subject, document));
        self.choose(verdicts.collect())
    }

    /// The signatures that were accepted, sorted, or why all were refused.
    pub(crate) fn choose(
        &self,
        verdicts: Vec<Result<AcceptedSignature, String>>,
    ) -> Result<Vec<AcceptedSignature>, SignatureFailure> {
        let mut accepted = Vec::new();
        let mut refused = BTreeSet::new();
        for verdict in verdicts {
            match verdict {
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

    pub(crate) fn verify_document(
        &self,
        verifier: Option<&Verifier>,
        subject: &SignatureSubject<'_>,
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
        let has_certificate = content.bundle.signing_certificate().is_some();
        let mut accepted = match self.verify_key(verifier, &content) {
            Err(_) if has_certificate => self.verify_identity(verifier, &content)?,
            by_key => by_key?,
        };
        if let Some(Provenance { builder, source }) = provenance {
            accepted.verified.builder.clone_from(builder);
            accepted.verified.source.clone_from(source);
        }
        Ok(accepted)
    }

    /// Verifies a signature by a key of the rule. Like `cosign verify --key`, ignores the
    /// certificate that `cosign sign --key --certificate` adds.
    fn verify_key(
        &self,
        verifier: Option<&Verifier>,
        content: &SignedContent<'_>,
    ) -> Result<AcceptedSignature, String> {
        let mut signer = None;
        let mut unchecked = None;
        for key in &self.keys {
            match key.has_signed(&content.message, &content.signature) {
                Ok(true) => {
                    signer = Some(key);
                    break;
                }
                Ok(false) => {}
                // not final: another key may match, even if the file is too large for this one
                Err(why) => unchecked = Some(why),
            }
        }
        let key = signer
            .ok_or_else(|| unchecked.unwrap_or_else(|| "a signature by another key".to_owned()))?;
        let mut time = None;
        let mut log_time = None;
        if let (Some(verifier), Some(root)) = (verifier, &self.trust_root) {
            let mut policy = PublicKeyVerificationPolicy::new(key.der.clone());
            if !root.has_logs() {
                policy = policy.skip_tlog_unsafe();
            }
            let result = content.verify(verifier, &policy).map_err(|error| {
                format!("a signature that does not verify, although the key matches: {error}")
            })?;
            time = signing_time(&result);
            log_time = result.integrated_time();
        }
        let verified = VerifiedSignature {
            time,
            ..VerifiedSignature::by_key(key.fingerprint.clone())
        };
        Ok(AcceptedSignature { verified, log_time })
    }

    /// Verifies a signature with a certificate.
    fn verify_identity(
        &self,
        verifier: Option<&Verifier>,
        content: &SignedContent<'_>,
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
        let result = content
            .verify(verifier, &policy)
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
        let keys = self.keys.iter().map(|key| key.fingerprint.clone());
        let file_keys = self.file_keys.iter().map(ToString::to_string);
        let keys = keys.chain(file_keys).map(|key| format!("key {key}"));
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

// Conditions of rules: on identities in certificates, and on the provenance.

/// Patterns for the issuer and the identity in a certificate of Fulcio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignerIdentity {
    pub(crate) issuer: TextPattern,
    pub(crate) identity: TextPattern,
}

impl SignerIdentity {
    pub(crate) fn matches(&self, issuer: &str, identity: &str) -> bool {
        self.issuer.matches(issuer) && self.identity.matches(identity)
    }
}

/// Conditions on the provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProvenanceConditions {
    builder: Option<TextPattern>,
    source: Option<TextPattern>,
}

impl ProvenanceConditions {
    pub(crate) fn new(rule: &ProvenanceRule) -> ProvenanceConditions {
        let pattern = |text: &Option<String>| text.as_deref().map(TextPattern::new);
        ProvenanceConditions {
            builder: pattern(&rule.builder),
            source: pattern(&rule.source),
        }
    }

    /// Fails with a description of `provenance` if it does not meet the conditions, or names
    /// neither builder nor source: SLSA requires a builder, and a lock records a provenance by
    /// these names.
    pub(crate) fn check(&self, provenance: &Provenance) -> Result<(), String> {
        for (what, pattern, found) in [
            ("builder", &self.builder, &provenance.builder),
            ("source", &self.source, &provenance.source),
        ] {
            let Some(pattern) = pattern else { continue };
            let Some(found) = found else {
                return Err(format!("a provenance without a {what}"));
            };
            if !pattern.matches(found) {
                return Err(format!("a provenance with the {what} {found}"));
            }
        }
        if provenance.builder.is_none() && provenance.source.is_none() {
            return Err("a provenance without a builder".into());
        }
        Ok(())
    }
}

impl fmt::Display for ProvenanceConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(", and the signed statement must be a provenance")?;
        if let Some(builder) = &self.builder {
            write!(f, " with the builder {builder}")?;
        }
        if let Some(source) = &self.source {
            let word = if self.builder.is_some() {
                "and"
            } else {
                "with"
            };
            write!(f, " {word} the source {source}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_for_any_builder_still_requires_a_builder() {
        let conditions = ProvenanceConditions {
            builder: Some(TextPattern::new("*")),
            source: None,
        };
        let provenance = |builder: Option<&str>| Provenance {
            builder: builder.map(Into::into),
            source: None,
        };
        assert_eq!(
            conditions.check(&provenance(Some("https://b.example"))),
            Ok(())
        );
        let any = ProvenanceConditions {
            builder: None,
            source: None,
        };
        assert_eq!(any.check(&provenance(Some("https://b.example"))), Ok(()));
        for conditions in [conditions, any] {
            let refused = conditions.check(&provenance(None));
            assert_eq!(refused, Err("a provenance without a builder".into()));
        }
    }

    #[test]
    fn the_description_contains_the_required_builder_and_source() {
        let described = |builder: Option<&str>, source: Option<&str>| {
            let conditions = ProvenanceConditions {
                builder: builder.map(TextPattern::new),
                source: source.map(TextPattern::new),
            };
            conditions.to_string()
        };
        let start = ", and the signed statement must be a provenance with the";
        assert_eq!(described(Some("b"), None), format!("{start} builder b"));
        assert_eq!(described(None, Some("s")), format!("{start} source s"));
        assert_eq!(
            described(Some("b"), Some("s")),
            format!("{start} builder b and the source s")
        );
    }
}
