//! The manifest and blobs of a locked chart, as parts to transfer: the artifact of a registry, or
//! one that is built from an archive and its provenance.

use super::locked::LockedChart;
use crate::image::{blobs_of_referrers, referrers_of};
use landfall_content::{AttachedReferrer, EntryPart, LockEntry, PartOrigin};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, media_type};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Lists the parts of a chart. The artifact of an archive is computed from the lock alone, so every
/// command gets the same bytes.
pub(super) fn entry(chart: &LockedChart) -> LockEntry {
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
    Descriptor {
        digest: chart.digest.clone(),
        size: chart.size,
        media_type,
    }
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
        archive: Some(Descriptor {
            digest: chart.digest.clone(),
            size: chart.size,
            media_type: media_type::HELM_CHART.into(),
        }),
        provenance: chart.provenance.as_ref().map(|provenance| Descriptor {
            digest: provenance.digest.clone(),
            size: provenance.size,
            media_type: media_type::HELM_PROVENANCE.into(),
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
    let ChartLayers {
        archive,
        provenance,
    } = layers(chart);
    let provenance_url = chart.provenance.as_ref().map(|sidecar| &sidecar.url);
    let layers: Vec<EntryPart> = [(archive, chart.url.as_ref()), (provenance, provenance_url)]
        .into_iter()
        .filter_map(|(descriptor, url)| {
            Some(EntryPart {
                descriptor: descriptor?,
                origin: PartOrigin::Url(url.cloned().unwrap_or_default()),
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

fn computed(bytes: Vec<u8>, media_type: &'static str) -> EntryPart {
    let digest = Digest::sha256(&bytes);
    let size = bytes.len() as u64;
    let descriptor = Descriptor {
        digest,
        size,
        media_type: media_type.into(),
    };
    EntryPart {
        descriptor,
        origin: PartOrigin::Computed(bytes),
    }
}
