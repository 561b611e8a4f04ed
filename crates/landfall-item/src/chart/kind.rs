//! A chart as an item: what everybody else asks of it, and how it is locked.

use super::archive::ChartArchive;
use super::locked::{self, Chart, OpenReference};
use super::name::ChartName;
use super::wish::{AskedBy, WantedChart};
use super::written::{self, ChartEntry};
use super::{parts, repository, resolve};
use crate::image::{WantedImage, read_manifest};
use crate::resolver::Cause;
use crate::text::oversize;
use crate::{
    Ask, Checked, Contradiction, EntryReader, Exclude, FileForm, Found, ItemKind, LockedItem,
    Moving, Pins, Resolver, Stand,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::{ChartVersions, Location, Node, SourceSpan};
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Destination, DestinationMap, Digest, ImageRef, Manifest, host_component};
use std::borrow::Cow;
use std::fmt;

impl LockedItem for Chart {
    fn kind(&self) -> EntryKind {
        EntryKind::Chart
    }

    fn name(&self) -> Cow<'_, str> {
        self.name.as_str().into()
    }

    fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// It is an artifact with an archive among its blobs, or has the URL of an archive; and its
    /// sizes fit.
    fn fault(&self) -> Option<String> {
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

    fn indexes(&self) -> Vec<String> {
        self.name
            .repository
            .iter()
            .map(|url| repository::index_of(url))
            .collect()
    }

    fn destinations(&self, mapping: &DestinationMap) -> Vec<Destination> {
        mapping.destinations(&self.name.reference)
    }

    fn tag(&self) -> String {
        self.name.reference.tag.clone().unwrap_or_default()
    }

    /// With the source host in front; a port as `host_5001`.
    fn own_repository(&self) -> String {
        let ImageRef {
            registry,
            repository,
            ..
        } = &self.name.reference;
        format!("{}/{repository}", host_component(registry))
    }

    fn reference(&self) -> Option<&ImageRef> {
        Some(&self.name.reference)
    }

    /// An archive and its provenance stand at URLs.
    fn files(&self) -> Vec<FileForm<'_>> {
        let Some(url) = self.url.as_deref().filter(|_| self.media_type.is_none()) else {
            return Vec::new();
        };
        let own = FileForm::plain(EntryKind::Chart, url, &self.digest, self.size);
        let beside = self.provenance.iter();
        let beside = beside.map(|beside| {
            FileForm::plain(EntryKind::Sidecar, &beside.url, &beside.digest, beside.size)
        });
        std::iter::once(own).chain(beside).collect()
    }

    fn chart(&self) -> Option<ChartArchive> {
        let (archive, provenance) = parts::layers(self);
        let ChartName { chart, version, .. } = &self.name;
        let (chart, version) = (chart.clone(), version.clone());
        Some(ChartArchive {
            item: self.name.to_string(),
            chart,
            version,
            archive: archive?,
            provenance,
        })
    }

    fn open(&self) -> &[OpenReference] {
        &self.open
    }

    fn has_blob(&self, digest: &Digest) -> bool {
        self.digest == *digest || self.blobs.iter().any(|blob| blob.digest == *digest)
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

    fn source(&self) -> String {
        self.name.reference.name()
    }
}

impl ItemKind for Chart {
    const KIND: EntryKind = EntryKind::Chart;
    const HAS_FILES: bool = true;
    type Name = ChartName;
    type Wish = WantedChart;
    type Written = ChartEntry;

    fn is_named(text: &str) -> bool {
        ChartName::is_named(text)
    }

    fn key(&self) -> &ChartName {
        &self.name
    }

    fn wished(wish: &WantedChart) -> &ChartName {
        &wish.name
    }

    fn read(
        entry: &ChartEntry,
        node: &Node,
        reader: &EntryReader<'_>,
    ) -> Checked<Vec<(WantedChart, SourceSpan)>> {
        written::read(entry, node, reader)
    }

    fn name_of(text: &str, span: &SourceSpan) -> Checked<String> {
        written::name_of(text, span).map(String::from)
    }

    fn exclusion(text: &str, span: &SourceSpan) -> Checked<Exclude> {
        written::name_of(text, span).map(|name| Exclude::Url(name.into()))
    }

    fn is_excluded(wish: &WantedChart, exclude: &Exclude) -> bool {
        matches!(exclude, Exclude::Url(name) if *name == wish.name.as_str())
    }

    fn alike(wish: &WantedChart, exclude: &Exclude) -> Option<String> {
        matches!(exclude, Exclude::Url(_)).then(|| wish.name.to_string())
    }

    fn join(first: &mut WantedChart, second: &WantedChart) -> Result<(), Contradiction> {
        first.join(second)
    }

    fn may_ask(wish: &WantedChart) -> bool {
        wish.discover.is_some()
    }

