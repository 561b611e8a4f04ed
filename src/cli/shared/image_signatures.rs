//! Signatures of items: verified by the rules of the site, or as a lock records them.

use crate::cli::shared::CliError;
use landfall_content::BlobRead;
use landfall_item::lockfile::Lock;
use landfall_item::{ChartName, LockedChart, LockedFile, LockedItem, verified_signatures};
use landfall_model::config::Site;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem, RunReport, count_of};
use landfall_model::sign::SignatureTime;
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The verified signatures of the images, charts and files of a lock.
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
        let images = lock
            .images
            .iter()
            .map(|image| (image.name.to_string(), image.verified.clone()));
        let charts = lock
            .charts
            .iter()
            .map(|chart| (chart.name.to_string(), chart.verified.clone()));
        let files = lock
            .files
            .iter()
            .map(|file| (file.name.clone(), file.verified.clone()));
        let verified = images
            .chain(charts)
            .chain(files)
            .filter(|(_, verified)| !verified.is_empty());
        ImageSignatures {
            verified: verified.collect(),
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

    /// Verifies the signatures of the images, charts and files of `lock` by the rules of the site.
    /// The signatures are read from `blobs`. A signature must have been valid when it was made; its
    /// key may have expired since then. Refuses the lock if an item does not meet the rules.
    /// Without rules, returns the signatures that the lock records.
    pub(crate) fn verify(
        site: Option<&Site>,
        lock: &Lock,
        blobs: &dyn BlobRead,
    ) -> Result<ImageSignatures, CliError> {
        let Some(site) = site.filter(|site| !site.verify.is_empty()) else {
            return Ok(ImageSignatures::recorded(lock));
        };
        let policy = SignaturePolicy::of_site(site)?;
        let mut verified = Vec::new();
        let mut failed = Vec::new();
        let images = lock.images.iter().map(|image| {
            let found = verified_signatures(image, &policy, blobs);
            (
                image as &dyn LockedItem,
                found.map_err(|error| error.to_string()),
            )
        });
        let charts = lock.charts.iter().map(|chart| {
            let found = chart.verified_signatures(&policy, blobs, SignatureTime::Made);
            (
                chart as &dyn LockedItem,
                found.map_err(|error| error.to_string()),
            )
        });
        let files = lock.files.iter().map(|file| {
            let found = file.verified_signatures(&policy, blobs, SignatureTime::Made);
            (
                file as &dyn LockedItem,
                found.map_err(|error| error.to_string()),
            )
        });
        for (item, found) in images.chain(charts).chain(files) {
            match found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => verified.push((item.name().into_owned(), found)),
                Err(error) => failed.push(ReportItem {
                    status: ItemStatus::Failed,
                    reason: Some(error),
                    ..item.entry().item()
                }),
            }
        }
        if failed.is_empty() {
            return Ok(ImageSignatures {
                verified,
                artifacts: artifacts(lock),
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
    let images = lock
        .images
        .iter()
        .map(|image| RuleSubject::from(&image.name));
    let charts = lock.charts.iter().map(LockedChart::rule_subject);
    let files = lock.files.iter().map(LockedFile::rule_subject);
    let unresolved = lock.unresolved.iter().map(|item| (item.kind, &item.name));
    let lost = lock.missing.iter().map(|loss| (loss.kind, &loss.name));
    let missing = unresolved
        .chain(lost)
        .filter_map(|(kind, name)| match kind {
            EntryKind::Image => Some(RuleSubject::Image(name.parse().ok()?)),
            EntryKind::File => Some(RuleSubject::Urls(vec![name.clone()])),
            EntryKind::Chart => Some(ChartName::try_from(name.clone()).ok()?.rule_subject()),
            _ => None,
        });
    images.chain(charts).chain(files).chain(missing).collect()
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
