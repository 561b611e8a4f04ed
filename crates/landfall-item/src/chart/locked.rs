//! A chart in the lock, and its text there.

use super::name::ChartName;
use crate::file::LockedSidecar;
use crate::image::{LockedReferrer, write_referrers, write_verified};
use crate::text::quoted;
use landfall_model::{Descriptor, Digest, ImageRef, MediaType};
use landfall_signature::{VerifiedSignature, read_verified};
use serde::Deserialize;
use std::fmt::{self, Write};

/// A chart in the lock: an artifact of a registry, with `mediaType` and `blobs`, or an archive at a
/// `url`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedChart {
    /// The name, with repository and version.
    pub name: ChartName,
    /// The digest that the landfall manifest requires.
    #[serde(default)]
    pub pin: Option<Digest>,
    /// Digest of the artifact's manifest, or of the archive.
    pub digest: Digest,
    /// The media type of the artifact's manifest; `None` for an archive.
    #[serde(default)]
    pub media_type: Option<MediaType>,
    /// Size of the manifest or of the archive, in bytes.
    pub size: u64,
    /// The signatures that met the rules of `verify:`, sorted; empty if the chart needs none.
    #[serde(default, deserialize_with = "read_verified")]
    pub verified: Vec<VerifiedSignature>,
    /// Config and layers of the artifact, in the manifest's order.
    #[serde(default, deserialize_with = "crate::image::read_blobs")]
    pub blobs: Vec<Descriptor>,
    /// Signatures and other manifests that refer to the artifact. `None` if they were not looked
    /// up, because no rule of `verify:` matches the chart.
    #[serde(default)]
    pub referrers: Option<Vec<LockedReferrer>>,
    /// Configs and layers of the referrers that are not among `blobs`, sorted by digest.
    #[serde(default, deserialize_with = "crate::image::read_blobs")]
    pub referrer_blobs: Vec<Descriptor>,
    /// The URL of the archive; or the reference of the artifact, if the index of an HTTP repository
    /// points to a registry.
    #[serde(default)]
    pub url: Option<String>,
    /// The provenance file next to an archive.
    #[serde(default)]
    pub provenance: Option<LockedSidecar>,
    /// The fingerprint of the key that signed the provenance, if the manifest requires one.
    #[serde(default)]
    pub signed_by: Option<String>,
    /// The `apiVersion` in Chart.yaml: `v1` or `v2`.
    pub api_version: String,
    /// The `appVersion` in Chart.yaml, the version of the packaged software.
    #[serde(default)]
    pub app_version: Option<String>,
    /// The charts that it depends on and does not bundle.
    #[serde(default)]
    pub dependencies: Vec<ChartName>,
    /// The settings with which its images were discovered; `None` if they were not.
    #[serde(default)]
    pub discovered: Option<String>,
    /// The images that were discovered.
    #[serde(default)]
    pub images: Vec<ChartImage>,
    /// Texts that may be an image reference; a person has to decide.
    #[serde(default)]
    pub open: Vec<OpenReference>,
}

/// An image that was found in a chart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChartImage {
    /// The image reference, with a tag or digest.
    pub name: ImageRef,
    /// The position in the chart that names the image.
    pub at: String,
}

/// A text in a chart that may be an image reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpenReference {
    /// The text as the chart writes it.
    pub reference: String,
    /// The position of the text in the chart.
    pub at: String,
    /// The reason why it may not be an image.
    pub why: String,
}

impl LockedChart {
    /// The reference of the artifact at its registry; `None` for an archive of an HTTP server.
    pub(super) fn source(&self) -> Option<ImageRef> {
        self.media_type.as_ref()?;
        let named = self
            .url
            .as_ref()
            .and_then(|url| url.strip_prefix("oci://")?.parse().ok());
        Some(named.unwrap_or_else(|| self.name.reference.clone()))
    }
}

/// Writes `chart` as YAML, one value on each line so that diffs are small.
pub(super) fn write(chart: &LockedChart, out: &mut dyn Write) -> fmt::Result {
    writeln!(out, "- name: {}", quoted(chart.name.as_str()))?;
    if let Some(pin) = &chart.pin {
        writeln!(out, "  pin: {pin}")?;
    }
    writeln!(out, "  digest: {}", chart.digest)?;
    if let Some(media_type) = &chart.media_type {
        writeln!(out, "  mediaType: {}", quoted(media_type))?;
    }
    writeln!(out, "  size: {}", chart.size)?;
    write_verified(out, &chart.verified)?;
    crate::image::write_blobs(out, "blobs", &chart.blobs)?;
    write_referrers(out, chart.referrers.as_deref(), &chart.referrer_blobs)?;
    if let Some(url) = &chart.url {
        writeln!(out, "  url: {}", quoted(url))?;
    }
    if let Some(LockedSidecar { url, digest, size }) = &chart.provenance {
        writeln!(
            out,
            "  provenance: {{url: {}, digest: {digest}, size: {size}}}",
            quoted(url)
        )?;
    }
    if let Some(key) = &chart.signed_by {
        writeln!(out, "  signedBy: {}", quoted(key))?;
    }
    writeln!(out, "  apiVersion: {}", quoted(&chart.api_version))?;
    if let Some(version) = &chart.app_version {
        writeln!(out, "  appVersion: {}", quoted(version))?;
    }
    list(out, "dependencies", &chart.dependencies, |name| {
        quoted(name.as_str())
    })?;
    if let Some(how) = &chart.discovered {
        writeln!(out, "  discovered: {}", quoted(how))?;
    }
    list(out, "images", &chart.images, |image| {
        format!(
            "{{name: {}, at: {}}}",
            quoted(&image.name.to_string()),
            quoted(&image.at)
        )
    })?;
    list(out, "open", &chart.open, |open| {
        let reference = quoted(&open.reference);
        let at = quoted(&open.at);
        let why = quoted(&open.why);
        format!("{{reference: {reference}, at: {at}, why: {why}}}")
    })
}

fn list<T>(
    out: &mut dyn Write,
    title: &str,
    items: &[T],
    line: impl Fn(&T) -> String,
) -> fmt::Result {
    if !items.is_empty() {
        writeln!(out, "  {title}:")?;
    }
    items
        .iter()
        .try_for_each(|item| writeln!(out, "  - {}", line(item)))
}
