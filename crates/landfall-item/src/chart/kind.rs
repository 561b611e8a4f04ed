//! A locked chart as an item.

use super::locked::LockedChart;
use super::parts::ChartArchive;
use super::{parts, repository};
use crate::UrlFile;
use crate::file::is_file_url;
use crate::image::read_manifest;
use crate::text::oversize;
use landfall_content::BlobRead;
use landfall_model::report::EntryKind;
use landfall_model::{Manifest, is_path_below, local_path};
use std::collections::BTreeSet;

/// Whether `url` is the name of a local file with a valid path.
fn is_local(url: &str) -> bool {
    local_path(url).is_some_and(is_path_below) && !url.contains(char::is_control)
}

impl LockedChart {
    /// Only archives of HTTP servers have URLs; charts in registries are pulled as artifacts.
    pub fn files(&self) -> Vec<UrlFile<'_>> {
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

    /// Sizes must be plausible, and a chart must be an artifact with an archive among its blobs, or
    /// have the URL of an archive.
    pub(crate) fn implausibility(&self) -> Option<String> {
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
        let is_local_url = |url: &str| self.name.folder().is_some() && is_local(url);
        let local = self.path.iter().find(|path| !is_path_below(path));
        if let Some(path) = local {
            return Some(format!("'{path}' is not a path of a local chart"));
        }
        let provenance = self.provenance.iter().map(|provenance| &provenance.url);
        let url = self
            .url
            .iter()
            .chain(provenance)
            .find(|url| !is_file_url(url) && !is_artifact_url(url) && !is_local_url(url))?;
        Some(format!("'{url}' is not an http or https URL of a file"))
    }

    /// The URL of the index of the HTTP repository that has the chart, if there is one.
    pub(crate) fn index_urls(&self) -> Vec<String> {
        let repository = self.name.repository.iter();
        let repository = repository.filter(|_| self.name.folder().is_none());
        repository.map(|url| repository::index_of(url)).collect()
    }

    /// The manifest of an artifact must name exactly the blobs of the lock, and the referrers must
    /// agree with the lock.
    pub(crate) fn contradictions(&self, blobs: &dyn BlobRead) -> Vec<String> {
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
