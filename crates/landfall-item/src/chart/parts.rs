//! The manifest and blobs of a locked chart, as parts to transfer: the artifact of a registry, or
//! one that is built from an archive and its provenance.

use super::locked::LockedChart;
use super::metadata::files_of;
use crate::artifact::computed;
use crate::image::{blobs_of_referrers, referrers_of};
use landfall_content::{
    AttachedReferrer, BlobRead, EntryPart, LocalContent, LocalForm, LockEntry, PartOrigin,
};
use landfall_model::document::{ArchiveBudget, yaml};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Limits, local_path, media_type};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Lists the parts of a chart. The artifact of an archive is computed from the lock alone, so every
/// command gets the same bytes.
pub(crate) fn entry(chart: &LockedChart) -> LockEntry {
    let artifact = chart.artifact();
    let referrers = artifact.as_ref().map(referrers_of).unwrap_or_default();
    let referrer_blobs = artifact
        .as_ref()
        .map(blobs_of_referrers)
        .unwrap_or_default();
    let parts = match chart.source() {
        Some(source) => {
            let (registry, repository): (Arc<str>, Arc<str>) = (
                source.registry.as_str().into(),
                source.repository.as_str().into(),
            );
            let blobs = chart
                .blobs
                .iter()
                .chain(&chart.referrer_blobs)
                .map(|blob| EntryPart {
                    descriptor: blob.clone(),
                    origin: PartOrigin::Blob {
                        registry: registry.clone(),
                        repository: repository.clone(),
                    },
                });
            let mut parts: Vec<EntryPart> = blobs.collect();
            let manifest = |descriptor| EntryPart {
                descriptor,
                origin: PartOrigin::Manifest {
                    registry: registry.clone(),
                    repository: repository.clone(),
                },
            };
            // registries refuse a manifest whose blobs are missing, so the top manifest is the last
            // part
            parts.extend(referrer_manifests(&referrers).map(manifest));
            parts.push(manifest(self::manifest(chart)));
            parts
        }
        None => wrapped_archive(chart),
    };
    LockEntry {
        kind: EntryKind::Chart,
        name: chart.name.to_string(),
        digest: chart.digest.clone(),
        layout_name: chart.name.reference.to_string(),
        top: parts
            .last()
            .map_or_else(|| manifest(chart), |top| top.descriptor.clone()),
        artifact_type: None,
        parts,
        referrers,
        referrer_blobs,
    }
}

/// The manifests of the referrers, each once, even if it has several tags.
fn referrer_manifests(referrers: &[AttachedReferrer]) -> impl Iterator<Item = Descriptor> {
    let mut known = BTreeSet::new();
    referrers
        .iter()
        .map(|referrer| referrer.descriptor.clone())
        .filter(move |descriptor| known.insert(descriptor.digest.clone()))
}

/// The descriptor of the artifact's manifest.
pub(super) fn manifest(chart: &LockedChart) -> Descriptor {
    let media_type = chart
        .media_type
        .clone()
        .unwrap_or_else(|| media_type::OCI_MANIFEST.into());
    Descriptor::new(chart.digest.clone(), chart.size, media_type)
}

/// The layers of a chart's artifact.
pub(super) struct ChartLayers {
    /// The layer with the archive.
    pub(super) archive: Option<Descriptor>,
    /// The layer with the provenance.
    pub(super) provenance: Option<Descriptor>,
}

impl ChartLayers {
    /// Finds the layers among the blobs of an artifact, by their media types.
    pub(super) fn find(blobs: &[Descriptor]) -> ChartLayers {
        let with_type = |types: &[&str]| {
            blobs
                .iter()
                .find(|blob| types.contains(&&*blob.media_type))
                .cloned()
        };
        ChartLayers {
            // Helm before 3.7 used another type
            archive: with_type(&[media_type::HELM_CHART, media_type::HELM_CHART_OLD]),
            provenance: with_type(&[media_type::HELM_PROVENANCE]),
        }
    }
}

