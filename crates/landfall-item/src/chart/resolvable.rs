//! How a request for a chart is merged, resolved and updated.

use super::locked::LockedChart;
use super::name::ChartName;
use super::request::{ChartRequest, DependencyOrigin};
use super::{locked, repository, resolve};
use crate::image::{ImageRequest, check_equal_platforms, check_equal_referrers, logged_since};
use crate::item_kind::meets_rules;
use crate::text::{FieldConflict, merge_option};
use crate::{
    DependencyRequest, Exclusion, ItemRequest, PinPolicy, ResolveError, ResolveOutcome, Resolver,
};
use jiff::Timestamp;
use landfall_model::document::{SourceLocation, UpdateRule};
use landfall_model::{Digest, ImageRef};

impl ItemRequest for ChartRequest {
    type Name = ChartName;
    type Item = LockedChart;

    fn name(&self) -> &ChartName {
        &self.name
    }

    fn is_local(&self) -> bool {
        self.local.is_some()
    }

    fn merge(&mut self, other: &ChartRequest) -> Result<(), FieldConflict> {
        merge_option("path", &mut self.local, &other.local)?;
        merge_option("digest", &mut self.pin, &other.pin)?;
        merge_option("update policy", &mut self.update, &other.update)?;
        merge_option("key", &mut self.keys, &other.keys)?;
        if let (Some(own), Some(other)) = (&mut self.named_by, &other.named_by) {
            own.depth = own.depth.min(other.depth);
            own.signed = own.signed.take().or_else(|| other.signed.clone());
        }
        // platforms and referrers are those of the discovered images
        match (&self.discover, &other.discover) {
            (None, Some(_)) => {
                self.platforms.clone_from(&other.platforms);
                self.referrers = other.referrers;
            }
            (Some(_), Some(_)) => {
                check_equal_platforms(&self.platforms, &other.platforms)?;
                check_equal_referrers(self.referrers, other.referrers)?;
            }
            (_, None) => {}
        }
        merge_option("discovery of images", &mut self.discover, &other.discover)
    }

    fn may_find(&self, exclusion: &Exclusion) -> bool {
        self.discover.is_some() && matches!(exclusion, Exclusion::Reference(_))
    }

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedChart>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedChart> {
        let chart_resolver = match chart_resolver(resolver, self) {
            Ok(chart_resolver) => chart_resolver,
            Err(cause) => return ResolveOutcome::Failed(None, cause),
        };
        let outcome = self
            .resolve_content(resolver, chart_resolver, old, pins)
            .await;
        locked::verify_outcome(chart_resolver, outcome, old, pins).await
    }

    fn accepts(&self, old: &LockedChart, resolver: &Resolver) -> bool {
        is_signed_for(self, old) && meets_rules(old, resolver)
    }

    fn dependencies(&self, chart: &LockedChart) -> Vec<DependencyRequest> {
        let (depth, signed) = match &self.named_by {
            None => (1, chart.signed_by.is_some().then(|| chart.name.clone())),
            Some(origin) => (origin.depth + 1, origin.signed.clone()),
        };
        // dependencies inherit the discovery settings of the chart in the manifest; the digest,
        // policy and keys apply only to that chart
        let charts = chart.dependencies.iter().map(|name| {
            DependencyRequest::Chart(ChartRequest {
                name: name.clone(),
                local: None,
                pin: None,
                keys: None,
                update: None,
                named_by: Some(Box::new(DependencyOrigin {
                    depth,
                    signed: signed.clone(),
                })),
                ..self.clone()
            })
        });
        let images = chart.images.iter().map(|found| {
            // as in a manifest: with a tag, the digest is a requirement; without a tag, it is a
            // part of the name
            let mut name = found.name.clone();
            let pin = name.digest.take_if(|_| name.tag.is_some());
            let (platforms, at) = (self.platforms.clone(), self.at.clone());
            let request = ImageRequest::new(name, pin, platforms, self.referrers, at);
            DependencyRequest::Image(request)
        });
        charts.chain(images).collect()
    }

    async fn check_upstream(resolver: &Resolver, old: &LockedChart) -> Result<(), ResolveError> {
        resolve::head(resolver, old).await.map(drop)
    }

    fn update_rule(&self) -> Option<&UpdateRule> {
        self.update.as_ref()
    }

    fn tagged_reference(&self) -> Option<&ImageRef> {
        Some(&self.name.reference).filter(|_| self.name.repository.is_none())
    }

    fn demanded_digest(&self) -> Option<(&Digest, &SourceLocation)> {
        Some((self.pin.as_ref()?, &self.at))
    }

