//! The rules of `verify:` in manifests and sites, with their keys.

use crate::document::SignatureDocument;
use crate::pattern::TextPattern;
use crate::requirement::{
    ProvenanceConditions, SignatureFailure, SignatureRequirement, SignerIdentity,
};
use crate::signer_key::SignerKey;
use crate::trust_root::TrustRoot;
use crate::verified::VerifiedSignature;
use jiff::Timestamp;
use landfall_model::config::Site;
use landfall_model::document::{KeylessSigners, SignatureRule, read_text_input};
use landfall_model::{Digest, ImageRef};
use std::path::Path;

/// Whose signatures images need. The rules of each document are a list, and an image must meet the
/// first rule that matches it in each list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignaturePolicy {
    lists: Vec<Vec<PolicyRule>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PolicyRule {
    images: TextPattern,
    /// `None` if the images need no signature.
    requirement: Option<SignatureRequirement>,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SignatureRuleError {
    /// The position of the rule in `verify:`.
    pub index: usize,
    /// The key of the rule, as in `trustedRoot`.
    pub key: &'static str,
    /// Why it cannot be used.
    pub why: String,
    /// What to write instead.
    pub help: &'static str,
}

/// A rule of a site that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {source}")]
pub struct SiteRuleError {
    /// The rule and its key, as in `verify[0].keys of site.yaml`.
    pub key: String,
    /// Why it cannot be used.
    pub source: SignatureRuleError,
}

impl SignaturePolicy {
    /// Reads the rules of a site.
    ///
    /// # Errors
    /// Like [`SignaturePolicy::read`].
    pub fn of_site(site: &Site) -> Result<SignaturePolicy, SiteRuleError> {
        SignaturePolicy::read(&site.verify, &site.folder).map_err(|source| SiteRuleError {
            key: site.key(&format!("verify[{}].{}", source.index, source.key)),
            source,
        })
    }

    /// Reads the rules of a document and the files that they name, relative to `folder`.
    ///
    /// # Errors
    /// If a rule is contradictory, or a file cannot be read.
    pub fn read(
        rules: &[SignatureRule],
        folder: &Path,
    ) -> Result<SignaturePolicy, SignatureRuleError> {
        let list = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                RuleReader {
                    index,
                    rule,
                    folder,
                }
                .read()
            })
            .collect::<Result<Vec<PolicyRule>, _>>()?;
        let lists = if list.is_empty() {
            Vec::new()
        } else {
            vec![list]
        };
        Ok(SignaturePolicy { lists })
    }

    /// Adds the rules of other documents. An image must meet those of each document.
    pub fn append(&mut self, other: SignaturePolicy) {
        for list in other.lists {
            if !self.lists.contains(&list) {
                self.lists.push(list);
            }
        }
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Whether an image needs a signature.
    pub fn applies_to(&self, image: &ImageRef) -> bool {
        self.requirements(image).next().is_some()
    }

    /// Whether signatures that were verified earlier are enough for an image.
    pub fn accepts(&self, image: &ImageRef, verified: &[VerifiedSignature]) -> bool {
        self.requirements(image)
            .all(|requirement| verified.iter().any(|one| requirement.accepts(one)))
    }

    /// Verifies the signatures of the image with the digest `subject`. Returns those that meet the
    /// rules, sorted; empty if the image needs none.
    ///
    /// # Errors
    /// If a rule is not met.
    pub fn verify(
        &self,
        image: &ImageRef,
        subject: &Digest,
        documents: &[SignatureDocument],
    ) -> Result<Vec<VerifiedSignature>, SignatureFailure> {
        let mut verified = Vec::new();
        for requirement in self.requirements(image) {
            let accepted = requirement.verify(subject, documents)?;
            // the choice does not depend on the order of the documents
            verified.extend(accepted.into_iter().next().map(|first| first.verified));
        }
        verified.sort();
        verified.dedup();
        Ok(verified)
    }

    /// Verifies the signatures of the image with the digest `subject`. Returns the earliest time at
    /// which a transparency log recorded one that meets a rule; `None` if the image needs no
    /// signature, or if none of them was verified with a log.
    ///
    /// # Errors
    /// If a rule is not met.
    pub fn logged_since(
        &self,
        image: &ImageRef,
        subject: &Digest,
        documents: &[SignatureDocument],
    ) -> Result<Option<Timestamp>, SignatureFailure> {
        let mut times = Vec::new();
        for requirement in self.requirements(image) {
            let accepted = requirement.verify(subject, documents)?;
            times.extend(accepted.into_iter().filter_map(|one| one.log_time));
        }
        Ok(times.into_iter().min())
    }

    fn requirements(&self, image: &ImageRef) -> impl Iterator<Item = &SignatureRequirement> {
        let (full, repository) = (image.to_string(), image.name());
        self.lists.iter().filter_map(move |list| {
            let rule = list
                .iter()
                .find(|rule| rule.images.matches(&full) || rule.images.matches(&repository))?;
            rule.requirement.as_ref()
        })
    }
}

