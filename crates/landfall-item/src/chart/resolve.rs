//! Resolves a chart: its artifact or archive, Chart.yaml, provenance, dependencies and images.

use super::locked::LockedChart;
use super::metadata::{chart_yaml, files_of, plain};
use super::name::{ChartName, bare};
use super::parts::ChartLayers;
use super::repository::ArchiveLocation;
use super::request::ChartRequest;
use super::{metadata, provenance, repository};
use crate::LocalPlace;
use crate::file::{LockedSidecar, download_sidecar, is_absent};
use crate::resolver::{ResolveError, Resolver};
use crate::text::in_folder;
use bytes::Bytes;
use landfall_content::BlobRead;
use landfall_content::registry::FetchedManifest;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::document::ArchiveBudget;
use landfall_model::report::EntryKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Algorithm, Descriptor, Digest, ImageRef, LOCAL_PREFIX, Manifest, media_type, redact_urls,
};
use url::Url;

/// A chart that was downloaded to find its dependencies and images.
struct FetchedChart {
    chart: LockedChart,
    archive: Vec<u8>,
    provenance: Option<Vec<u8>>,
}

/// Resolves `request`. The chart is fetched with `chart_resolver`, which may have no credentials.
pub(super) async fn resolve(
    resolver: &Resolver,
    chart_resolver: &Resolver,
    request: &ChartRequest,
) -> Result<LockedChart, ResolveError> {
    let FetchedChart {
        mut chart,
        archive,
        provenance,
    } = match &request.local {
        Some(place) => read_local(resolver, &request.name, place).await?,
        None => fetch(chart_resolver, &request.name, request.pin.as_ref()).await?,
    };
    if let Some(pin) = request.pin.as_ref().filter(|pin| **pin != chart.digest) {
        return Err(format!(
            "upstream has {}, but the manifest requires {pin}",
            chart.digest
        )
        .into());
    }
    chart.pin.clone_from(&request.pin);
    let digest = Digest::sha256(&archive);
    if let Some(keys) = &request.keys {
        let provenance =
            provenance.ok_or("the manifest requires a key, but the chart has no provenance")?;
        chart.signed_by = Some(provenance::check(
            &provenance,
            &digest,
            &request.name,
            keys,
            SignatureTime::Now,
        )?);
    }
    let mut budget = ArchiveBudget::new(resolver.limits());
    let files = files_of(&archive, &mut budget)?;
    let yaml = chart_yaml(&files)?;
    let version = plain(&yaml.version).unwrap_or_default();
    // artifacts are copied to other names, but the version must stay the same
    let has_name = yaml.name == request.name.chart || request.name.repository.is_none();
    let has_version = bare(&version) == bare(&request.name.version);
    if !(has_name && has_version) {
        return Err(format!("its Chart.yaml says that it is {} {version}", yaml.name).into());
    }
    // a missing `apiVersion` means `v1`
    chart.api_version = if yaml.api_version.is_empty() {
        "v1".into()
    } else {
        yaml.api_version
    };
    chart.app_version = plain(&yaml.app_version);
    let needs = metadata::outside_needs(files, &mut budget, resolver.limits())?;
    for (schema_of, url) in &needs.schemas {
        resolver.progress.note(&format!(
            "note: {}: values.schema.json of {schema_of} refers to {}, which helm requests when it \
             validates values; without access to it, use `helm --skip-schema-validation`",
            request.name,
            redact_urls(url)
        ));
    }
    chart.dependencies =
        metadata::resolve(resolver, &needs.dependencies, &source_of(&request.name)).await?;
    if let Some(discovery) = &request.discover {
        let finder = resolver.image_finder.clone();
        let finder = finder.ok_or("this command does not search charts for images")?;
        let settings = discovery.clone();
        // rendering a chart runs helm, which may take seconds
        let found =
            tokio::task::spawn_blocking(move || finder.images(&archive, &digest, &settings))
                .await?
                .map_err(|why| format!("its images cannot be found: {why}"))?;
        (chart.images, chart.open) = (found.images, found.open);
        chart.discovered = Some(discovery.to_string());
    }
    Ok(chart)
}

/// Reads the chart at `place` into the store.
async fn read_local(
    resolver: &Resolver,
    name: &ChartName,
    place: &LocalPlace,
) -> Result<FetchedChart, ResolveError> {
    let (digest, size) = place.store(resolver).await?;
    let limit = resolver.limits().archive_bytes;
    if size > limit {
        return Err(format!("it has {size} bytes, more than {limit}").into());
    }
    let layer = Descriptor::new(digest.clone(), size, media_type::HELM_CHART);
    let mut chart = new(name, digest, size);
    let path = in_folder(name.folder().unwrap_or_default(), &name.archive());
    chart.url = Some(format!("{LOCAL_PREFIX}{path}"));
    chart.path = place.path_in_lock(&resolver.lock_folder);
    Ok(FetchedChart {
        chart,
        archive: resolver.disk.read(&layer)?,
        provenance: None,
    })
}

