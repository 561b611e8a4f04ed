//! A chart in a registry as an artifact with referrers. If a rule of `verify:` matches the chart,
//! its referrers are looked up and its signatures are verified.

use super::locked::LockedChart;
use super::parts;
use crate::image::{ImageSignatureError, LockedImage, contradictions, find_signatures};
use crate::{PinPolicy, ResolveError, ResolveOutcome, Resolver, verified_signatures};
use landfall_content::BlobRead;
use landfall_signature::{SignaturePolicy, VerifiedSignature};

impl LockedChart {
    /// The chart as an artifact of a registry; `None` for an archive of an HTTP server.
    pub(super) fn artifact(&self) -> Option<LockedImage> {
        let name = self.source()?;
        let mut blobs = self.blobs.clone();
        blobs.sort_by(|a, b| a.digest.cmp(&b.digest));
        Some(LockedImage {
            blobs,
            verified: self.verified.clone(),
            referrers: self.referrers.clone(),
            referrer_blobs: self.referrer_blobs.clone(),
            ..LockedImage::new(name, parts::manifest(self))
        })
    }

    /// Verifies the signatures of the chart, which are read from `blobs`. Returns those that meet
    /// the policy; empty if the chart needs none.
    ///
    /// # Errors
    /// If the chart does not meet the policy, or a signature cannot be read.
    pub fn verified_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &dyn BlobRead,
    ) -> Result<Vec<VerifiedSignature>, ImageSignatureError> {
        match self.artifact() {
            Some(artifact) => verified_signatures(&artifact, policy, blobs),
            None => Ok(Vec::new()),
        }
    }

    /// The contradictions between the chart's referrers and the lock.
    pub(super) fn referrer_contradictions(&self, blobs: &dyn BlobRead) -> Vec<String> {
        match self.artifact().filter(|_| self.referrers.is_some()) {
            Some(artifact) => contradictions(&artifact, blobs),
            None => Vec::new(),
        }
    }

    /// Whether the verified signatures in the lock meet the rules of `resolver`.
    fn is_verified_for(&self, resolver: &Resolver) -> bool {
        match self.source() {
            Some(name) => resolver.signatures().accepts(&name, &self.verified),
            None => true,
        }
    }

    /// Whether the lock lists the chart's referrers if, and only if, a rule matches the chart.
    fn has_referrers_for(&self, resolver: &Resolver) -> bool {
        let is_needed = self
            .source()
            .is_some_and(|name| resolver.signatures().applies_to(&name));
        self.referrers.is_some() == is_needed
    }
}

/// Looks up and verifies the signatures of the chart that `outcome` locks, if a rule matches it.
/// `old` is the chart in the old lock.
pub(super) async fn verify_outcome(
    resolver: &Resolver,
    outcome: ResolveOutcome<LockedChart>,
    old: Option<&LockedChart>,
    pins: PinPolicy,
) -> ResolveOutcome<LockedChart> {
    let chart = match outcome {
        ResolveOutcome::Kept(chart) | ResolveOutcome::New(chart) => chart,
        ResolveOutcome::Gone(old) if !old.is_verified_for(resolver) => {
            return ResolveOutcome::Failed(None, ResolveError::gone());
        }
        ResolveOutcome::Failed(old, cause) => {
            return ResolveOutcome::Failed(old.filter(|old| old.is_verified_for(resolver)), cause);
        }
        outcome @ ResolveOutcome::Gone(_) => return outcome,
    };
    // `--refresh` and `--check` verify again; otherwise the record in the lock is enough
    let is_recorded = chart.is_verified_for(resolver) && chart.has_referrers_for(resolver);
    if is_recorded && pins == PinPolicy::Keep && old == Some(&chart) {
        return ResolveOutcome::Kept(chart);
    }
    let found = match chart.artifact() {
        Some(artifact) => find_signatures(resolver, artifact).await,
        None => Ok(None),
    };
    let found = match found {
        Ok(found) => found,
        Err(cause) => {
            let kept = old.filter(|old| {
                old.is_verified_for(resolver) && (old.digest != chart.digest || cause.is_temporary)
            });
            return ResolveOutcome::Failed(kept.cloned(), cause);
        }
    };
    let (verified, referrers, referrer_blobs) = match found {
        Some(artifact) => (
            artifact.verified,
            artifact.referrers,
            artifact.referrer_blobs,
        ),
        None => (Vec::new(), None, Vec::new()),
    };
    let chart = LockedChart {
        verified,
        referrers,
        referrer_blobs,
        ..chart
    };
    if old == Some(&chart) {
        ResolveOutcome::Kept(chart)
    } else {
        ResolveOutcome::New(chart)
    }
}
