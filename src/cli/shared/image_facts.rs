//! The licence and build time of an image, from annotations and labels.

use super::verb_report::SignatureRow;
use super::{CliError, ReportMember, VerbReport};
use crate::client::Client;
use jiff::Timestamp;
use landfall_content::store::DiskStore;
use landfall_content::{BlobRead, EntryPart, LockEntry};
use landfall_item::lockfile::Lock;
use landfall_item::{ChartName, LockedItem, SignatureVerdicts};
use landfall_model::config::Site;
use landfall_model::media_type;
use landfall_model::report::{EntryKind, count_of};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

fn nonempty_text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The first of `annotation` and `created` that is a time in 2000 or later: reproducible builds set
/// the time to 1970 or 1980.
fn build_time(annotation: &Value, created: &Value) -> Option<String> {
    [annotation, created]
        .into_iter()
        .filter_map(nonempty_text)
        .find(|time| time.as_str() >= "2000" && time.parse::<Timestamp>().is_ok())
}

/// The facts that an image declares about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ImageFacts {
    /// The annotation or label `org.opencontainers.image.licenses`.
    pub(crate) licences: Option<String>,
    /// `org.opencontainers.image.created`, or the config's own time.
    pub(crate) created: Option<String>,
}

impl ImageFacts {
    /// Reads the facts of `entry`: annotations of its manifests win over labels of its configs.
    /// Content that `blobs` lacks is skipped.
    pub(crate) fn of(entry: &LockEntry, blobs: &dyn BlobRead) -> ImageFacts {
        let read = |part: &EntryPart| -> Option<Value> {
            serde_json::from_slice(&blobs.read(&part.descriptor).ok()?).ok()
        };
        // Starts at the last part, the top manifest, and continues with its children. Manifests of
        // signatures and attestations are left out: their annotations are not about the image.
        let manifests = entry
            .parts
            .iter()
            .rev()
            .filter(|part| part.is_manifest())
            .filter(|part| !entry.only_refers(&part.descriptor.digest));
        let configs = entry
            .parts
            .iter()
            .filter(|part| media_type::is_image_config(&part.descriptor.media_type));
        let mut facts = ImageFacts::default();
        let mut take = |notes: &Value, created: &Value| {
            facts.licences = facts
                .licences
                .take()
                .or_else(|| nonempty_text(&notes["org.opencontainers.image.licenses"]));
            facts.created = facts
                .created
                .take()
                .or_else(|| build_time(&notes["org.opencontainers.image.created"], created));
            facts.licences.is_some() && facts.created.is_some()
        };
        for manifest in manifests.filter_map(read) {
            if take(&manifest["annotations"], &Value::Null) {
                return facts;
            }
        }
        for config in configs.filter_map(read) {
            if take(&config["config"]["Labels"], &config["created"]) {
                return facts;
            }
        }
        facts
    }
}

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
    pub(crate) fn add_to(&self, report: &mut VerbReport) {
        if !self.unmatched.is_empty() {
            report.add(ReportMember::UnmatchedRules(self.unmatched.clone()));
        }
        if self.verified.is_empty() {
            return;
        }
        let signatures = self
            .verified
            .iter()
            .flat_map(|(name, verified)| verified.iter().map(move |one| (name, one)));
        let rows = signatures.map(|(name, one)| SignatureRow {
            name: name.clone(),
            verified: self.is_proven,
            fields: one
                .fields()
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.into()))
                .collect(),
        });
        report.add(ReportMember::Signatures(rows.collect()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_1970_does_not_hide_the_time_of_the_config() {
        let [epoch, built] = ["1970-01-01T00:00:00Z", "2026-03-02T00:00:00Z"].map(Value::from);
        assert_eq!(
            build_time(&epoch, &built),
            Some("2026-03-02T00:00:00Z".into())
        );
        assert_eq!(build_time(&Value::Null, &built), build_time(&built, &epoch));
        assert_eq!(build_time(&epoch, &epoch), None);
        assert_eq!(
            build_time(&Value::from("unknown"), &built),
            build_time(&built, &epoch)
        );
    }
}
