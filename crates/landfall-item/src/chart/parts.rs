//! The manifest and blobs of a locked chart, as parts to transfer: the artifact of a registry, or
//! one that is built from an archive and its provenance.

use super::locked::LockedChart;
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_model::report::EntryKind;
use landfall_model::{Descriptor, Digest, media_type};
use serde_json::{Map, json};
use std::sync::Arc;

/// Lists the parts of a chart. The artifact of an archive is computed from the lock alone, so every
/// command gets the same bytes.
pub(super) fn entry(chart: &LockedChart) -> LockEntry {
    let parts = match chart.source() {
        Some(source) => {
            let (registry, repository): (Arc<str>, Arc<str>) = (
                source.registry.as_str().into(),
                source.repository.as_str().into(),
            );
            let blob = || PartOrigin::Blob {
                registry: registry.clone(),
                repository: repository.clone(),
            };
            let blobs = chart.blobs.iter().map(|blob_of| EntryPart {
                descriptor: blob_of.clone(),
                origin: blob(),
            });
            let mut parts: Vec<EntryPart> = blobs.collect();
            let origin = PartOrigin::Manifest {
                registry: registry.clone(),
                repository: repository.clone(),
            };
            parts.push(EntryPart {
                descriptor: manifest(chart),
                origin,
            });
            parts
        }
        None => wrapped(chart),
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
        referrers: Vec::new(),
    }
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

/// The layers with the archive and the provenance, if there are any.
pub(super) fn layers(chart: &LockedChart) -> (Option<Descriptor>, Option<Descriptor>) {
    if chart.media_type.is_some() {
        let of = |kinds: &[&str]| {
            chart
                .blobs
                .iter()
                .find(|blob| kinds.contains(&&*blob.media_type))
                .cloned()
        };
        return (
            of(&[media_type::HELM_CHART, media_type::HELM_CHART_OLD]),
            of(&[media_type::HELM_PROVENANCE]),
        );
    }
    let layer = |digest: &Digest, size, media_type: &str| Descriptor {
        digest: digest.clone(),
        size,
        media_type: media_type.into(),
    };
    let provenance = chart.provenance.as_ref();
    let provenance =
        provenance.map(|beside| layer(&beside.digest, beside.size, media_type::HELM_PROVENANCE));
    (
        Some(layer(&chart.digest, chart.size, media_type::HELM_CHART)),
        provenance,
    )
}

/// The parts of the artifact that `helm push` would build from the archive, without its timestamp.
fn wrapped(chart: &LockedChart) -> Vec<EntryPart> {
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
    let (archive, provenance) = layers(chart);
    let url = chart.url.clone().unwrap_or_default();
    let beside = chart
        .provenance
        .as_ref()
        .map(|beside| beside.url.clone())
        .unwrap_or_default();
    let archive = archive.map(|descriptor| EntryPart {
        descriptor,
        origin: PartOrigin::Url(url),
    });
    let provenance = provenance.map(|descriptor| EntryPart {
        descriptor,
        origin: PartOrigin::Url(beside),
    });
    let layers: Vec<EntryPart> = archive.into_iter().chain(provenance).collect();
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
    let (digest, size) = (Digest::sha256(&bytes), bytes.len() as u64);
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
