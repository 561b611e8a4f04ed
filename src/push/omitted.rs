//! Blobs that the source of a push omits, as a delta does. They are looked up at the registry
//! before the first upload, mounted from there like other blobs, and downloaded from there if
//! mounts are refused.

use super::omitted_blob::{OmittedBlob, find_repository};
use super::plan::Delivery;
use super::problem::{Problem, ProblemKind};
use super::references::{References, fetch_references};
use super::uploader::Uploader;
use futures_util::future::BoxFuture;
use landfall_content::registry::RegistrySession;
use landfall_content::{EntryPart, OpenedPart, PartSource, run_concurrently};
use landfall_http::HttpError;
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

/// The deliveries of a push, and which of them are still to be made.
pub(super) struct PendingDeliveries<'a> {
    pub(super) lock: &'a Lock,
    pub(super) mapping: &'a DestinationMap,
    pub(super) deliveries: &'a [Delivery],
    /// The positions of the pending deliveries in `deliveries`.
    pub(super) todo: &'a [usize],
}

/// Looks up the omitted blobs of `pending` at the registry, and makes the uploader's source read
/// them from there. Returns a problem if blobs were not found and cannot be rebuilt.
pub(super) async fn locate_omitted(
    uploader: &mut Uploader,
    omitted: &Omitted,
    pending: PendingDeliveries<'_>,
) -> Option<Problem> {
    let PendingDeliveries {
        lock,
        mapping,
        deliveries,
        todo,
    } = pending;
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
        Box::pin(async move {
            let (start, stream) = self
                .session
                .blob(repository, &part.descriptor, offset)
                .await?;
            // not verified here: the transfer that reads the stream verifies the digest
            Ok(OpenedPart::unchecked(start, stream))
        })
    }
}
