//! Resolves a chart: its artifact or archive, Chart.yaml, provenance, dependencies and images.

use super::locked::LockedChart;
use super::metadata::{self, chart_yaml, files_of, plain};
use super::name::{ChartName, bare};
use super::request::ChartRequest;
use super::{dependencies, provenance, repository};
use crate::file::LockedSidecar;
use crate::resolver::{ResolveError, Resolver};
use landfall_http::ErrorKind;
use landfall_model::document::ArchiveBudget;
use landfall_model::{Algorithm, Descriptor, Digest, ImageRef, Manifest, media_type};
use std::sync::Arc;

/// A downloaded chart.
struct FetchedChart {
    chart: LockedChart,
    archive: Vec<u8>,
    provenance: Option<Vec<u8>>,
}

/// Resolves `wanted`, which the resolver `at` fetches.
pub(super) async fn resolve(
    resolver: &Resolver,
    at: &Resolver,
    wanted: &ChartRequest,
) -> Result<LockedChart, ResolveError> {
    let FetchedChart {
        mut chart,
        archive,
        provenance,
    } = fetch(at, &wanted.name).await?;
    if let Some(pin) = wanted.pin.as_ref().filter(|pin| **pin != chart.digest) {
        return Err(format!(
            "upstream answers {}, the manifest demands {pin}",
            chart.digest
        )
        .into());
    }
    chart.pin.clone_from(&wanted.pin);
    let digest = Digest::sha256(&archive);
    if let Some(keys) = &wanted.keys {
        let provenance = provenance.ok_or("the manifest names a key, and it has no provenance")?;
        chart.signed_by = Some(provenance::check(&provenance, &digest, &wanted.name, keys)?);
    }
    let mut budget = ArchiveBudget::new(resolver.limits());
    let files = files_of(&archive, &mut budget)?;
    let yaml = chart_yaml(&files)?;
    let version = plain(&yaml.version).unwrap_or_default();
    let (same_name, same_version) = (
        yaml.name == wanted.name.chart,
        bare(&version) == bare(&wanted.name.version),
    );
    // artifacts are copied to other names, but the version must stay the same
    if !(same_version && (same_name || wanted.name.repository.is_none())) {
        return Err(format!("its Chart.yaml says that it is {} {version}", yaml.name).into());
    }
    chart.api_version = if yaml.api_version.is_empty() {
        "v1".into()
    } else {
        yaml.api_version
    };
    chart.app_version = plain(&yaml.app_version);
    let lacking = metadata::lacking(files, &mut budget, resolver.limits())?;
    chart.dependencies =
        dependencies::resolve(resolver, &lacking, &source_of(&wanted.name)).await?;
    if let Some(how) = &wanted.discover {
        let finder = resolver
            .image_finder()
            .ok_or("nothing here looks for images in charts")?;
        let (finder, wanted) = (Arc::clone(finder), how.clone());
        let work = tokio::task::spawn_blocking(move || finder.images(&archive, &digest, &wanted));
        let found = work
            .await
            .map_err(|error| ResolveError::local(error.to_string()))?;
        let found = found.map_err(|why| format!("its images cannot be found: {why}"))?;
        (chart.images, chart.open) = (found.images, found.open);
        chart.discovered = Some(how.to_string());
    }
    Ok(chart)
}

/// The URL of the chart's repository or registry.
fn source_of(name: &ChartName) -> String {
    name.repository
        .clone()
        .unwrap_or_else(|| format!("oci://{}/", name.reference.registry))
}

async fn fetch(resolver: &Resolver, name: &ChartName) -> Result<FetchedChart, ResolveError> {
    let Some(repository) = &name.repository else {
        return artifact(resolver, name, &name.reference).await;
    };
    let repository::ArchiveLocation { url, digest } =
        repository::archive(resolver, repository, name).await?;
    if url.scheme() != "oci" {
        return download(resolver, name, url.as_str(), digest.as_ref()).await;
    }
    let elsewhere: ChartName = url.to_string().try_into().map_err(|error| {
        let error: super::name::ChartNameError = error;
        error.to_string()
    })?;
    let mut fetched = artifact(resolver, name, &elsewhere.reference).await?;
    let found = Digest::sha256(&fetched.archive);
    // repositories that point to a registry name the digest of the artifact, or that of the archive
    if let Some(digest) =
        digest.filter(|digest| *digest != found && *digest != fetched.chart.digest)
    {
        return Err(
            format!("its repository says that it is {digest}, what came is {found}").into(),
        );
    }
    fetched.chart.url = Some(format!("oci://{}", elsewhere.reference));
    Ok(fetched)
}

