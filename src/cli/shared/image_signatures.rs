//! Signatures of items: verified by the rules of the site, or as a lock records them.

use crate::cli::shared::CliError;
use crate::client::Client;
use landfall_content::BlobRead;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::Lock;
use landfall_item::{ChartName, LockedItem, SignatureVerdicts};
use landfall_model::config::Site;
use landfall_model::report::{EntryKind, RunReport, count_of};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The verified signatures of the items of a lock.
pub(crate) struct ImageSignatures {
    verified: Vec<(String, Vec<VerifiedSignature>)>,
    /// The number of items that are usually signed, as [`artifacts`] counts them.
    artifacts: usize,
    /// Whether this run verified the signatures. Otherwise they were verified when the items were
    /// locked.
    is_proven: bool,
    /// The rules that match no item of the lock, as they are written.
    unmatched: Vec<String>,
}

impl ImageSignatures {
    /// The signatures that `lock` records as verified.
    pub(crate) fn recorded(lock: &Lock) -> ImageSignatures {
        let recorded = lock.items().filter_map(|item| {
            let verified = item.recorded_signatures().to_vec();
            (!verified.is_empty()).then(|| (item.name().into_owned(), verified))
        });
        ImageSignatures {
            verified: recorded.collect(),
            artifacts: artifacts(lock),
            is_proven: false,
            unmatched: Vec::new(),
        }
    }

    /// Like [`recorded`](Self::recorded), with the rules by which `lock` was made.
    pub(crate) fn recorded_by(policy: &SignaturePolicy, lock: &Lock) -> ImageSignatures {
        ImageSignatures {
            unmatched: policy.unmatched(&rule_subjects(lock)),
            ..ImageSignatures::recorded(lock)
        }
    }

    /// Verifies the signatures of the items of `lock` by the rules of the site. The signatures are
    /// read from `blobs`. Refuses the lock if an item does not meet the rules. Without rules,
    /// returns the signatures that the lock records. Every verb that delivers items to the site, or
    /// writes them for it, calls this or [`verify_upstream`](Self::verify_upstream).
    pub(crate) fn verify(
        site: Option<&Site>,
        lock: &Lock,
        blobs: Arc<dyn BlobRead>,
    ) -> Result<ImageSignatures, CliError> {
        let Some(site) = site.filter(|site| !site.verify.is_empty()) else {
            return Ok(ImageSignatures::recorded(lock));
        };
        let policy = SignaturePolicy::of_site(site)?;
        let verdicts = SignatureVerdicts::of(lock, &policy, &blobs);
        ImageSignatures::accepted(site, lock, &policy, verdicts)
    }

    /// Like [`verify`](Self::verify), for content that is still upstream. `store` keeps the
    /// signatures that are downloaded.
    pub(crate) async fn verify_upstream(
        site: Option<&Site>,
        lock: &Lock,
        client: &Client,
        store: &DiskStore,
    ) -> Result<ImageSignatures, CliError> {
        let Some(site) = site.filter(|site| !site.verify.is_empty()) else {
            return Ok(ImageSignatures::recorded(lock));
        };
        let policy = SignaturePolicy::of_site(site)?;
        let verdicts = client.verify_upstream(lock, store).await;
        ImageSignatures::accepted(site, lock, &policy, verdicts)
    }

    fn accepted(
        site: &Site,
        lock: &Lock,
        policy: &SignaturePolicy,
        verdicts: SignatureVerdicts,
    ) -> Result<ImageSignatures, CliError> {
        let SignatureVerdicts { verified, failed } = verdicts;
        if failed.is_empty() {
            return Ok(ImageSignatures {
                // the lock may lack records of items that only the site wants to be signed
                artifacts: artifacts(lock).max(verified.len()),
                verified,
                is_proven: true,
                unmatched: policy.unmatched(&rule_subjects(lock)),
            });
        }
        let head = format!(
            "{} not signed as {} demands",
            match failed.len() {
                1 => "1 item is".to_owned(),
                items => format!("{items} items are"),
            },
            site.key("verify")
        );
        Err(CliError::refused_items(head, failed))
    }

    /// The lines of text mode: the verified signatures, and the rules that match nothing. Empty if
    /// there are neither.
    pub(crate) fn lines(&self) -> String {
        let unmatched = self
            .unmatched
            .iter()
            .map(|pattern| format!("  note: no item matches the rule '{pattern}' of verify\n"));
        self.verified_line() + &unmatched.collect::<String>()
    }

    fn verified_line(&self) -> String {
        if self.verified.is_empty() {
            return String::new();
        }
        let mut signers: BTreeMap<String, usize> = BTreeMap::new();
        for signature in self.verified.iter().flat_map(|(_, verified)| verified) {
            *signers.entry(signature.to_string()).or_default() += 1;
        }
        let signers: Vec<String> = signers
            .into_iter()
            .map(|(signer, images)| format!("{images} by {signer}"))
            .collect();
        let how = if self.is_proven {
            "verified"
        } else {
            "verified when it was locked"
        };
        format!(
            "  signatures        {} of {} {how}: {}\n",
            self.verified.len(),
            count_of(self.artifacts, "item"),
            signers.join("; ")
        )
    }

    /// Adds the member `signatures` to a report, if any signature was verified, and the member
    /// `unmatchedRules`, if a rule matches no item.
    pub(crate) fn add_to(&self, report: &mut RunReport) {
        if !self.unmatched.is_empty() {
            report
                .extra
                .insert("unmatchedRules".into(), json!(self.unmatched));
        }
        if self.verified.is_empty() {
            return;
        }
        let members: Vec<Value> = self
            .verified
            .iter()
            .flat_map(|(name, verified)| verified.iter().map(move |one| (name, one)))
            .map(|(name, one)| {
                let mut member = json!({"name": name, "verified": self.is_proven});
                for (key, value) in one.fields() {
                    member[key] = value.into();
                }
                member
            })
            .collect();
        report.extra.insert("signatures".into(), members.into());
    }
}

/// The items of a lock that rules may match, including those that are missing.
fn rule_subjects(lock: &Lock) -> Vec<RuleSubject> {
    let locked = lock.items().filter_map(LockedItem::signature_subject);
    let unresolved = lock.unresolved.iter().map(|item| (item.kind, &item.name));
    let lost = lock.missing.iter().map(|loss| (loss.kind, &loss.name));
    let missing = unresolved
        .chain(lost)
        .filter_map(|(kind, name)| match kind {
            EntryKind::Image => Some(RuleSubject::Image(name.parse().ok()?)),
            EntryKind::File => Some(RuleSubject::Addresses(vec![name.clone()])),
            EntryKind::Git => Some(RuleSubject::Git(name.clone())),
            EntryKind::Chart => Some(ChartName::try_from(name.clone()).ok()?.rule_subject()),
            _ => None,
        });
    locked.chain(missing).collect()
}

/// The number of items that are usually signed: all images and all charts from registries. Files
/// and charts from URLs are counted if they have verified signatures.
fn artifacts(lock: &Lock) -> usize {
    let charts = lock.charts.iter();
    let charts = charts.filter(|chart| chart.media_type.is_some() || !chart.verified.is_empty());
    let files = lock.files.iter();
    let files = files.filter(|file| !file.verified.is_empty());
    lock.images.len() + charts.count() + files.count()
}
