//! The content of a lock that a push leaves out on request: referrers and kinds of items.

use super::options::PushOptions;
use landfall_item::lockfile::{Lock, lost_referrer_name};
use landfall_model::config::ReferrerPolicy;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_signature::SignaturePolicy;
use std::borrow::Cow;

/// The content that a push delivers, and the referrers that it leaves out.
pub(super) struct WantedContent<'a> {
    /// The lock without the referrers that are left out.
    pub(super) lock: Cow<'a, Lock>,
    /// Each referrer that is left out, as a skipped item.
    pub(super) skipped: Vec<ReportItem>,
}

/// Removes the referrers that the options leave out, except those that `demanded`, the rules of the
/// site, needs.
pub(super) fn wanted_content<'a>(
    lock: &'a Lock,
    options: &PushOptions,
    demanded: &SignaturePolicy,
) -> WantedContent<'a> {
    let mut skipped = Vec::new();
    if options.referrers != ReferrerPolicy::Skip {
        let lock = Cow::Borrowed(lock);
        return WantedContent { lock, skipped };
    }
    let mut kept = lock.clone();
    let images = kept.images.iter_mut().filter_map(|image| {
        let is_demanded = demanded.applies_to(&image.name);
        let name = image.name.to_string();
        (!is_demanded).then_some((name, &mut image.referrers, &mut image.referrer_blobs))
    });
    let charts = kept.charts.iter_mut().filter_map(|chart| {
        let is_demanded = demanded.applies_to(chart.rule_subject());
        let name = chart.name.to_string();
        (!is_demanded).then_some((name, &mut chart.referrers, &mut chart.referrer_blobs))
    });
    for (name, referrers, blobs) in images.chain(charts) {
        for referrer in referrers.iter_mut().flat_map(std::mem::take) {
            skipped.push(ReportItem {
                kind: EntryKind::Referrer,
                name: lost_referrer_name(&name, &referrer.digest.to_string()),
                digest: Some(referrer.digest),
                bytes: Some(referrer.size),
                packages: 0,
                status: ItemStatus::Skipped,
                reason: Some("referrers are skipped".into()),
            });
        }
        blobs.clear();
    }
    WantedContent {
        lock: Cow::Owned(kept),
        skipped,
    }
}
