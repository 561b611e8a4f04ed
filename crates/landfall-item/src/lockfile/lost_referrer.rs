//! The referrers that `lock` found and could not read. The lock lists them as unresolved, with the
//! name of their item in front, so that the loss is not forgotten and the next run tries again.

use super::{Lock, UnresolvedItem};
use crate::image::LockedReferrer;
use landfall_model::report::{EntryKind, ItemStatus, ReportItem};
use landfall_model::{Descriptor, Digest};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a lost referrer in the lock and in reports: the name of its item, and its digest or
/// tag. The blank tells it from the name of an image.
pub fn lost_referrer_name(item: &str, reference: &str) -> String {
    format!("{item} {reference}")
}

/// The item in the name of a lost referrer.
pub fn lost_referrer_item(name: &str) -> Option<&str> {
    Some(name.split_once(' ')?.0)
}

/// The report item of a referrer that was lost or skipped.
pub fn referrer_item(
    item: &str,
    referrer: &Descriptor,
    status: ItemStatus,
    reason: impl Into<String>,
) -> ReportItem {
    ReportItem {
        kind: EntryKind::Referrer,
        name: lost_referrer_name(item, &referrer.digest.to_string()),
        digest: Some(referrer.digest.clone()),
        bytes: Some(referrer.size),
        packages: 0,
        status,
        reason: Some(reason.into()),
    }
}

impl Lock {
    /// The referrers that could not be read, each with the name of its item.
    pub fn lost_referrers(&self) -> impl Iterator<Item = (&str, &UnresolvedItem)> {
        let referrers = self.unresolved.iter();
        let referrers = referrers.filter(|lost| lost.kind == EntryKind::Referrer);
        referrers.filter_map(|lost| Some((lost_referrer_item(&lost.name)?, lost)))
    }

    /// The lock without the manifests and blobs of referrers that have these names, which contain
    /// their digests.
    pub fn without_referrers<'n>(&self, names: impl Iterator<Item = &'n str>) -> Cow<'_, Lock> {
        let mut lost: BTreeMap<&str, BTreeSet<Digest>> = BTreeMap::new();
        for name in names {
            if let Some((item, digest)) = name.split_once(' ')
                && let Ok(digest) = digest.parse()
            {
                lost.entry(item).or_default().insert(digest);
            }
        }
        if lost.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut lock = self.clone();
        for image in &mut lock.images {
            if let Some(lost) = lost.get(&*image.name.to_string()) {
                remove(lost, &mut image.referrers, &mut image.referrer_blobs);
                // attestations, which the index lists
                let manifests = image.manifests.iter().map(|child| &child.digest);
                let listed = manifests.chain(image.blobs.iter().map(|blob| &blob.digest));
                image.absent = listed.filter(|own| lost.contains(own)).cloned().collect();
            }
        }
        for chart in &mut lock.charts {
            if let Some(lost) = lost.get(&*chart.name.to_string()) {
                remove(lost, &mut chart.referrers, &mut chart.referrer_blobs);
            }
        }
        Cow::Owned(lock)
    }
}

fn remove(
    lost: &BTreeSet<Digest>,
    referrers: &mut Option<Vec<LockedReferrer>>,
    blobs: &mut Vec<Descriptor>,
) {
    if let Some(referrers) = referrers {
        referrers.retain(|referrer| !lost.contains(&referrer.digest));
    }
    blobs.retain(|blob| !lost.contains(&blob.digest));
}