/// The URL of the chart's repository or registry.
fn source_of(name: &ChartName) -> String {
    name.repository
        .clone()
        .unwrap_or_else(|| format!("oci://{}/", name.reference.registry))
}

/// Fetches the chart `name` from its registry or repository. An archive with the digest `pin` is
/// accepted even if the index of its repository lists another one.
async fn fetch(
    resolver: &Resolver,
    name: &ChartName,
    pin: Option<&Digest>,
) -> Result<FetchedChart, ResolveError> {
    let Some(repository) = &name.repository else {
        return fetch_artifact(resolver, name, &name.reference).await;
    };
    let ArchiveLocation { urls, digest, .. } =
        repository::archive(resolver, repository, name).await?;
    let mut failure: Option<ResolveError> = None;
    for url in urls {
        match fetch_listed(resolver, name, &url, digest.as_ref(), pin).await {
            Ok(mut fetched) => {
                fetched.chart.listed = digest.filter(|listed| {
                    *listed != fetched.chart.digest && !listed.matches(&fetched.archive)
                });
                return Ok(fetched);
            }
            Err(cause) => {
                failure = Some(match failure {
                    Some(first) => first.followed_by(&cause),
                    None => cause,
                });
            }
        }
    }
    Err(failure.unwrap_or_else(ResolveError::gone))
}

/// Fetches the chart `name` from `url`, which its repository lists with `digest`. It must have the
/// digest `pin`, if the manifest requires one, and otherwise `digest`.
async fn fetch_listed(
    resolver: &Resolver,
    name: &ChartName,
    url: &Url,
    digest: Option<&Digest>,
    pin: Option<&Digest>,
) -> Result<FetchedChart, ResolveError> {
    if url.scheme() != "oci" {
        return download(resolver, name, url.as_str(), pin.or(digest), pin.is_some()).await;
    }
    let target = ChartName::try_from(url.to_string())?;
    let mut fetched = fetch_artifact(resolver, name, &target.reference).await?;
    let found = Digest::sha256(&fetched.archive);
    // an index that points to a registry contains the digest of the artifact or of the archive
    if let Some(digest) = digest
        .filter(|digest| **digest != found && **digest != fetched.chart.digest)
        .filter(|_| pin != Some(&fetched.chart.digest))
    {
        return Err(format!(
            "its repository lists the digest {digest}, but the downloaded archive has {found} in \
             the artifact {}{ACCEPT}",
            fetched.chart.digest
        )
        .into());
    }
    fetched.chart.url = Some(format!("oci://{}", target.reference));
    Ok(fetched)
}

/// Fetches the chart at `reference` of a registry.
async fn fetch_artifact(
    resolver: &Resolver,
    name: &ChartName,
    reference: &ImageRef,
) -> Result<FetchedChart, ResolveError> {
    // a tag that moved after the update looked it up has another digest, which was not checked
    let looked_up = resolver.looked_up(EntryKind::Chart, &name.to_string());
    let version = looked_up
        .filter(|_| name.repository.is_none())
        .map(Digest::to_string);
    let version = version
        .or_else(|| reference.tag.clone())
        .unwrap_or_default();
    let raw = resolver.manifest(reference, &version, None).await?;
    let artifact = ChartArtifact::parse(&raw)?;
    let limits = resolver.limits();
    let provenance = match &artifact.provenance {
        Some(blob) => Some(resolver.small_blob(reference, blob).await?),
        None => None,
    };
    // the lock lists each blob once, and `pull` downloads it once
    let mut blobs: Vec<Descriptor> = Vec::new();
    for blob in std::iter::once(artifact.config).chain(artifact.layers) {
        if blobs.iter().all(|known| known.digest != blob.digest) {
            blobs.push(blob);
        }
    }
    let archive = resolver
        .blob_up_to(reference, &artifact.archive, limits.archive_bytes)
        .await?;
    let size = raw.bytes.len() as u64;
    let chart = LockedChart {
        media_type: Some(artifact.kind.into()),
        blobs,
        ..new(name, raw.digest, size)
    };
    Ok(FetchedChart {
        chart,
        archive,
        provenance,
    })
}

/// Checks that the manifest `digest` is that of a chart.
pub(super) async fn check_artifact(
    resolver: &Resolver,
    reference: &ImageRef,
    digest: &Digest,
) -> Result<(), ResolveError> {
    let raw = resolver
        .manifest(reference, &digest.to_string(), None)
        .await?;
    ChartArtifact::parse(&raw).map(drop)
}

/// The manifest of a chart in a registry.
struct ChartArtifact {
    /// The media type of the manifest.
    kind: String,
    config: Descriptor,
    layers: Vec<Descriptor>,
    /// The layer with the archive.
    archive: Descriptor,
    /// The layer with the provenance.
    provenance: Option<Descriptor>,
}

