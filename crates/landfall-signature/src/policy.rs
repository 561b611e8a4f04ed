//! The rules of `verify:` in manifests and sites, with their keys.

use crate::file_signatures::FileSignatures;
use crate::requirement::{
    AcceptedSignature, ProvenanceConditions, SignatureFailure, SignatureRequirement, SignerIdentity,
};
use crate::signed_content::{LogQuery, SignatureDocument};
use crate::signing_key::{SignerKey, pem};
use crate::trust_root::TrustRoot;
use crate::verified::VerifiedSignature;
use jiff::Timestamp;
use landfall_model::config::Site;
use landfall_model::document::{
    KeylessSigner, KeylessSigners, SignatureRule, read_input, read_text_input,
};
use landfall_model::sign::{FileKey, GitSigners, OpenPgpKeys, SignatureTime};
use landfall_model::{
    Digest, Failure, ImageRef, NamePattern, TextPattern, extend_distinct, is_web_url,
};
use std::path::Path;

/// The rules that say whose signatures each item needs. The rules of each document are a list, and
/// an item must meet the first rule that matches it in each list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignaturePolicy {
    lists: Vec<Vec<PolicyRule>>,
}

impl SignaturePolicy {
    /// Reads the rules of a site.
    ///
    /// # Errors
    /// Like [`SignaturePolicy::read`]. The error names the key, as in
    /// `verify[0].keys of site.yaml`.
    pub fn of_site(site: &Site) -> Result<SignaturePolicy, Failure> {
        SignaturePolicy::read(&site.verify, &site.folder).map_err(|error| {
            let key = site.key(&format!("verify[{}].{}", error.index, error.key));
            Failure::usage(format!("{key}: {error}")).with_help(error.help)
        })
    }

    /// Reads the rules of a document and the files that they name, relative to `folder`.
    ///
    /// # Errors
    /// If a rule is contradictory or names no signer, or a key or trust root cannot be read.
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

