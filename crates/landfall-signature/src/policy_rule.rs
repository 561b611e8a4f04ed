//! Reads a rule of `verify:`, with the files that it names.

use crate::conditions::{ProvenanceConditions, SignerIdentity};
use crate::requirement::SignatureRequirement;
use crate::rule_subject::RuleSubject;
use crate::signer_key::SignerKey;
use crate::trust_root::TrustRoot;
use landfall_model::document::{KeylessSigners, SignatureRule, read_input, read_text_input};
use landfall_model::sign::{FileKey, FileKeyError, GitSigners};
use landfall_model::{NamePattern, TextPattern};
use std::path::Path;

/// A rule: the items that it matches, and what it demands of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyRule {
    pub(crate) items: NamePattern,
    /// `None` if the items need no signature.
    pub(crate) requirement: Option<SignatureRequirement>,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct SignatureRuleError {
    /// The position of the rule in `verify:`.
    pub index: usize,
    /// The faulty key of the rule, such as `trustedRoot`.
    pub key: &'static str,
    /// Why it cannot be used.
    pub why: String,
    /// What to write instead.
    pub help: &'static str,
}

impl PolicyRule {
    /// Whether the rule matches an image, or a chart in a registry, although it has a scheme. Other
    /// rules have precedence, so that a rule for files does not hide a rule for images.
    pub(crate) fn matches_by_url(&self, item: &RuleSubject) -> bool {
        let RuleSubject::Image(image) = item else {
            return false;
        };
        let images = self.items.of_images();
        images.is_some_and(|images| images.matches_image(image))
    }

    /// Whether the rule matches an item.
    pub(crate) fn matches(&self, item: &RuleSubject) -> bool {
        match item {
            RuleSubject::Image(image) => !self.items.is_url() && self.items.matches_image(image),
            RuleSubject::Urls(urls) | RuleSubject::Addresses(urls) => {
                self.items.is_url() && urls.iter().any(|url| self.items.matches(url))
            }
            RuleSubject::Git(name) => self.items.is_git() && self.items.matches_repository(name),
        }
    }
}

/// Reads the rule `rule` at `index`. Its files are relative to `folder`.
pub(crate) struct RuleReader<'a> {
    pub(crate) index: usize,
    pub(crate) rule: &'a SignatureRule,
    pub(crate) folder: &'a Path,
}

impl RuleReader<'_> {
    pub(crate) fn read(&self) -> Result<PolicyRule, SignatureRuleError> {
        let SignatureRule {
            r#match,
            keys,
            keyless,
            trusted_root,
            attestation,
            none,
        } = self.rule;
        if r#match.starts_with("oci://") || r#match.starts_with("docker://") {
            return Err(self.error(
                "match",
                "images and charts in registries are matched without a scheme".into(),
                "write a repository, as in quay.io/team/*; https:// is for files and charts of \
                 HTTP repositories",
            ));
        }
        if r#match.trim().is_empty() {
            return Err(self.error(
                "match",
                "this pattern is empty and matches nothing".into(),
                "write a repository or URL, as in quay.io/team/*, or * for all images and charts",
            ));
        }
        let items = NamePattern::new(r#match.as_str());
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
                items,
                requirement: None,
            });
        }
        if items.is_git() {
            return self.read_git(items);
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
        let mut requirement = SignatureRequirement {
            identities,
            trust_root: trusted_root
                .as_ref()
                .map(|root| self.trust_root(root.file()))
                .transpose()?,
            provenance: attestation.as_ref().map(ProvenanceConditions::new),
            ..SignatureRequirement::default()
        };
        for key in keys {
            self.add_key(key, &mut requirement)?;
        }
        Ok(PolicyRule {
            items,
            requirement: Some(requirement),
        })
    }

    /// Reads a rule for git repositories, which are signed by keys of OpenPGP and OpenSSH.
    fn read_git(&self, items: NamePattern) -> Result<PolicyRule, SignatureRuleError> {
        let other = [
            ("keyless", self.rule.keyless.is_some()),
            ("trustedRoot", self.rule.trusted_root.is_some()),
            ("attestation", self.rule.attestation.is_some()),
        ];
        if let Some((key, _)) = other.into_iter().find(|(_, is_there)| *is_there) {
            let why = "git repositories are verified by keys only";
            return Err(self.error(key, why.into(), "name the files of the keys in `keys:`"));
        }
        if self.rule.keys.is_empty() {
            return Err(self.error(
                "match",
                "this rule names no signer".into(),
                "add `keys:` with files of OpenPGP or OpenSSH keys, or `none:` with the reason",
            ));
        }
        let mut git_signers = Vec::new();
        for key in &self.rule.keys {
            let found = GitSigners::parse(key, &self.read_file("keys", key)?);
            let help = "name a file with keys of OpenPGP or OpenSSH, or with allowed signers";
            let error = |why| self.error("keys", format!("{key}: {why}"), help);
            git_signers.push(found.map_err(error)?);
        }
        Ok(PolicyRule {
            items,
            requirement: Some(SignatureRequirement {
                git_signers,
                ..SignatureRequirement::default()
            }),
        })
    }

    /// Adds a key: PEM in text or in a file, or a file with a key of minisign, OpenSSH or OpenPGP.
    fn add_key(
        &self,
        key: &str,
        requirement: &mut SignatureRequirement,
    ) -> Result<(), SignatureRuleError> {
        let help = "name a file with a public key in PEM, or write the PEM text";
        let is_inline = key.contains("-----BEGIN");
        let bytes = if is_inline {
            key.as_bytes().to_vec()
        } else {
            self.read_file("keys", key)?
        };
        let name = if is_inline {
            String::new()
        } else {
            format!("{key}: ")
        };
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let pem = SignerKey::from_pem(text);
        match (pem, FileKey::parse(key, &bytes)) {
            (Ok(parsed), _) => requirement.keys.push(parsed),
            (Err(_), Ok(parsed)) if self.rule.r#match.contains("://") => {
                requirement.file_keys.push(parsed);
            }
            (Err(_), Ok(parsed)) => {
                let why = format!("{name}{parsed} does not sign images");
                return Err(self.error("keys", why, help));
            }
            (Err(_), Err(error @ FileKeyError::AllowedSigners { .. })) => {
                let help = "write each line as PRINCIPALS [OPTIONS] TYPE BASE64, or each as TYPE \
                            BASE64";
                return Err(self.error("keys", format!("{name}{error}"), help));
            }
            (Err(why), Err(_)) => return Err(self.error("keys", format!("{name}{why}"), help)),
        }
        Ok(())
    }

    fn trust_root(&self, path: &str) -> Result<TrustRoot, SignatureRuleError> {
        let full = self.folder.join(path);
        let text = read_text_input(&full)
            .map_err(|error| self.unreadable("trustedRoot", &full, &error))?;
        TrustRoot::parse(&text).map_err(|why| {
            let help = "`cosign trusted-root create` writes such a file";
            self.error("trustedRoot", format!("{path}: {why}"), help)
        })
    }

    fn read_file(&self, key: &'static str, path: &str) -> Result<Vec<u8>, SignatureRuleError> {
        let path = self.folder.join(path);
        read_input(&path).map_err(|error| self.unreadable(key, &path, &error))
    }

    fn unreadable(
        &self,
        key: &'static str,
        path: &Path,
        error: &std::io::Error,
    ) -> SignatureRuleError {
        let why = format!("cannot read {}: {error}", path.display());
        self.error(
            key,
            why,
            "the path is relative to the folder of this document",
        )
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