/// The layers of the chart's artifact, which is in a registry or wraps the chart's archive.
pub(super) fn layers(chart: &LockedChart) -> ChartLayers {
    if chart.media_type.is_some() {
        return ChartLayers::find(&chart.blobs);
    }
    ChartLayers {
        archive: Some(Descriptor::new(
            chart.digest.clone(),
            chart.size,
            media_type::HELM_CHART,
        )),
        provenance: chart.provenance.as_ref().map(|provenance| {
            Descriptor::new(
                provenance.digest.clone(),
                provenance.size,
                media_type::HELM_PROVENANCE,
            )
        }),
    }
}

/// The parts of an artifact like the one that `helm push` builds from the archive. The config
/// here has only fields that the lock contains. The manifest lacks the time of its creation, which
/// would change the digest at every run.
fn wrapped_archive(chart: &LockedChart) -> Vec<EntryPart> {
    let mut config = Map::new();
    config.insert("name".into(), json!(chart.name.chart));
    config.insert("version".into(), json!(chart.name.version));
    config.insert("apiVersion".into(), json!(chart.api_version));
    if let Some(version) = &chart.app_version {
        config.insert("appVersion".into(), json!(version));
    }
    let config = computed(
        json!(config).to_string().into_bytes(),
        media_type::HELM_CONFIG,
    );
    let found = layers(chart);
    let archive = (found.archive, chart.url.as_ref());
    let provenance_url = chart.provenance.as_ref().map(|sidecar| &sidecar.url);
    let layers: Vec<EntryPart> = [archive, (found.provenance, provenance_url)]
        .into_iter()
        .filter_map(|(descriptor, url)| {
            let origin = match url {
                Some(url) if local_path(url).is_some() => PartOrigin::Local(LocalContent {
                    path: chart.path.clone(),
                    form: LocalForm::Chart(chart.name.chart.clone()),
                }),
                _ => PartOrigin::Url(url.cloned().unwrap_or_default()),
            };
            Some(EntryPart {
                descriptor: descriptor?,
                origin,
            })
        })
        .collect();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_MANIFEST,
        "config": config.descriptor,
        "layers": layers.iter().map(|layer| &layer.descriptor).collect::<Vec<_>>(),
        "annotations": {
            "org.opencontainers.image.title": chart.name.chart,
            "org.opencontainers.image.version": chart.name.version,
        },
    });
    let manifest = computed(manifest.to_string().into_bytes(), media_type::OCI_MANIFEST);
    std::iter::once(config)
        .chain(layers)
        .chain([manifest])
        .collect()
}

/// The archive of a locked chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartArchive {
    /// The chart's name in the lock.
    pub item: String,
    /// The name of the chart, as in `app`.
    pub chart: String,
    /// The version of the chart, as in `1.2.3`.
    pub version: String,
    /// The descriptor of the archive, a `.tgz`.
    pub archive: Descriptor,
    /// The descriptor of the provenance file, if the chart has one.
    pub provenance: Option<Descriptor>,
}

impl ChartArchive {
    /// The file name that `helm package` would choose, as in `app-1.2.3.tgz`.
    pub fn file(&self) -> String {
        format!("{}-{}.tgz", self.chart, self.version)
    }

    /// The name of the provenance file, as in `app-1.2.3.tgz.prov`.
    pub fn provenance_file(&self) -> String {
        format!("{}.prov", self.file())
    }

    /// The files of the chart in the repository, by name.
    pub fn files(&self) -> Vec<(String, &Descriptor)> {
        let provenance = self
            .provenance
            .iter()
            .map(|provenance| (self.provenance_file(), provenance));
        std::iter::once((self.file(), &self.archive))
            .chain(provenance)
            .collect()
    }
}

