//! Blobs that the source of a push omits, as a delta does. They are looked up at the registry
//! before
//! the first byte, mounted from there like others, and downloaded if mounts are refused.

use super::plan::Delivery;
use super::problem::{Problem, ProblemKind};
use super::uploader::Uploader;
use futures_util::future::BoxFuture;
use landfall_content::registry::RegistrySession;
use landfall_content::{EntryPart, OpenedPart, PartSource, run_concurrently};
use landfall_http::HttpError;
use landfall_item::lockfile::Lock;
use landfall_model::{Descriptor, Digest, human_size};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// The blobs that the source of a push omits.
#[derive(Debug, Clone, Default)]
pub struct Omitted {
    /// Each blob, with repositories that may have it besides its destinations.
    pub blobs: BTreeMap<Digest, BTreeSet<String>>,
    /// The fix if the registry lacks one of them, for people.
    pub advice: String,
}

/// An omitted blob that a delivery needs.
struct OmittedBlob<'a> {
    blob: Descriptor,
    /// The deliveries that need it.
    stops: Vec<usize>,
    /// Repositories that may have it.
    candidates: Vec<&'a str>,
}

/// The deliveries that are still to be made.
pub(super) struct PendingDeliveries<'a> {
    pub(super) lock: &'a Lock,
    pub(super) deliveries: &'a [Delivery],
    /// Positions of the pending ones.
    pub(super) todo: &'a [usize],
}

/// Looks up the blobs that the source omits of `pending` at the registry, and lets the source read
/// them from there. A blob that the registry lacks, or does not answer for, is a problem.
pub(super) async fn locate_omitted(
    uploader: &mut Uploader,
    omitted: &Omitted,
    pending: PendingDeliveries<'_>,
) -> Option<Problem> {
    let PendingDeliveries {
        lock,
        deliveries,
        todo,
    } = pending;
    let wanted = omitted_blobs(omitted, lock, deliveries, todo);
    let session = &uploader.session;
    let asking = run_concurrently(wanted.len(), uploader.limits.jobs, |at| {
        repository_of(session, &wanted[at])
    });
    let answers = asking.await;
    let mut repositories = BTreeMap::new();
    let mut nowhere = Vec::new();
    for (wanted, answer) in wanted.iter().zip(answers) {
        match answer {
            Ok(Some(repository)) => {
                repositories.insert(wanted.blob.digest.clone(), repository);
            }
            Ok(None) => nowhere.push((wanted, String::new())),
            Err(error) => nowhere.push((wanted, format!(": {error}"))),
        }
    }
    for (digest, repository) in &repositories {
        uploader
            .note_present_blob(digest, &repository.as_str().into())
            .await;
    }
    let inner = uploader.source.clone();
    let session = uploader.session.clone();
    let problem =
        (!nowhere.is_empty()).then(|| problem(&nowhere, lock, deliveries, omitted, session.host()));
    uploader.source = Arc::new(RegistryReadBack {
        inner,
        session,
        repositories,
    });
    problem
}

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

/// The first repository that has the blob in its right size. A receipt or a tag may be out of date,
/// so only a look-up counts.
async fn repository_of(
    session: &RegistrySession,
    wanted: &OmittedBlob<'_>,
) -> Result<Option<String>, HttpError> {
    for repository in &wanted.candidates {
        if session.blob_size(repository, &wanted.blob.digest).await? == Some(wanted.blob.size) {
            return Ok(Some((*repository).to_owned()));
        }
    }
    Ok(None)
}

fn problem(
    nowhere: &[(&OmittedBlob<'_>, String)],
    lock: &Lock,
    deliveries: &[Delivery],
    omitted: &Omitted,
    host: &str,
) -> Problem {
    let size: u64 = nowhere
        .iter()
        .fold(0, |sum, (wanted, _)| sum.saturating_add(wanted.blob.size));
    let mut message = format!(
        "{} ({}) that the bundle leaves out are neither here nor at {host}",
        match nowhere.len() {
            1 => "1 blob".into(),
            count => format!("{count} blobs"),
        },
        human_size(size)
    );
    let mut stops = BTreeSet::new();
    for (wanted, why) in nowhere {
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
            Ok(OpenedPart::unchecked(start, stream))
        })
    }
}