    /// Adds the rules of other documents. An item must meet those of each document.
    pub fn append(&mut self, other: SignaturePolicy) {
        extend_distinct(&mut self.lists, other.lists);
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns the patterns of the rules that match none of the items, as they are written.
    pub fn unmatched(&self, items: &[RuleSubject]) -> Vec<String> {
        let rules = self.lists.iter().flatten();
        let matches = |rule: &PolicyRule, item| rule.matches(item) || rule.matches_by_url(item);
        let unmatched = rules.filter(|rule| !items.iter().any(|item| matches(rule, item)));
        unmatched.map(|rule| rule.items.to_string()).collect()
    }

    /// Whether an item needs a signature.
    pub fn applies_to(&self, item: impl Into<RuleSubject>) -> bool {
        !self.requirements(item).is_empty()
    }

    /// Whether signatures that were verified earlier are enough for an item.
    pub fn accepts(&self, item: impl Into<RuleSubject>, verified: &[VerifiedSignature]) -> bool {
        self.requirements(item)
            .iter()
            .all(|requirement| verified.iter().any(|one| requirement.accepts(one)))
    }

    /// Verifies the signatures of the image with the digest `subject`. Returns one signature for
    /// each rule that the image must meet, sorted and without duplicates; empty if the image needs
    /// none.
    ///
    /// # Errors
    /// If a rule is not met.
    pub fn verify(
        &self,
        image: &ImageRef,
        subject: &Digest,
        documents: &[SignatureDocument],
    ) -> Result<Vec<VerifiedSignature>, SignatureFailure> {
        self.verify_each(image, |requirement| requirement.verify(subject, documents))
    }

    /// Verifies the signatures of a file, or of a checksum file that contains the file's digest.
    /// OpenPGP signatures must be valid at `time`. Returns one signature for each rule that the
    /// file must meet, sorted and without duplicates; empty if the file needs none.
    ///
    /// # Errors
    /// If a rule is not met.
    pub fn verify_file(
        &self,
        file: impl Into<RuleSubject>,
        signatures: &[FileSignatures<'_>],
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, SignatureFailure> {
        self.verify_each(file, |requirement| {
            requirement.verify_file(signatures, time)
        })
    }

    /// Verifies a document that contains its own OpenPGP signature. `check` verifies the document
    /// by keys and returns the fingerprint of the key that signed, or why the signature is refused.
    /// Returns one signature for each rule that the item must meet, sorted and without duplicates;
    /// empty if the item needs none.
    ///
    /// # Errors
    /// If a rule is not met.
    pub fn verify_clear_signed(
        &self,
        item: impl Into<RuleSubject>,
        check: impl Fn(&OpenPgpKeys) -> Result<String, String>,
    ) -> Result<Vec<VerifiedSignature>, SignatureFailure> {
        self.verify_each(item, |requirement| requirement.verify_clear_signed(&check))
    }

    /// Returns the signers that the rules accept for an item, one for each rule that it must meet.
    pub fn signers(&self, item: impl Into<RuleSubject>) -> Vec<RuleSigners> {
        let requirements = self.requirements(item).into_iter();
        requirements.map(RuleSigners::from).collect()
    }

    /// Returns the keys that the rules accept for the git repository `name`, one list for each
    /// rule that it must meet.
    pub fn git_signers(&self, name: &str) -> Vec<Vec<GitSigners>> {
        let requirements = self.requirements(RuleSubject::Git(name.to_owned()));
        let signers = requirements.into_iter().map(|one| one.git_signers.clone());
        signers.collect()
    }

    /// Returns the URL endings of the signature files that are published next to a file, in groups
    /// by preference: the first group that has an existing file is used.
    pub fn signature_endings(&self, file: impl Into<RuleSubject>) -> Vec<Vec<&'static str>> {
        let mut groups = Vec::new();
        for requirement in self.requirements(file) {
            extend_distinct(&mut groups, requirement.signature_endings());
        }
        groups
    }

    /// Returns the queries to transparency logs for those signatures of a file that come without a
    /// log entry.
    pub fn log_queries(
        &self,
        file: impl Into<RuleSubject>,
        signatures: &[FileSignatures<'_>],
    ) -> Vec<LogQuery> {
        let mut queries = Vec::new();
        for requirement in self.requirements(file) {
            extend_distinct(&mut queries, requirement.log_queries(signatures));
        }
        queries
    }

    /// Verifies the signatures of the image with the digest `subject`. Returns the earliest time at
    /// which a transparency log recorded a signature that meets a rule; `None` if the image needs
    /// no signature, or if no signature was verified with a log.
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

    fn verify_each(
        &self,
        item: impl Into<RuleSubject>,
        verify: impl Fn(&SignatureRequirement) -> Result<Vec<AcceptedSignature>, SignatureFailure>,
    ) -> Result<Vec<VerifiedSignature>, SignatureFailure> {
        let mut verified = Vec::new();
        for requirement in self.requirements(item) {
            let accepted = verify(requirement)?;
            // sorted, so the choice does not depend on the order of the documents
            verified.extend(accepted.into_iter().next().map(|first| first.verified));
        }
        verified.sort();
        verified.dedup();
        Ok(verified)
    }

    /// The requirements of the rules for an item: from each list, the first rule that matches it.
    /// For a file, a rule is chosen for each of its addresses.
    fn requirements(&self, item: impl Into<RuleSubject>) -> Vec<&SignatureRequirement> {
        let items = item.into().addresses();
        let mut found: Vec<&SignatureRequirement> = Vec::new();
        for list in &self.lists {
            for item in &items {
                let by_name = list.iter().find(|rule| rule.matches(item));
                let rule = by_name.or_else(|| list.iter().find(|rule| rule.matches_by_url(item)));
                let requirement = rule.and_then(|rule| rule.requirement.as_ref());
                let requirement =
                    requirement.filter(|new| !found.iter().any(|known| std::ptr::eq(*known, *new)));
                found.extend(requirement);
            }
        }
        found
    }
}

// Reads a rule of `verify:`, with the files that it names.

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
    pub help: String,
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
            (Err(why), Err(error)) => {
                // the error of a file of allowed signers has its own help
                let (why, help) = match &error.help {
                    Some(help) => (error.to_string(), help.as_str()),
                    None => (why, help),
                };
                return Err(self.error("keys", format!("{name}{why}"), help));
            }
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
        if is_web_url(path) {
            let help = "download the file, verify it, and write its path";
            return Err(self.error(key, format!("{path} is a URL, and a file is needed"), help));
        }
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

    fn error(&self, key: &'static str, why: String, help: &str) -> SignatureRuleError {
        SignatureRuleError {
            index: self.index,
            key,
            why,
            help: help.into(),
        }
    }
}

/// An item that rules may match, by the names that a rule may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleSubject {
    /// An image, or a chart in a registry. Only rules without a scheme match it.
    Image(ImageRef),
    /// A chart in an HTTP repository: its URL with and without the version. Only rules with a
    /// scheme match it, so that a rule for all images (`*`) does not include charts of such
    /// repositories.
    Urls(Vec<String>),
    /// A file: all URLs under which it is delivered. Only rules with a scheme match it. The file
    /// must meet the rule for each of its URLs.
    Addresses(Vec<String>),
    /// A git repository, by its name in the lock. Only rules that begin with `git+` match it.
    Git(String),
}

impl RuleSubject {
    /// The subjects for each of which a rule is chosen.
    pub(crate) fn addresses(self) -> Vec<RuleSubject> {
        match self {
            RuleSubject::Addresses(urls) => {
                let urls = urls.into_iter();
                urls.map(|url| RuleSubject::Urls(vec![url])).collect()
            }
            other => vec![other],
        }
    }
}

impl From<&ImageRef> for RuleSubject {
    fn from(image: &ImageRef) -> RuleSubject {
        RuleSubject::Image(image.clone())
    }
}

// The signers that a rule accepts, for the policies of other programs.

/// The signers that a rule accepts: one of `keys` or one of `identities` must sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSigners {
    /// Public keys in PEM.
    pub keys: Vec<String>,
    /// Identities in certificates, with `*` for any text.
    pub identities: Vec<KeylessSigner>,
    /// The root certificates of the authorities in the trust root, in PEM.
    pub authorities: Vec<String>,
    /// The keys, in PEM, of the trust root's transparency logs with inclusion promises.
    pub logs: Vec<String>,
    /// Whether a provenance is required in place of a signature.
    pub needs_provenance: bool,
}

impl From<&SignatureRequirement> for RuleSigners {
    fn from(requirement: &SignatureRequirement) -> RuleSigners {
        let root = requirement.trust_root.as_ref();
        let authorities = root.map(TrustRoot::authorities).unwrap_or_default();
        let logs = root.map(TrustRoot::promising_logs).unwrap_or_default();
        RuleSigners {
            keys: requirement.keys.iter().map(SignerKey::pem).collect(),
            identities: requirement
                .identities
                .iter()
                .map(|signer| KeylessSigner {
                    issuer: signer.issuer.to_string(),
                    identity: signer.identity.to_string(),
                })
                .collect(),
            authorities: authorities
                .iter()
                .map(|certificate| pem("CERTIFICATE", certificate))
                .collect(),
            logs: logs.iter().map(|key| pem("PUBLIC KEY", key)).collect(),
            needs_provenance: requirement.provenance.is_some(),
        }
    }
}
