//! A locked chart as an item.

use super::locked::LockedChart;
use super::manifest_entry::ChartEntry;
use super::name::ChartName;
use super::parts::ChartArchive;
use super::request::ChartRequest;
use super::{locked, manifest_entry, parts, repository};
use crate::file::is_file_url;
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
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

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

    fn referrer_tags(&self) -> Vec<(&str, &Digest)> {
        let tagged = self.referrers.iter().flatten();
        tagged
            .filter_map(|referrer| Some((referrer.tag.as_deref()?, &referrer.digest)))
            .collect()
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
    /// The repository with the source host before it; a port is written as `host_5001`.
    fn own_repository(&self) -> String {
        let ImageRef {
            registry,
            repository,
            ..
        } = &self.name.reference;
        format!("{}/{repository}", host_component(registry))
    }

    /// Only archives of HTTP servers have URLs; charts in registries are pulled as artifacts.
    fn files(&self) -> Vec<UrlFile<'_>> {
        let Some(url) = self.url.as_deref().filter(|_| self.media_type.is_none()) else {
            return Vec::new();
        };
        let own = UrlFile::plain(EntryKind::Chart, url, &self.digest, self.size);
        let provenance = self.provenance.iter().map(|provenance| {
            UrlFile::plain(
                EntryKind::Sidecar,
                &provenance.url,
                &provenance.digest,
                provenance.size,
            )
        });
        std::iter::once(own).chain(provenance).collect()
    }
}

impl LockedItem for LockedChart {
    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        locked::write(self, out)
    }

    /// Sizes must be plausible, and a chart must be an artifact with an archive among its blobs, or
    /// have the URL of an archive.
    fn implausibility(&self) -> Option<String> {
        let blobs = self.blobs.iter().map(|blob| blob.size);
        let provenance = self.provenance.iter().map(|provenance| provenance.size);
        if let Some(fault) = oversize(blobs.chain(provenance).chain([self.size])) {
            return Some(fault);
        }
        // an artifact is checked like an image with referrers
        if let Some(fault) = self
            .artifact()
            .and_then(|artifact| artifact.implausibility())
        {
            return Some(fault);
        }
        let has_archive = match self.media_type {
            Some(_) => parts::layers(self).archive.is_some() && self.provenance.is_none(),
            None => {
                let is_bare = self.blobs.is_empty() && self.referrers.is_none();
                self.url.is_some() && is_bare && self.referrer_blobs.is_empty()
            }
        };
        if !has_archive {
            return Some(format!(
                "'{}' has neither an archive nor the URL of one",
                self.name
            ));
        }
        // the index of an HTTP repository may point to a registry
        let is_artifact_url = |url: &str| self.media_type.is_some() && url.starts_with("oci://");
        let provenance = self.provenance.iter().map(|provenance| &provenance.url);
        let url = self
            .url
            .iter()
            .chain(provenance)
            .find(|url| !is_file_url(url) && !is_artifact_url(url))?;
        Some(format!("'{url}' is not an http or https URL of a file"))
    }

    fn entry(&self) -> LockEntry {
        parts::entry(self)
    }

    fn signature_subject(&self) -> Option<RuleSubject> {
        Some(self.rule_subject())
    }

    fn recorded_signatures(&self) -> &[VerifiedSignature] {
        &self.verified
    }

    fn verify_signatures(
        &self,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, String> {
        let verified = self.verified_signatures(policy, &**blobs, time);
        verified.map_err(|error| error.to_string())
    }

    fn lookup_urls(&self) -> Vec<String> {
        self.name
            .repository
            .iter()
            .map(|url| repository::index_of(url))
            .collect()
    }

    /// The manifest of an artifact must name exactly the blobs of the lock, and the referrers must
    /// agree with the lock.
    fn contradictions(&self, blobs: &dyn BlobRead, _time: SignatureTime) -> Vec<String> {
        if self.media_type.is_none() {
            return Vec::new();
        }
        let (mut named, locked) = match read_manifest(blobs, &parts::manifest(self)) {
            Ok((_, Manifest::Image { config, layers, .. }, _)) => (
                config.into_iter().chain(layers).collect::<Vec<_>>(),
                self.blobs.clone(),
            ),
            Ok(_) => return vec![format!("{} is not the manifest of a chart", self.digest)],
            Err(why) => return vec![why.to_string()],
        };
        // the lock lists a repeated blob once
        let mut known = BTreeSet::new();
        named.retain(|blob| known.insert(blob.digest.clone()));
        if named == locked {
            self.referrer_contradictions(blobs)
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
        let layers = parts::layers(self);
        Some(ChartArchive {
            item: self.name.to_string(),
            chart: self.name.chart.clone(),
            version: self.name.version.clone(),
            archive: layers.archive?,
            provenance: layers.provenance,
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