struct RuleReader<'a> {
    index: usize,
    rule: &'a SignatureRule,
    folder: &'a Path,
}

impl RuleReader<'_> {
    fn read(&self) -> Result<PolicyRule, SignatureRuleError> {
        let SignatureRule {
            r#match,
            keys,
            keyless,
            trusted_root,
            attestation,
            none,
        } = self.rule;
        if r#match.contains("://") {
            return Err(self.error(
                "match",
                "only images have rules".into(),
                "write a repository without a scheme, as in quay.io/team/*",
            ));
        }
        let images = TextPattern::new(r#match.as_str());
        let has_signers = !keys.is_empty() || keyless.is_some();
        if none.is_some() {
            if has_signers || attestation.is_some() {
                return Err(self.error(
                    "none",
                    "a rule has either signers or `none`".into(),
                    "remove one of the two",
                ));
            }
            return Ok(PolicyRule {
                images,
                requirement: None,
            });
        }
        let identities: Vec<SignerIdentity> = keyless
            .iter()
            .flat_map(KeylessSigners::as_slice)
            .map(|signer| SignerIdentity {
                issuer: TextPattern::new(signer.issuer.as_str()),
                identity: TextPattern::new(signer.identity.as_str()),
            })
            .collect();
        if keys.is_empty() && identities.is_empty() {
            return Err(self.error(
                "match",
                "this rule names no signer".into(),
                "add `keys:` or `keyless:`, or `none:` with the reason",
            ));
        }
        if !identities.is_empty() && trusted_root.is_none() {
            return Err(self.error(
                "keyless",
                "`keyless` needs a trust root".into(),
                "add `trustedRoot:` with the path of a trusted_root.json",
            ));
        }
        let keys = keys
            .iter()
            .map(|key| self.key(key))
            .collect::<Result<_, _>>()?;
        let trust_root = trusted_root
            .as_ref()
            .map(|path| self.trust_root(path))
            .transpose()?;
        let pattern = |text: &Option<String>| text.as_deref().map(TextPattern::new);
        let provenance = attestation.as_ref().map(|rule| ProvenanceConditions {
            builder: pattern(&rule.builder),
            source: pattern(&rule.source),
        });
        Ok(PolicyRule {
            images,
            requirement: Some(SignatureRequirement {
                keys,
                identities,
                trust_root,
                provenance,
            }),
        })
    }

    fn key(&self, key: &str) -> Result<SignerKey, SignatureRuleError> {
        let help = "name a file with a public key in PEM, or write the PEM text";
        if key.contains("-----BEGIN") {
            return SignerKey::from_pem(key).map_err(|why| self.error("keys", why, help));
        }
        let pem = self.file("keys", key)?;
        SignerKey::from_pem(&pem).map_err(|why| self.error("keys", format!("{key}: {why}"), help))
    }

    fn trust_root(&self, path: &str) -> Result<TrustRoot, SignatureRuleError> {
        let text = self.file("trustedRoot", path)?;
        TrustRoot::parse(&text).map_err(|why| {
            let help = "`cosign trusted-root create` writes such a file";
            self.error("trustedRoot", format!("{path}: {why}"), help)
        })
    }

    fn file(&self, key: &'static str, path: &str) -> Result<String, SignatureRuleError> {
        let path = self.folder.join(path);
        read_text_input(&path).map_err(|error| {
            let why = format!("cannot read {}: {error}", path.display());
            self.error(
                key,
                why,
                "the path is relative to the folder of this document",
            )
        })
    }

    fn error(&self, key: &'static str, why: String, help: &'static str) -> SignatureRuleError {
        SignatureRuleError {
            index: self.index,
            key,
            why,
            help,
        }
    }
}
