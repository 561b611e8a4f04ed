//! A chart as an item: what everybody else asks of it, and how it is locked.

use super::archive::ChartArchive;
use super::locked::{self, LockedChart};
use super::manifest_entry::{self, ChartEntry};
use super::name::ChartName;
use super::request::{ChartRequest, DependencyOrigin};
use super::{parts, repository, resolve};
use crate::image::{ImageRequest, read_manifest};
use crate::lockfile::Lock;
use crate::manifest::VersionSource;
use crate::resolver::ResolveError;
use crate::text::oversize;
use crate::{
    AuditedItem, DependencyRequest, EntryReader, Exclusion, FieldConflict, ItemIdentity, ItemKind,
    ItemRequest, LockedItem, ManifestEntry, ManifestResult, MovableVersion, PinPolicy, PushedItem,
    ResolvableRequest, ResolveOutcome, Resolver, ServedItem, UpdatableEntry, UpdatableRequest,
    UpstreamStatus, UrlFile,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::{ChartVersions, SourceLocation, SourceSpan, YamlNode};
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest, ImageRef, Manifest, host_component};
use std::borrow::Cow;
use std::fmt;

impl ItemIdentity for LockedChart {
    fn kind(&self) -> EntryKind {
        EntryKind::Chart
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn source(&self) -> String {
        self.name.reference.name()
    }
}

impl PushedItem for LockedChart {
    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        mapping.destinations(&self.name.reference)
    }

    fn tag(&self) -> String {
        self.name.reference.tag.clone().unwrap_or_default()
    }
}

impl AuditedItem for LockedChart {
    fn reference(&self) -> Option<&ImageRef> {
        Some(&self.name.reference)
    }

    fn has_blob(&self, digest: &Digest) -> bool {
        self.digest == *digest || self.blobs.iter().any(|blob| blob.digest == *digest)
    }
}

impl ServedItem for LockedChart {
    /// With the source host in front; a port as `host_5001`.
    fn own_repository(&self) -> String {
        let ImageRef {
            registry,
            repository,
            ..
        } = &self.name.reference;
        format!("{}/{repository}", host_component(registry))
    }

    /// An archive and its provenance stand at URLs.
    fn files(&self) -> Vec<UrlFile<'_>> {
        let Some(url) = self.url.as_deref().filter(|_| self.media_type.is_none()) else {
            return Vec::new();
        };
        let own = UrlFile::plain(EntryKind::Chart, url, &self.digest, self.size);
        let beside = self.provenance.iter();
        let beside = beside.map(|beside| {
            UrlFile::plain(EntryKind::Sidecar, &beside.url, &beside.digest, beside.size)
        });
        std::iter::once(own).chain(beside).collect()
    }
}

