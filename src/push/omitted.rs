//! Blobs that the source of a push omits, as a delta does. They are looked up at the registry
//! before the first upload, mounted from there like other blobs, and downloaded from there if
//! mounts are refused.

use super::plan::Delivery;
use super::preflight::{Problem, ProblemKind};
use super::uploader::Uploader;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use landfall_bundle::{BlobReference, RebuiltBlobs};
use landfall_content::registry::RegistrySession;
use landfall_content::upstream::RegistryParts;
use landfall_content::{
    EntryPart, OpenedPart, PartOrigin, PartSource, resuming_stream, run_concurrently,
};
use landfall_http::{ErrorKind, HttpError};
use landfall_item::lockfile::Lock;
use landfall_model::report::count_of;
use landfall_model::{Descriptor, DestinationMap, Digest, human_size, sum_sizes};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// The blobs that the source of a push omits.
#[derive(Debug, Clone, Default)]
pub struct Omitted {
    /// The omitted blobs, each with repositories that may have it, in addition to the destinations
    /// of the items that need it.
    pub blobs: BTreeMap<Digest, BTreeSet<String>>,
    /// The blobs that recipes use to rebuild blobs that neither the source nor the registry has.
    pub(crate) references: References,
    /// The help text for the message about blobs that the registry lacks.
    pub advice: String,
}

/// Looks up the omitted blobs of deliveries at the registry, and makes the uploader's source read
/// them from there. Returns a problem if blobs were not found and cannot be rebuilt. `todo` has the
/// positions of the deliveries that are still to be made.
pub(super) async fn locate_omitted(
    uploader: &mut Uploader,
    omitted: &Omitted,
    lock: &Lock,
    mapping: &DestinationMap,
    deliveries: &[Delivery],
    todo: &[usize],
) -> Option<Problem> {
    let wanted = omitted_blobs(omitted, lock, deliveries, todo);
    let session = &uploader.session;
    let lookups = run_concurrently(wanted.len(), uploader.limits.jobs, |at| {
        find_repository(session, &wanted[at].blob, &wanted[at].candidates)
    });
    let results = lookups.await;
    let mut repositories = BTreeMap::new();
    let mut missing = Vec::new();
    for (wanted, result) in wanted.iter().zip(results) {
        match result {
            Ok(Some(repository)) => {
                repositories.insert(wanted.blob.digest.clone(), repository);
            }
            Ok(None) => missing.push((wanted, String::new())),
            Err(error) => missing.push((wanted, format!(": {error}"))),
        }
    }
    let destinations = deliveries
        .iter()
        .map(|delivery| delivery.destination.repository.clone());
    let missing = fetch_references(
        uploader,
        &omitted.references,
        missing,
        mapping,
        &destinations.collect(),
    )
    .await;
    // the deliveries mount these blobs from the repositories that were found
    for (digest, repository) in &repositories {
        uploader
            .note_present_blob(digest, &repository.as_str().into())
            .await;
    }
    let inner = uploader.source.clone();
    let session = uploader.session.clone();
    let problem =
        (!missing.is_empty()).then(|| problem(&missing, lock, deliveries, omitted, session.host()));
    uploader.source = Arc::new(RegistryReadBack {
        inner,
        session,
        repositories,
    });
    problem
}

/// The omitted blobs that pending deliveries need. The destinations of all deliveries that need a
/// blob are candidates, since an earlier push may have delivered it there.
fn omitted_blobs<'a>(
    omitted: &'a Omitted,
    lock: &Lock,
    deliveries: &'a [Delivery],
    todo: &[usize],
) -> Vec<OmittedBlob<'a>> {
    let mut wanted: BTreeMap<Digest, OmittedBlob> = BTreeMap::new();
    for (at, delivery) in deliveries
        .iter()
        .enumerate()
        .filter(|_| !omitted.blobs.is_empty())
    {
        let parts = lock
            .entry(delivery.entry)
            .parts
            .into_iter()
            .map(|part| part.descriptor);
        let blobs: BTreeMap<Digest, Descriptor> = parts
            .filter(|blob| omitted.blobs.contains_key(&blob.digest))
            .map(|blob| (blob.digest.clone(), blob))
            .collect();
        for (digest, blob) in blobs {
            let candidates = omitted.blobs[&digest].iter().map(String::as_str);
            let one = wanted.entry(digest);
            let one = one.or_insert_with(|| OmittedBlob {
                blob,
                stops: vec![],
                candidates: candidates.collect(),
            });
            if todo.contains(&at) {
                one.stops.push(at);
            }
            if !one
                .candidates
                .contains(&delivery.destination.repository.as_str())
            {
                one.candidates.push(&delivery.destination.repository);
            }
        }
    }
    wanted
        .into_values()
        .filter(|wanted| !wanted.stops.is_empty())
        .collect()
}