/// The entry of `chart` in an index, as JSON: all of its Chart.yaml, its URL and its digest.
///
/// # Errors
/// If the archive is missing, invalid or too large, or its Chart.yaml is too large for an index.
pub fn index_entry(chart: &ChartArchive, blobs: &dyn BlobRead) -> Result<String, String> {
    let limits = Limits::default();
    if chart.archive.size > limits.archive_bytes {
        return Err(format!(
            "its archive has more than {} bytes",
            limits.archive_bytes
        ));
    }
    let archive = blobs
        .read(&chart.archive)
        .map_err(|error| error.to_string())?;
    let mut files = files_of(&archive, &mut ArchiveBudget::new(&limits))?;
    let text = files
        .remove("Chart.yaml")
        .ok_or("its archive contains no Chart.yaml")?;
    // only Chart.yaml is needed from here on, and the unpacked chart may be large
    drop((archive, files));
    let limit = limits.chart_entry_bytes;
    if text.len() > limit {
        return Err(format!("its Chart.yaml has more than {limit} bytes"));
    }
    let mut entry: Map<String, Value> =
        yaml::from_slice(&text).map_err(|error| format!("its Chart.yaml: {error}"))?;
    // clients search by name and version, so the verified values of the lock replace those of the
    // archive
    entry.insert("name".into(), json!(chart.chart));
    entry.insert("version".into(), json!(chart.version));
    entry.insert("urls".into(), json!([chart.file()]));
    entry.insert("digest".into(), json!(chart.archive.digest.hex()));
    let entry = Value::from(entry).to_string();
    // YAML aliases may repeat large values, so the result is bounded, too
    if entry.len() > limit {
        Err(format!("its Chart.yaml has more than {limit} bytes"))
    } else {
        Ok(entry)
    }
}

/// The `index.yaml` with these entries, each with the name of its chart. The same entries in the
/// same order give the same text.
pub fn index<'e>(entries: impl IntoIterator<Item = (&'e str, String)>) -> String {
    let mut charts = BTreeMap::<&str, Vec<String>>::new();
    for (chart, entry) in entries {
        charts.entry(chart).or_default().push(entry);
    }
    // JSON is valid YAML; one entry on each line stays readable and works with line tools
    let mut text = String::from("apiVersion: v1\nentries:");
    if charts.is_empty() {
        text += " {}";
    }
    text.push('\n');
    for (name, versions) in charts {
        text += &format!("  {}:\n", json!(name));
        for version in versions {
            text += &format!("  - {version}\n");
        }
    }
    text
}

/// The first of `charts` with a file that has the same name as a file of `chart` but different
/// content, and the name of that file. All archives are compared before any provenance file.
pub fn clash<'c>(
    charts: &'c [ChartArchive],
    chart: &ChartArchive,
) -> Option<(&'c ChartArchive, String)> {
    let same_name: Vec<&ChartArchive> = charts
        .iter()
        .filter(|other| other.file() == chart.file())
        .collect();
    let archive = &chart.archive.digest;
    if let Some(other) = same_name
        .iter()
        .copied()
        .find(|other| other.archive.digest != *archive)
    {
        return Some((other, chart.file()));
    }
    let provenance = chart.provenance.as_ref()?;
    let other = same_name.into_iter().find(|other| {
        let others = other.provenance.as_ref();
        others.is_some_and(|others| others.digest != provenance.digest)
    })?;
    Some((other, chart.provenance_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(archive: &[u8], provenance: Option<&[u8]>) -> ChartArchive {
        let descriptor = |content: &[u8]| Descriptor::of(content, "application/gzip");
        ChartArchive {
            item: "a".into(),
            chart: "app".into(),
            version: "1.0.0".into(),
            archive: descriptor(archive),
            provenance: provenance.map(descriptor),
        }
    }

    #[test]
    fn charts_clash_by_their_archives_or_by_their_provenance_files() {
        let charts = [chart(b"1", None), chart(b"1", Some(b"p"))];
        let file_of = |chart: &ChartArchive| clash(&charts, chart).map(|(_, file)| file);
        assert_eq!(file_of(&chart(b"1", None)), None);
        assert_eq!(file_of(&chart(b"1", Some(b"p"))), None);
        assert_eq!(
            file_of(&chart(b"1", Some(b"q"))).as_deref(),
            Some("app-1.0.0.tgz.prov")
        );
        assert_eq!(
            file_of(&chart(b"2", Some(b"q"))).as_deref(),
            Some("app-1.0.0.tgz")
        );
    }
}