    async fn look_up(
        &self,
        resolver: &Resolver,
    ) -> Result<(Option<Digest>, Option<u64>), ResolveError> {
        if let Some(url) = &self.name.repository {
            let archive = repository::archive(resolver, url, &self.name).await?;
            // an index that points to a registry may name the digest of the archive or of the
            // artifact
            let is_oci = archive.urls.iter().any(|url| url.scheme() == "oci");
            return Ok((archive.digest.filter(|_| !is_oci), None));
        }
        let reference = &self.name.reference;
        let tag = reference.tag.as_deref().unwrap_or_default();
        Ok((Some(resolver.head_manifest(reference, tag).await?), None))
    }

    async fn check_content(
        &self,
        resolver: &Resolver,
        digest: Option<&Digest>,
    ) -> Result<(), ResolveError> {
        match digest {
            // only a download shows what is in the archive of an HTTP repository
            Some(digest) if self.name.repository.is_none() => {
                resolve::check_artifact(resolver, &self.name.reference, digest).await?;
                // fails if the chart does not meet a rule for signatures
                self.logged_since(resolver, digest).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn logged_since(
        &self,
        resolver: &Resolver,
        digest: &Digest,
    ) -> Result<Option<Timestamp>, ResolveError> {
        // logged signatures belong to an artifact; a chart in an HTTP repository usually has none
        if self.name.repository.is_some() {
            return Ok(None);
        }
        logged_since(resolver, &self.name.reference, digest).await
    }
}

impl ChartRequest {
    /// Resolves the chart without verifying its signatures.
    async fn resolve_content(
        &self,
        resolver: &Resolver,
        chart_resolver: &Resolver,
        old: Option<&LockedChart>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedChart> {
        if self.local.is_some() {
            let found = resolve::resolve(resolver, chart_resolver, self).await;
            return ResolveOutcome::of(found, old);
        }
        // the old chart, if it was searched for images and verified as this request requires
        let comparable = old.filter(|old| is_signed_for(self, old) && is_searched_for(self, old));
        let matching = comparable.filter(|old| old.pin == self.pin);
        if let Some(old) = matching {
            if pins.keeps() {
                return ResolveOutcome::Kept(old.clone());
            }
            match resolve::is_unchanged(chart_resolver, old).await {
                Ok(true) => return ResolveOutcome::Kept(old.clone()),
                Err(cause) if pins != PinPolicy::Recall => {
                    return ResolveOutcome::lost(Some(old), pins, cause);
                }
                Ok(false) | Err(_) => {}
            }
        }
        let found = resolve::resolve(resolver, chart_resolver, self).await;
        let locked = old.filter(|_| pins.keeps() && self.pin.is_none());
        match (found, locked) {
            // a version that was published again with other content is never accepted silently
            (Ok(chart), Some(old)) if chart.digest != old.digest => ResolveOutcome::Failed(
                comparable.cloned(),
                format!(
                    "upstream now has {} for this version, but the lock has {}; use `--refresh` \
                     to accept it",
                    chart.digest, old.digest
                )
                .into(),
            ),
            (Ok(chart), _) if old.is_some_and(|old| *old == chart) => ResolveOutcome::Kept(chart),
            (Ok(chart), _) => ResolveOutcome::New(chart),
            (Err(cause), _) => ResolveOutcome::Failed(matching.cloned(), cause),
        }
    }
}

/// The resolver for `request`. A chart that the manifest does not list counts against a limit, and
/// is fetched without credentials unless the manifest or the site names its repository.
fn chart_resolver<'r>(
    resolver: &'r Resolver,
    request: &ChartRequest,
) -> Result<&'r Resolver, ResolveError> {
    let Some(DependencyOrigin { depth, signed }) = request.named_by.as_deref() else {
        return Ok(resolver);
    };
    let limit = resolver.limits().chart_dependency_depth;
    if *depth > limit {
        let why = format!(
            "charts depend on each other in a chain of more than {limit} dependencies; list this \
             chart in the manifest"
        );
        return Err(why.into());
    }
    resolver.count_dependency()?;
    if let Some(signed) = signed {
        resolver.note_once(&format!(
            "{} is not verified: the signature of {signed} does not cover its dependencies; list \
             it in the manifest with a `key` of its own",
            request.name
        ));
    }
    let repository = request.name.repository_url();
    Ok(resolver.for_dependency_at(&repository, &request.name.reference.registry))
}

/// Whether the provenance of `old` was verified as `request` requires.
fn is_signed_for(request: &ChartRequest, old: &LockedChart) -> bool {
    match &request.keys {
        Some(keys) => old.signed_by.as_ref().is_some_and(|key| keys.has(key)),
        None => old.signed_by.is_none(),
    }
}

/// Whether `old` was searched for images with the settings of `request`.
fn is_searched_for(request: &ChartRequest, old: &LockedChart) -> bool {
    old.discovered == request.discover.as_ref().map(ToString::to_string)
}
