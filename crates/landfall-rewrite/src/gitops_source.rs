//! Sources that GitOps controllers pull from a registry: Flux's OCIRepository and HelmRepository,
//! and the sources of an Argo CD Application.

use super::yaml::{YamlEntry, YamlNode, YamlScalar, position_of, text_of, value_of};
use landfall_model::{ChartVersion, ChartVersionRange, Digest, ImageRef};

/// A source in a registry, from the keys of one mapping.
pub(crate) struct GitopsSource<'s> {
    /// The position of the entry with the address.
    pub(crate) at: usize,
    /// The value with the address: `oci://registry/repository`, or without a scheme.
    pub(crate) address: &'s YamlScalar<'s>,
    /// The name of the chart, if there is one. The controller appends it to the address.
    pub(crate) chart: Option<&'s str>,
    pub(crate) version: SourceVersion<'s>,
    /// Whether the artifact is certainly a Helm chart.
    pub(crate) is_chart: bool,
}

/// The version that a source selects.
#[derive(Clone, Copy)]
pub(crate) enum SourceVersion<'s> {
    /// One tag.
    Tag(&'s str),
    /// One digest, and the scalar that contains it.
    Digest(&'s str, &'s YamlScalar<'s>),
    /// The newest tag in a range of versions.
    Range(&'s str),
    /// No version: the address is a prefix. Other objects select the charts below it.
    Prefix,
}

const SCHEME: &str = "oci://";

impl<'s> GitopsSource<'s> {
    /// The source in a mapping. `None` if the mapping is not a source, or the source is not in a
    /// registry.
    pub(crate) fn of(entries: &'s [YamlEntry<'s>]) -> Option<GitopsSource<'s>> {
        flux_source(entries).or_else(|| argo_source(entries))
    }

    /// The text of the address, without blanks around it.
    pub(crate) fn written(&self) -> &'s str {
        self.address.value.trim()
    }

    /// The scheme of the address: `oci://` or empty.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.written().starts_with(SCHEME) {
            SCHEME
        } else {
            ""
        }
    }

    /// The repository, without a scheme.
    pub(crate) fn repository(&self) -> String {
        let address = self.written().trim_start_matches(SCHEME);
        let address = address.trim_end_matches('/');
        match self.chart {
            Some(chart) => format!("{address}/{chart}"),
            None => address.to_owned(),
        }
    }

    /// The reference of the artifact, with its tag or digest if the version is one of these.
    pub(crate) fn reference(&self) -> String {
        let repository = self.repository();
        match self.version {
            SourceVersion::Tag(tag) => format!("{repository}:{tag}"),
            SourceVersion::Digest(digest, _) => format!("{repository}@{digest}"),
            SourceVersion::Range(_) | SourceVersion::Prefix => repository,
        }
    }
}

/// Flux's OCIRepository and HelmRepository (source.toolkit.fluxcd.io).
fn flux_source<'s>(entries: &'s [YamlEntry<'s>]) -> Option<GitopsSource<'s>> {
    let (at, address) = text_entry(entries, "url")?;
    if !address.value.trim().starts_with(SCHEME) {
        return None;
    }
    let version = match value_of(entries, "ref") {
        Some(YamlNode::Mapping(reference)) => version_in(&reference.entries)?,
        _ if text_of(entries, "type") == Some("oci") => SourceVersion::Prefix,
        _ => return None,
    };
    let is_chart = match value_of(entries, "layerSelector") {
        Some(YamlNode::Mapping(selector)) => text_of(&selector.entries, "mediaType")
            .is_some_and(|media_type| media_type.contains(".helm.chart.")),
        _ => false,
    };
    Some(GitopsSource {
        at,
        address,
        chart: None,
        version,
        is_chart,
    })
}

/// The version in the `ref` of an OCIRepository. `digest` overrides `semver`, which overrides `tag`
/// (OCIRepositoryRef).
fn version_in<'s>(reference: &'s [YamlEntry<'s>]) -> Option<SourceVersion<'s>> {
    if let Some((_, digest)) = text_entry(reference, "digest") {
        return Some(SourceVersion::Digest(digest.value.trim(), digest));
    }
    if let Some((_, range)) = text_entry(reference, "semver") {
        return Some(SourceVersion::Range(range.value.trim()));
    }
    let (_, tag) = text_entry(reference, "tag")?;
    Some(SourceVersion::Tag(tag.value.trim()))
}

/// A source of an Argo CD Application (argoproj.io). If it names a chart, an address without a
/// scheme is that of a registry, too.
fn argo_source<'s>(entries: &'s [YamlEntry<'s>]) -> Option<GitopsSource<'s>> {
    let (at, address) = text_entry(entries, "repoURL")?;
    let chart = text_of(entries, "chart").map(str::trim);
    let text = address.value.trim();
    let is_registry = text.starts_with(SCHEME) || (chart.is_some() && !text.contains("://"));
    if !is_registry {
        return None;
    }
    let (_, revision) = text_entry(entries, "targetRevision")?;
    let text = revision.value.trim();
    let version = if text.parse::<Digest>().is_ok() {
        SourceVersion::Digest(text, revision)
    } else if is_tag(text) {
        SourceVersion::Tag(text)
    } else {
        SourceVersion::Range(text)
    };
    Some(GitopsSource {
        at,
        address,
        chart,
        version,
        is_chart: chart.is_some(),
    })
}

/// Whether `text` is a tag, and not a range of versions such as `1.x`.
fn is_tag(text: &str) -> bool {
    let is_range =
        text.parse::<ChartVersionRange>().is_ok() && text.parse::<ChartVersion>().is_err();
    !is_range && format!("h.invalid/r:{text}").parse::<ImageRef>().is_ok()
}

/// The position and the value of the entry `key`, if the value is a text.
fn text_entry<'s>(entries: &'s [YamlEntry<'s>], key: &str) -> Option<(usize, &'s YamlScalar<'s>)> {
    let at = position_of(entries, key)?;
    let scalar = entries[at].value.scalar()?;
    scalar.text().is_some().then_some((at, scalar))
}