impl ChartArtifact {
    /// Parses the manifest; fails if it is not that of a chart.
    fn parse(raw: &FetchedManifest) -> Result<ChartArtifact, ResolveError> {
        let (manifest, kind) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())?;
        let Manifest::Image { config, layers, .. } = manifest else {
            return Err("its tag is that of an image index, not of a chart".into());
        };
        let found = ChartLayers::find(&layers);
        let config = config.filter(|config| config.media_type == media_type::HELM_CONFIG);
        let (Some(archive), Some(config)) = (found.archive, config) else {
            let why = "its tag is not that of a chart: its config or layer has another type";
            return Err(why.into());
        };
        Ok(ChartArtifact {
            kind,
            config,
            layers,
            archive,
            provenance: found.provenance,
        })
    }
}

/// Downloads the chart in the archive at `url`.
async fn download(
    resolver: &Resolver,
    name: &ChartName,
    url: &str,
    expected: Option<&Digest>,
    is_pinned: bool,
) -> Result<FetchedChart, ResolveError> {
    let limit = resolver.limits().archive_bytes as usize;
    let archive = resolver
        .small_file(url, limit, expected)
        .await
        .map_err(|error| {
            let is_other_content = error.kind == ErrorKind::Invalid && expected.is_some();
            let cause = ResolveError::from(error);
            match (is_other_content, is_pinned) {
                (false, _) => cause,
                (true, true) => cause.about("the manifest requires another digest"),
                (true, false) => {
                    let cause = cause.about("its repository names another digest");
                    ResolveError {
                        message: cause.message + ACCEPT,
                        ..cause
                    }
                }
            }
        })?;
    let layer = Descriptor::of(&archive, media_type::HELM_CHART);
    resolver.keep(layer.clone(), archive.clone()).await;
    let mut chart = new(name, layer.digest, layer.size);
    chart.url = Some(url.to_owned());
    let provenance = match provenance_of(resolver, url).await {
        Ok((sidecar, bytes)) => {
            chart.provenance = Some(sidecar);
            Some(bytes.to_vec())
        }
        Err(error) if is_absent(&error) => None,
        Err(error) => return Err(ResolveError::from(error).about(PROVENANCE)),
    };
    Ok(FetchedChart {
        chart,
        archive: archive.to_vec(),
        provenance,
    })
}

/// What to do if the index of a repository lists a wrong digest.
const ACCEPT: &str = "; if the archive is the right one, add its digest to the chart in the \
                      manifest, as in `digest: sha256:…`";

/// The provenance of an archive in messages.
const PROVENANCE: &str = "its provenance";

/// Downloads the provenance of the archive at `url` and stores it for `pull`.
async fn provenance_of(
    resolver: &Resolver,
    url: &str,
) -> Result<(LockedSidecar, Bytes), HttpError> {
    // The repository does not say whether a chart has a provenance. Like Helm, append `.prov` to
    // the whole URL, even after a query.
    download_sidecar(resolver, &format!("{url}.prov")).await
}

/// A chart with only a name, digest and size.
fn new(name: &ChartName, digest: Digest, size: u64) -> LockedChart {
    LockedChart {
        name: name.clone(),
        pin: None,
        digest,
        media_type: None,
        size,
        verified: Vec::new(),
        blobs: Vec::new(),
        referrers: None,
        referrer_blobs: Vec::new(),
        url: None,
        path: None,
        listed: None,
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

/// Whether upstream has the content of `old` now. False if only a download can show it.
pub(super) async fn is_unchanged(
    resolver: &Resolver,
    old: &LockedChart,
) -> Result<bool, ResolveError> {
    let digest = head(resolver, old).await?;
    Ok(digest.as_ref() == Some(&old.digest) && has_same_provenance(resolver, old).await?)
}

/// Whether the archive `old` has the same provenance as before. A provenance may be published after
/// the archive, or signed again. True for an artifact, whose manifest names its provenance.
async fn has_same_provenance(resolver: &Resolver, old: &LockedChart) -> Result<bool, ResolveError> {
    let Some(url) = old.url.as_deref().filter(|_| old.media_type.is_none()) else {
        return Ok(true);
    };
    match provenance_of(resolver, url).await {
        Ok((sidecar, _)) => Ok(old.provenance.as_ref() == Some(&sidecar)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(old.provenance.is_none()),
        // this answer does not show that the provenance was removed
        Err(error) if is_absent(&error) => Ok(true),
        Err(error) => Err(ResolveError::from(error).about(PROVENANCE)),
    }
}

/// The digest that upstream has for the chart now. `None` if only a download can show it.
pub(super) async fn head(
    resolver: &Resolver,
    old: &LockedChart,
) -> Result<Option<Digest>, ResolveError> {
    let reference = match &old.name.repository {
        None => old.name.reference.clone(),
        Some(url) => {
            let archive = repository::archive(resolver, url, &old.name).await?;
            // the lock has the URL, so a moved archive must be locked again
            let is_listed = |url: &Url| old.url.as_deref() == Some(url.as_str());
            if !archive.urls.iter().any(is_listed) {
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
    let tag = reference.tag.as_deref().unwrap_or_default();
    resolver.head_manifest(&reference, tag).await.map(Some)
}
