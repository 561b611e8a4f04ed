//! The content of a lock that a push leaves out on request: referrers and kinds of items.

use super::options::PushOptions;
use landfall_item::lockfile::{Lock, referrer_item};
use landfall_model::Digest;
use landfall_model::config::ReferrerPolicy;
use landfall_model::report::{ItemStatus, ReportItem};
use landfall_signature::SignaturePolicy;
use std::borrow::Cow;

/// The reason of referrers that are left out.
const NO_REFERRERS: &str = "referrers are skipped";
/// The reason of items whose kind is left out.
pub(super) const NOT_THIS_KIND: &str = "this kind is skipped";

/// Whether an item was left out on request.
pub(crate) fn is_left_out(item: &ReportItem) -> bool {
    let reason = item.reason.as_deref();
    item.status == ItemStatus::Skipped
        && reason.is_some_and(|reason| [NO_REFERRERS, NOT_THIS_KIND].contains(&reason))
}

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
        let is_own = |digest: &Digest| options.own_signatures.contains(digest);
        if let Some(referrers) = referrers {
            let removed = referrers.extract_if(.., |referrer| !is_own(&referrer.digest));
            skipped.extend(removed.map(|referrer| {
                let descriptor = referrer.descriptor();
                referrer_item(&name, &descriptor, ItemStatus::Skipped, NO_REFERRERS)
            }));
        }
        blobs.retain(|blob| is_own(&blob.digest));
    }
    WantedContent {
        lock: Cow::Owned(kept),
        skipped,
    }
}
