//! Verifies the signatures of all items of a lock by the rules of a site. Every command that
//! delivers items asks here.

use super::document::Lock;
use crate::image::download_locked;
use crate::{LockedItem, ResolveError, Resolver};
use futures_util::{FutureExt, StreamExt};
use landfall_content::BlobRead;
use landfall_model::report::{ItemStatus, ReportItem};
use landfall_model::sign::SignatureTime;
use landfall_signature::{SignaturePolicy, VerifiedSignature};
use std::sync::Arc;

/// The result of verifying the items of a lock.
#[derive(Debug, Default)]
pub struct SignatureVerdicts {
    /// The items that need a signature and have one, with their signatures.
    pub verified: Vec<(String, Vec<VerifiedSignature>)>,
    /// The items that do not meet the rules, with the reason.
    pub failed: Vec<ReportItem>,
}

impl SignatureVerdicts {
    /// Verifies the items of `lock` by `policy`. The signatures are read from `blobs`. A signature
    /// must have been valid when it was made; its key may have expired since then.
    pub fn of(
        lock: &Lock,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
    ) -> SignatureVerdicts {
        let mut verdicts = SignatureVerdicts::default();
        for item in lock.items() {
            match item.verify_signatures(policy, blobs, SignatureTime::Made) {
                Ok(verified) if verified.is_empty() => {}
                Ok(verified) => verdicts.verified.push((item.name().into_owned(), verified)),
                Err(reason) => verdicts.failed.push(failed_item(item, reason)),
            }
        }
        verdicts
    }

    /// Like [`SignatureVerdicts::of`], by the rules of `resolver`. The signatures that its store
    /// lacks are downloaded first.
    pub async fn of_upstream(lock: &Lock, resolver: &Resolver) -> SignatureVerdicts {
        let mut needed = lock.clone();
        needed.retain(|item| needs_signature(item, &resolver.signatures));
        let downloads: Vec<_> = needed
            .items()
            .map(|item| {
                let download = download_signatures(item, resolver);
                download.map(move |done| (item, done)).boxed()
            })
            .collect();
        let downloaded: Vec<(LockedItem<'_>, Result<(), ResolveError>)> =
            futures_util::stream::iter(downloads)
                .buffer_unordered(resolver.limits().jobs)
                .collect()
                .await;
        let blobs: Arc<dyn BlobRead> = Arc::new(resolver.disk.clone());
        let mut verdicts = SignatureVerdicts::of(&needed, &resolver.signatures, &blobs);
        // the error of the download says more than that the signature is missing from the store
        for failed in &mut verdicts.failed {
            let download = downloaded
                .iter()
                .find(|(item, _)| item.kind() == failed.kind && item.name() == failed.name);
            if let Some((_, Err(error))) = download {
                failed.reason = Some(format!("its signatures cannot be read: {error}"));
            }
        }
        verdicts
    }
}

/// Whether a rule of `policy` requires a signature of `item`.
fn needs_signature(item: LockedItem<'_>, policy: &SignaturePolicy) -> bool {
    item.signature_subject()
        .is_some_and(|subject| policy.applies_to(subject))
}

/// Downloads the signatures of `item` that the store lacks.
async fn download_signatures(
    item: LockedItem<'_>,
    resolver: &Resolver,
) -> Result<(), ResolveError> {
    match item {
        LockedItem::Image(image) => download_locked(resolver, image).await,
        LockedItem::Chart(chart) => chart.download_signatures(resolver).await,
        LockedItem::File(file) => file.download_signatures(resolver).await,
        LockedItem::Git(repository) => repository.download_packs(resolver).await,
        LockedItem::Packages(_) | LockedItem::Provider(_) => Ok(()),
    }
}

fn failed_item(item: LockedItem<'_>, reason: String) -> ReportItem {
    ReportItem {
        status: ItemStatus::Failed,
        reason: Some(reason),
        ..item.entry().item()
    }
}
