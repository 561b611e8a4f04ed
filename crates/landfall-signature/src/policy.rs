//! The rules of `verify:` in manifests and sites, with their keys.

use crate::document::SignatureDocument;
use crate::file_signatures::FileSignatures;
use crate::log_query::LogQuery;
use crate::policy_rule::{PolicyRule, RuleReader, SignatureRuleError};
use crate::requirement::{AcceptedSignature, SignatureFailure, SignatureRequirement};
use crate::rule_signers::RuleSigners;
use crate::rule_subject::RuleSubject;
use crate::verified::VerifiedSignature;
use jiff::Timestamp;
use landfall_model::config::Site;
use landfall_model::document::SignatureRule;
use landfall_model::sign::{GitSigners, OpenPgpKeys, SignatureTime};
use landfall_model::{Digest, ImageRef};
use std::path::Path;

/// The rules that say whose signatures each item needs. The rules of each document are a list, and
/// an item must meet the first rule that matches it in each list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignaturePolicy {
    lists: Vec<Vec<PolicyRule>>,
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
        let mut groups: Vec<Vec<&'static str>> = Vec::new();
        for group in self
            .requirements(file)
            .into_iter()
            .flat_map(SignatureRequirement::signature_endings)
        {
            if !groups.contains(&group) {
                groups.push(group);
            }
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
        let requirements = self.requirements(file);
        let mut queries: Vec<LogQuery> = Vec::new();
        for query in requirements
            .iter()
            .flat_map(|requirement| requirement.log_queries(signatures))
        {
            if !queries.contains(&query) {
                queries.push(query);
            }
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