fn problem(
    missing: &[(&OmittedBlob<'_>, String)],
    lock: &Lock,
    deliveries: &[Delivery],
    omitted: &Omitted,
    host: &str,
) -> Problem {
    let size = sum_sizes(missing.iter().map(|(wanted, _)| wanted.blob.size));
    let verb = if missing.len() == 1 { "is" } else { "are" };
    let mut message = format!(
        "{} ({}) that the bundle omits {verb} neither in another bundle or store nor at {host}",
        count_of(missing.len(), "blob"),
        human_size(size)
    );
    let mut stops = BTreeSet::new();
    for (wanted, why) in missing {
        let names: BTreeSet<String> = wanted
            .stops
            .iter()
            .map(|&at| lock.entry(deliveries[at].entry).name)
            .collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let Descriptor { digest, size, .. } = &wanted.blob;
        let _ = write!(
            message,
            "\n      {digest} {} for {names}{why}",
            human_size(*size)
        );
        stops.extend(wanted.stops.iter().copied());
    }
    let _ = write!(message, "\n    {}", omitted.advice);
    Problem::new(
        ProblemKind::Content,
        host,
        message,
        stops.into_iter().collect(),
    )
}

/// A source whose omitted blobs are downloaded from the registry.
struct RegistryReadBack {
    inner: Arc<dyn PartSource>,
    session: Arc<RegistrySession>,
    /// The repository that has each omitted blob.
    repositories: BTreeMap<Digest, String>,
}

impl PartSource for RegistryReadBack {
    fn host<'a>(&self, part: &'a EntryPart) -> &'a str {
        self.inner.host(part)
    }

    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>> {
        let Some(repository) = self.repositories.get(&part.descriptor.digest) else {
            return self.inner.open(part, offset);
        };
        Box::pin(self.session.blob(repository, &part.descriptor, offset))
    }
}

// A blob that the content of a push does not include, and the look-up of such blobs at the
// registry.

/// An omitted blob that a delivery needs.
pub(super) struct OmittedBlob<'a> {
    pub(super) blob: Descriptor,
    /// The positions of the pending deliveries that need the blob.
    pub(super) stops: Vec<usize>,
    /// Repositories that may have the blob.
    pub(super) candidates: Vec<&'a str>,
}

