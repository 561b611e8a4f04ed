//! A locked chart as an item.

use super::archive::ChartArchive;
use super::locked::{self, LockedChart};
use super::manifest_entry::{self, ChartEntry};
use super::name::ChartName;
use super::request::ChartRequest;
use super::{parts, repository};
use crate::image::read_manifest;
use crate::text::oversize;
use crate::{
    AuditedItem, Exclusion, ItemIdentity, ItemKind, LockedItem, ManifestResult, PushedItem,
    ServedItem, UrlFile,
};
use landfall_content::{BlobRead, LockEntry};
use landfall_model::document::SourceSpan;
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
    /// The repository with the source host in front; a port is written as `host_5001`.
    fn own_repository(&self) -> String {
        let ImageRef {
            registry,
            repository,
            ..
        } = &self.name.reference;
        format!("{}/{repository}", host_component(registry))
    }

    /// Only charts of HTTP repositories have URLs; charts of registries are pulled as artifacts.
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

    /// A chart must be an artifact with an archive among its blobs, or have the URL of an archive;
    /// its sizes must add up without overflow.
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

    /// The manifest of an artifact must name exactly the blobs of the lock.
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
        if named == locked {
            Vec::new()
        } else {
            vec![format!("{} names other blobs than the lock", self.digest)]
        }
    }

    fn as_chart(&self) -> Option<&LockedChart> {
        Some(self)
    }
}

impl LockedChart {
    /// The chart's archive, as an HTTP repository of charts offers it. `None` if the artifact has
    /// no archive.
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

    fn parse_name(text: &str, span: &SourceSpan) -> ManifestResult<String> {
        manifest_entry::name_of(text, span).map(String::from)
    }

    fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
        manifest_entry::name_of(text, span).map(|name| Exclusion::Url(name.into()))
    }
}
