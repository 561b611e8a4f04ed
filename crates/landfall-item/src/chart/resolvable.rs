//! How a request for a chart is merged, resolved and updated.

use super::locked::LockedChart;
use super::name::ChartName;
use super::request::{ChartRequest, DependencyOrigin};
use super::{repository, resolve};
use crate::field_conflict::{FieldConflict, merge_option};
use crate::image::ImageRequest;
use crate::{
    DependencyRequest, Exclusion, ItemRequest, PinPolicy, ResolvableRequest, ResolveError,
    ResolveOutcome, Resolver, UpdatableRequest, UpstreamStatus,
};
use landfall_model::document::SourceLocation;
use landfall_model::{Digest, ImageRef};

impl ItemRequest for ChartRequest {
    type Name = ChartName;

    fn name(&self) -> &ChartName {
        &self.name
    }

    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        matches!(exclusion, Exclusion::Url(name) if *name == self.name.as_str())
    }

    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        matches!(exclusion, Exclusion::Url(_)).then(|| self.name.to_string())
    }

    fn merge(&mut self, other: &ChartRequest) -> Result<(), FieldConflict> {
        merge_option("digest", &mut self.pin, &other.pin)?;
        merge_option("update policy", &mut self.update, &other.update)?;
        merge_option("key", &mut self.keys, &other.keys)?;
        if let (Some(own), Some(other)) = (&mut self.named_by, &other.named_by) {
            own.depth = own.depth.min(other.depth);
            own.signed = own.signed.take().or_else(|| other.signed.clone());
        }
        merge_option("discovery of images", &mut self.discover, &other.discover)
    }

    fn discovers_images(&self) -> bool {
        self.discover.is_some()
    }
}

impl ResolvableRequest for ChartRequest {
    type Item = LockedChart;

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedChart>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedChart> {
        let at = match check_dependency(resolver, self) {
            Ok(at) => at,
            Err(cause) => return ResolveOutcome::Failed(None, cause),
        };
        let how = self.discover.as_ref().map(ToString::to_string);
        let is_signed = |old: &LockedChart| match &self.keys {
            Some(keys) => old.signed_by.as_ref().is_some_and(|key| keys.has(key)),
            None => old.signed_by.is_none(),
        };
        let same =
            |old: &&LockedChart| old.pin == self.pin && old.discovered == how && is_signed(old);
        if let Some(old) = old.filter(same) {
            if matches!(pins, PinPolicy::Keep | PinPolicy::Referrers) {
                return ResolveOutcome::Kept(old.clone());
            }
            match resolve::head(at, old).await {
                Ok(Some(digest)) if digest == old.digest => {
                    return ResolveOutcome::Kept(old.clone());
                }
                Ok(_) => {}
                Err(_) if pins == PinPolicy::Recall => {}
                Err(cause) if cause.is_gone => return ResolveOutcome::Gone(old.clone()),
                Err(cause) => return ResolveOutcome::Failed(Some(old.clone()), cause),
            }
        }
        let found = resolve::resolve(resolver, at, self).await;
        let locked = old.filter(|_| {
            matches!(pins, PinPolicy::Keep | PinPolicy::Referrers) && self.pin.is_none()
        });
        match (found, locked) {
            // a version that was published again with other content is never accepted silently
            (Ok(chart), Some(old)) if chart.digest != old.digest => ResolveOutcome::Failed(
                old_if(old, how.as_ref(), is_signed(old)),
                format!(
                    "upstream answers {} for this version now, the lock has {}; `--refresh` \
                     takes it",
                    chart.digest, old.digest
                )
                .into(),
            ),
            (Ok(chart), _) if old.is_some_and(|old| *old == chart) => ResolveOutcome::Kept(chart),
            (Ok(chart), _) => ResolveOutcome::New(chart),
            (Err(cause), _) => ResolveOutcome::Failed(old.filter(same).cloned(), cause),
        }
    }

    fn dependencies(&self, chart: &LockedChart) -> Vec<DependencyRequest> {
        let (depth, signed) = match &self.named_by {
            None => (1, chart.signed_by.is_some().then(|| chart.name.clone())),
            Some(asked) => (asked.depth + 1, asked.signed.clone()),
        };
        let charts = chart.dependencies.iter().map(|name| {
            DependencyRequest::Chart(ChartRequest {
                name: name.clone(),
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
            let ImageRef { tag, digest, .. } = &found.name;
            let (name, pin) = match (tag, digest) {
                (Some(_), pin) => (
                    ImageRef {
                        digest: None,
                        ..found.name.clone()
                    },
                    pin.clone(),
                ),
                _ => (found.name.clone(), None),
            };
            DependencyRequest::Image(ImageRequest {
                name,
                pin,
                platforms: self.platforms.clone(),
                update: None,
                referrers: self.referrers,
                at: self.at.clone(),
            })
        });
        charts.chain(images).collect()
    }

    async fn check_upstream(resolver: &Resolver, old: &LockedChart) -> Result<(), ResolveError> {
        resolve::head(resolver, old).await.map(drop)
    }
}

impl UpdatableRequest for ChartRequest {
    fn update_policy(&self) -> Option<&str> {
        self.update.as_deref()
    }

    fn tagged_reference(&self) -> Option<&ImageRef> {
        Some(&self.name.reference).filter(|_| self.name.repository.is_none())
    }

    fn demanded_digest(&self) -> Option<(&Digest, &SourceLocation)> {
        Some((self.pin.as_ref()?, &self.at))
    }

    async fn upstream_status(&self, resolver: &Resolver) -> Result<UpstreamStatus, ResolveError> {
        let ImageRef {
            registry,
            repository,
            tag,
            ..
        } = &self.name.reference;
        let asked = async {
            if let Some(url) = &self.name.repository {
                let archive = repository::archive(resolver, url, &self.name).await?;
                // an index that points to a registry may name the digest of the archive or of the
                // artifact
                return Ok(archive.digest.filter(|_| archive.url.scheme() != "oci"));
            }
            let session = resolver.sessions().upstream(registry).await?;
            let tag = tag.as_deref().unwrap_or_default();
            let digest = session.head_manifest(repository, tag, false).await?;
            digest.map(Some).ok_or_else(ResolveError::gone)
        };
        match asked.await {
            Err(cause) if cause.is_gone => Ok(UpstreamStatus::Gone),
            digest => Ok(UpstreamStatus::Present {
                digest: digest?,
                size: None,
            }),
        }
    }
}

/// The resolver for `request`. A chart that the manifest does not list counts against a limit, and
/// is fetched without credentials.
fn check_dependency<'r>(
    resolver: &'r Resolver,
    wish: &ChartRequest,
) -> Result<&'r Resolver, ResolveError> {
    let Some(DependencyOrigin { depth, signed }) = wish.named_by.as_deref() else {
        return Ok(resolver);
    };
    let most = resolver.limits().chart_dependency_depth;
    if *depth > most {
        let why = format!(
            "charts name each other in a chain of more than {most}; list it in the manifest"
        );
        return Err(why.into());
    }
    resolver.count_dependency()?;
    if let Some(signed) = signed {
        resolver.note_once(&format!(
            "{} is not verified: the signature of {signed} does not cover its dependencies; list \
             it in the \
             manifest with a `key` of its own",
            wish.name
        ));
    }
    Ok(resolver.for_charts_at(&wish.name.place(), &wish.name.reference.registry))
}

/// The old pin, if it still satisfies the request.
fn old_if(old: &LockedChart, how: Option<&String>, is_signed: bool) -> Option<LockedChart> {
    (old.discovered.as_ref() == how && is_signed).then(|| old.clone())
}