impl LockedItem for LockedChart {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// It is an artifact with an archive among its blobs, or has the URL of an archive; and its
    /// sizes fit.
    fn implausibility(&self) -> Option<String> {
        let sizes = self.blobs.iter().map(|blob| blob.size).chain([self.size]);
        let beside = self.provenance.iter().map(|beside| beside.size);
        let urls = self
            .url
            .iter()
            .chain(self.provenance.iter().map(|beside| &beside.url));
        let form = || {
            let is_good = match self.media_type {
                Some(_) => parts::layers(self).0.is_some() && self.provenance.is_none(),
                None => self.url.is_some() && self.blobs.is_empty(),
            };
            (!is_good).then(|| format!("'{}' has neither an archive nor the URL of one", self.name))
        };
        let url = || {
            let is_file = |url: &&String| crate::file::is_file_url(url);
            let is_artifact =
                |url: &&String| self.media_type.is_some() && url.starts_with("oci://");
            let url = urls
                .into_iter()
                .find(|url| !is_file(url) && !is_artifact(url))?;
            Some(format!("'{url}' is no http or https URL of a file"))
        };
        oversize(sizes.chain(beside)).or_else(form).or_else(url)
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn lookup_urls(&self) -> Vec<String> {
        self.name
            .repository
            .iter()
            .map(|url| repository::index_of(url))
            .collect()
    }

    /// The manifest of an artifact must name the blobs of the lock, and no others.
    fn contradictions(&self, blobs: &dyn BlobRead, _time: SignatureTime) -> Vec<String> {
        if self.media_type.is_none() {
            return Vec::new();
        }
        let (mut named, locked) = match read_manifest(blobs, &parts::manifest(self)) {
            Ok((_, Manifest::Image { config, layers, .. }, _)) => (
                std::iter::once(config).chain(layers).collect::<Vec<_>>(),
                self.blobs.clone(),
            ),
            Ok(_) => return vec![format!("{} is no manifest of a chart", self.digest)],
            Err(why) => return vec![why.to_string()],
        };
        let mut known = std::collections::BTreeSet::new();
        named.retain(|blob| known.insert(blob.digest.clone()));
        match named == locked {
            true => Vec::new(),
            false => vec![format!("{} names other blobs than the lock", self.digest)],
        }
    }

    fn as_chart(&self) -> Option<&LockedChart> {
        Some(self)
    }
}

impl LockedChart {
    /// The chart's archive, as an HTTP repository of charts offers it. `None` if the artifact has no
    /// archive.
    pub fn archive(&self) -> Option<ChartArchive> {
        let (archive, provenance) = parts::layers(self);
        Some(ChartArchive {
            item: self.name.to_string(),
            chart: self.name.chart.clone(),
            version: self.name.version.clone(),
            archive: archive?,
            provenance,
        })
    }
}

impl ItemKind for LockedChart {
    const KIND: EntryKind = EntryKind::Chart;
    const SECTION: &'static str = "charts";
    const HAS_FILES: bool = true;
    type Name = ChartName;
    type Request = ChartRequest;
    type Entry = ChartEntry;

    fn is_name(text: &str) -> bool {
        ChartName::is_named(text)
    }

    fn key(&self) -> &ChartName {
        &self.name
    }

    fn section(lock: &Lock) -> &[LockedChart] {
        &lock.charts
    }

    fn section_mut(lock: &mut Lock) -> &mut Vec<LockedChart> {
        &mut lock.charts
    }

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        manifest_entry::name_of(text, span).map(String::from)
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        manifest_entry::name_of(text, span).map(|name| Exclusion::Url(name.into()))
    }
}

impl ManifestEntry for ChartEntry {
    type Request = ChartRequest;

    fn expand(
        &self,
        node: &YamlNode<'_>,
        reader: &EntryReader<'_>,
    ) -> ManifestResult<Vec<(ChartRequest, SourceSpan)>> {
        manifest_entry::read(self, node, reader)
    }
}

impl UpdatableEntry for ChartEntry {
    fn movable_versions(&self) -> Vec<MovableVersion<'_>> {
        manifest_entry::moving(self).into_iter().collect()
    }
}

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
        self.join(other)
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
            // a version that is another archive now is not taken silently
            (Ok(chart), Some(old)) if chart.digest != old.digest => ResolveOutcome::Failed(
                old_if(old, how.as_ref(), is_signed(old)),
                format!(
                    "upstream answers {} for this version now, the lock has {}; `--refresh` takes it",
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

    fn version_source(&self) -> Option<VersionSource> {
        let Some(repo) = &self.name.repository else {
            return Some(VersionSource::tags(&self.name.reference));
        };
        Some(VersionSource::Chart(ChartVersions {
            repo: repo.clone(),
            chart: self.name.chart.clone(),
        }))
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
                // of a chart that stands in a registry it may be either of two digests
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

/// The resolver for `wish`. A chart that only charts name is one of a limited number, and has no
/// account.
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
            "{} is not verified: the signature of {signed} does not cover its dependencies; list it in the \
             manifest with a `key` of its own",
            wish.name
        ));
    }
    Ok(resolver.for_charts_at(&wish.name.place(), &wish.name.reference.registry))
}

/// The old pin, where it still is what is asked for.
fn old_if(old: &LockedChart, how: Option<&String>, is_signed: bool) -> Option<LockedChart> {
    (old.discovered.as_ref() == how && is_signed).then(|| old.clone())
}