/// Finds the first of `candidates` that has the blob with the right size. A receipt or a tag may be
/// out of date, so only a look-up counts.
///
/// If the registry refuses one repository, the other candidates are tried. The first error is
/// returned if none of them has the blob. An error that concerns the whole registry is returned at
/// once.
pub(super) async fn find_repository(
    session: &RegistrySession,
    blob: &Descriptor,
    candidates: &[&str],
) -> Result<Option<String>, HttpError> {
    let mut first_error = None;
    for repository in candidates {
        match session.blob_size(repository, &blob.digest).await {
            Ok(size) if size == Some(blob.size) => return Ok(Some((*repository).to_owned())),
            Ok(_) => {}
            Err(error) if is_about_one_repository(error.kind) => {
                first_error = first_error.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    first_error.map_or(Ok(None), Err)
}

/// Whether the error may not apply to other repositories of the same registry.
fn is_about_one_repository(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Status(_) | ErrorKind::Invalid
    )
}

// Blobs that recipes of the bundle use and that no local file contains. If the registry has them,
// as it does after the delivery of an older bundle, they are downloaded before the first upload.

/// The blobs that recipes use, each with the repositories that receipts name for it.
#[derive(Clone, Default)]
pub(crate) struct References {
    /// Rebuilds blobs once it has the references. `None` if no bundle has recipes.
    pub(crate) rebuilt: Option<std::sync::Arc<RebuiltBlobs>>,
    /// The references of all bundles.
    pub(crate) named: Vec<BlobReference>,
    /// The repositories of the registry that have a reference, according to receipts.
    pub(crate) repositories: BTreeMap<Digest, BTreeSet<String>>,
}

impl std::fmt::Debug for References {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("References")
            .field("repositories", &self.repositories)
            .finish_non_exhaustive()
    }
}

/// Finds the blobs that recipes need to rebuild the blobs in `missing`, and downloads them unless
/// the push is a dry run. Returns the blobs that are still missing, each with a reason.
///
/// `repositories` are those that the push delivers to.
pub(super) async fn fetch_references<'a, 'b>(
    uploader: &Uploader,
    references: &References,
    missing: Vec<(&'a OmittedBlob<'b>, String)>,
    mapping: &DestinationMap,
    repositories: &BTreeSet<String>,
) -> Vec<(&'a OmittedBlob<'b>, String)> {
    let Some(rebuilt) = &references.rebuilt else {
        return missing;
    };
    let mut still_missing = Vec::new();
    // the results for the bases of earlier blobs
    let mut fetched: BTreeMap<Digest, Result<(), String>> = BTreeMap::new();
    // a blob is added again if its recipe needs a base that could not be fetched
    let mut pending: Vec<_> = missing
        .into_iter()
        .rev()
        .map(|one| (one, BTreeSet::new()))
        .collect();
    while let Some(((blob, reason), mut unavailable)) = pending.pop() {
        let needed = match rebuilt.missing_bases(&blob.blob.digest, &unavailable) {
            Ok(Some(needed)) => needed,
            Ok(None) => {
                still_missing.push((blob, reason));
                continue;
            }
            Err(error) => {
                still_missing.push((blob, format!(": {error}")));
                continue;
            }
        };
        let mut failure = None;
        for base in needed {
            if !fetched.contains_key(&base.digest) {
                let of_receipts = references.repositories.get(&base.digest);
                let named = references
                    .named
                    .iter()
                    .filter(|one| one.blob.digest == base.digest);
                let named: Vec<String> = named.flat_map(|one| one.repositories(mapping)).collect();
                let candidates: Vec<&str> = of_receipts
                    .into_iter()
                    .flatten()
                    .chain(&named)
                    .chain(repositories)
                    .map(String::as_str)
                    .collect();
                let result = fetch(uploader, rebuilt, &base, &candidates).await;
                fetched.insert(base.digest.clone(), result);
            }
            if let Some(Err(why)) = fetched.get(&base.digest) {
                failure = Some(format!(": its patch needs {} ({why})", base.digest));
                unavailable.insert(base.digest);
            }
        }
        // another bundle may have a recipe that needs other bases
        if let Some(failure) = failure {
            pending.push(((blob, failure), unavailable));
        }
    }
    still_missing
}

async fn fetch(
    uploader: &Uploader,
    rebuilt: &RebuiltBlobs,
    base: &Descriptor,
    candidates: &[&str],
) -> Result<(), String> {
    let session = &uploader.session;
    let found = find_repository(session, base, candidates).await;
    let Some(repository) = found.map_err(|error| error.to_string())? else {
        return Err(format!("{} does not have it", session.host()));
    };
    if uploader.dry_run {
        return Ok(());
    }
    download(uploader, rebuilt, base, repository).await
}

/// Downloads a blob, continuing where a connection broke.
async fn download(
    uploader: &Uploader,
    rebuilt: &RebuiltBlobs,
    base: &Descriptor,
    repository: String,
) -> Result<(), String> {
    let part = EntryPart {
        descriptor: base.clone(),
        origin: PartOrigin::Blob {
            registry: uploader.session.host().into(),
            repository: repository.into(),
        },
    };
    let registry = Arc::new(RegistryParts(uploader.session.clone()));
    let mut stream = resuming_stream(registry, &part, 0, &uploader.limits);
    let mut writer = rebuilt
        .base_writer(base)
        .map_err(|error| error.to_string())?;
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| error.to_string())?;
        tokio::task::block_in_place(|| writer.write(&piece)).map_err(|error| error.to_string())?;
    }
    writer.finish().map_err(|error| error.to_string())
}