    /// Its dependencies, and the images that were found in it.
    fn asks(wish: &WantedChart, chart: &Chart) -> Vec<Ask> {
        let (depth, signed) = match &wish.consumer_destinations {
            None => (1, chart.signed_by.is_some().then(|| chart.name.clone())),
            Some(asked) => (asked.depth + 1, asked.signed.clone()),
        };
        let charts = chart.dependencies.iter().map(|name| {
            let (name, consumer_destinations) = (
                name.clone(),
                Some(Box::new(AskedBy {
                    depth,
                    signed: signed.clone(),
                })),
            );
            Ask::Chart(WantedChart {
                name,
                pin: None,
                keys: None,
                update: None,
                consumer_destinations,
                ..wish.clone()
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
            let (platforms, referrers) = (wish.platforms.clone(), wish.referrers);
            let at = wish.at.clone();
            Ask::Image(WantedImage {
                name,
                pin,
                platforms,
                update: None,
                referrers,
                at,
            })
        });
        charts.chain(images).collect()
    }

    async fn resolve(
        resolver: &Resolver,
        wish: &WantedChart,
        old: Option<&Chart>,
        pins: Pins,
    ) -> Found<Chart> {
        let at = match check_dependency(resolver, wish) {
            Ok(at) => at,
            Err(cause) => return Found::Lost(None, cause),
        };
        let how = wish.discover.as_ref().map(ToString::to_string);
        let is_signed = |old: &Chart| match &wish.keys {
            Some(keys) => old.signed_by.as_ref().is_some_and(|key| keys.has(key)),
            None => old.signed_by.is_none(),
        };
        let same = |old: &&Chart| old.pin == wish.pin && old.discovered == how && is_signed(old);
        if let Some(old) = old.filter(same) {
            if matches!(pins, Pins::Keep | Pins::Referrers) {
                return Found::Kept(old.clone());
            }
            match resolve::head(at, old).await {
                Ok(Some(digest)) if digest == old.digest => return Found::Kept(old.clone()),
                Ok(_) => {}
                Err(_) if pins == Pins::Recall => {}
                Err(cause) if cause.is_gone => return Found::Gone(old.clone()),
                Err(cause) => return Found::Lost(Some(old.clone()), cause),
            }
        }
        let found = resolve::resolve(resolver, at, wish).await;
        let locked =
            old.filter(|_| matches!(pins, Pins::Keep | Pins::Referrers) && wish.pin.is_none());
        match (found, locked) {
            // a version that is another archive now is not taken silently
            (Ok(chart), Some(old)) if chart.digest != old.digest => Found::Lost(
                old_if(old, how.as_ref(), is_signed(old)),
                format!(
                    "upstream answers {} for this version now, the lock has {}; `--refresh` takes it",
                    chart.digest, old.digest
                )
                .into(),
            ),
            (Ok(chart), _) if old.is_some_and(|old| *old == chart) => Found::Kept(chart),
            (Ok(chart), _) => Found::New(chart),
            (Err(cause), _) => Found::Lost(old.filter(same).cloned(), cause),
        }
    }

    fn moving(entry: &ChartEntry) -> Vec<Moving<'_>> {
        written::moving(entry).into_iter().collect()
    }

    fn policy(wish: &WantedChart) -> Option<&str> {
        wish.update.as_deref()
    }

    fn tagged(wish: &WantedChart) -> Option<&ImageRef> {
        Some(&wish.name.reference).filter(|_| wish.name.repository.is_none())
    }

    fn indexed(wish: &WantedChart) -> Option<ChartVersions> {
        let ChartName {
            repository, chart, ..
        } = &wish.name;
        Some(ChartVersions {
            repo: repository.clone()?,
            chart: chart.clone(),
        })
    }

    fn demanded(wish: &WantedChart) -> Option<(&Digest, &Location)> {
        Some((wish.pin.as_ref()?, &wish.at))
    }

    async fn stand(resolver: &Resolver, wish: &WantedChart) -> Result<Stand, Cause> {
        let ImageRef {
            registry,
            repository,
            tag,
            ..
        } = &wish.name.reference;
        let asked = async {
            if let Some(url) = &wish.name.repository {
                let archive = repository::archive(resolver, url, &wish.name).await?;
                // of a chart that stands in a registry it may be either of two digests
                return Ok(archive.digest.filter(|_| archive.url.scheme() != "oci"));
            }
            let session = resolver.sessions().upstream(registry).await?;
            let tag = tag.as_deref().unwrap_or_default();
            let digest = session.head_manifest(repository, tag, false).await?;
            digest.map(Some).ok_or_else(Cause::gone)
        };
        match asked.await {
            Err(cause) if cause.is_gone => Ok(Stand::Gone),
            digest => Ok(Stand::There {
                digest: digest?,
                size: None,
            }),
        }
    }

    async fn is_upstream(resolver: &Resolver, old: &Chart) -> Result<(), Cause> {
        resolve::head(resolver, old).await.map(drop)
    }
}

/// The resolver for `wish`. A chart that only charts name is one of a limited number, and has no
/// account.
fn check_dependency<'r>(resolver: &'r Resolver, wish: &WantedChart) -> Result<&'r Resolver, Cause> {
    let Some(AskedBy { depth, signed }) = wish.consumer_destinations.as_deref() else {
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
fn old_if(old: &Chart, how: Option<&String>, is_signed: bool) -> Option<Chart> {
    (old.discovered.as_ref() == how && is_signed).then(|| old.clone())
}