/// Fetches the chart at `reference` of a registry.
async fn artifact(
    resolver: &Resolver,
    name: &ChartName,
    reference: &ImageRef,
) -> Result<FetchedChart, ResolveError> {
    let tag = reference.tag.clone().unwrap_or_default();
    let raw = resolver.manifest(reference, &tag, None).await?;
    let (manifest, kind) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())?;
    let Manifest::Image { config, layers, .. } = manifest else {
        return Err("an index stands there, which is no chart".into());
    };
    let of = |kinds: &[&str]| {
        layers
            .iter()
            .find(|layer| kinds.contains(&&*layer.media_type))
            .cloned()
    };
    let archive = of(&[media_type::HELM_CHART, media_type::HELM_CHART_OLD]);
    let Some(archive) = archive.filter(|_| config.media_type == media_type::HELM_CONFIG) else {
        return Err("something else stands there: it has no config and no layer of a chart".into());
    };
    let provenance = of(&[media_type::HELM_PROVENANCE]);
    let limits = resolver.limits();
    let provenance = match &provenance {
        Some(blob) => Some(
            resolver
                .blob_up_to(reference, blob, limits.document_bytes as u64)
                .await?,
        ),
        None => None,
    };
    let mut blobs: Vec<Descriptor> = Vec::new();
    let all = std::iter::once(config).chain(layers);
    all.for_each(|blob| {
        if blobs.iter().all(|known| known.digest != blob.digest) {
            blobs.push(blob);
        }
    });
    let archive = resolver
        .blob_up_to(reference, &archive, limits.archive_bytes)
        .await?;
    let size = raw.bytes.len() as u64;
    let chart = LockedChart {
        media_type: Some(kind.into()),
        blobs,
        ..new(name, raw.digest, size)
    };
    Ok(FetchedChart {
        chart,
        archive,
        provenance,
    })
}

/// Downloads the chart in the archive at `url`.
async fn download(
    resolver: &Resolver,
    name: &ChartName,
    url: &str,
    expected: Option<&Digest>,
) -> Result<FetchedChart, ResolveError> {
    let most = resolver.limits().archive_bytes as usize;
    let archive = resolver
        .small_file(url, most, expected)
        .await
        .map_err(|error| {
            let is_other = error.kind == ErrorKind::Invalid && expected.is_some();
            let cause = ResolveError::from(error);
            if is_other {
                cause.about("its repository names another digest")
            } else {
                cause
            }
        })?;
    let digest = Digest::sha256(&archive);
    resolver
        .keep(
            parts_of(media_type::HELM_CHART, &digest, archive.len()),
            archive.clone(),
        )
        .await;
    let mut chart = new(name, digest, archive.len() as u64);
    chart.url = Some(url.to_owned());
    let beside = format!("{url}.prov");
    let provenance = match resolver
        .small_file(&beside, resolver.limits().document_bytes, None)
        .await
    {
        Ok(bytes) => {
            let digest = Digest::sha256(&bytes);
            resolver
                .keep(
                    parts_of(media_type::HELM_PROVENANCE, &digest, bytes.len()),
                    bytes.clone(),
                )
                .await;
            chart.provenance = Some(LockedSidecar {
                url: beside,
                digest,
                size: bytes.len() as u64,
            });
            Some(bytes.to_vec())
        }
        // some object stores answer 403 for missing files, and some sites answer with an HTML page
        Err(error)
            if matches!(
                error.kind,
                ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Invalid
            ) =>
        {
            None
        }
        Err(error) => return Err(ResolveError::from(error).about("its provenance")),
    };
    Ok(FetchedChart {
        chart,
        archive: archive.to_vec(),
        provenance,
    })
}

fn parts_of(media_type: &str, digest: &Digest, size: usize) -> Descriptor {
    Descriptor {
        digest: digest.clone(),
        size: size as u64,
        media_type: media_type.into(),
    }
}

fn new(name: &ChartName, digest: Digest, size: u64) -> LockedChart {
    LockedChart {
        name: name.clone(),
        pin: None,
        digest,
        media_type: None,
        size,
        blobs: Vec::new(),
        url: None,
        provenance: None,
        signed_by: None,
        api_version: String::new(),
        app_version: None,
        dependencies: Vec::new(),
        discovered: None,
        images: Vec::new(),
        open: Vec::new(),
    }
}

/// The digest that upstream names for the chart now; `None` if that takes a download.
pub(super) async fn head(
    resolver: &Resolver,
    old: &LockedChart,
) -> Result<Option<Digest>, ResolveError> {
    let reference = match &old.name.repository {
        None => old.name.reference.clone(),
        Some(url) => {
            let archive = repository::archive(resolver, url, &old.name).await?;
            let here = archive.url.to_string();
            if old.url.as_deref() != Some(here.as_str()) {
                return Ok(None);
            }
            match old.source() {
                None => {
                    return Ok(archive
                        .digest
                        .filter(|digest| digest.algorithm() == Algorithm::Sha256));
                }
                Some(reference) => reference,
            }
        }
    };
    let session = resolver.sessions().upstream(&reference.registry).await?;
    let tag = reference.tag.unwrap_or_default();
    match session
        .head_manifest(&reference.repository, &tag, false)
        .await?
    {
        Some(digest) => Ok(Some(digest)),
        None => Err(ResolveError::gone()),
    }
}
