//! What the source of a push omits, as a delta does: found at the registry before the first byte,
//! mounted from there like everything else, and read back where mounts are refused.

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

/// What the source of a push omits.
#[derive(Debug, Clone, Default)]
pub struct Omitted {
    /// Each blob, and repositories that may have it besides those that it goes to.
    pub blobs: BTreeMap<Digest, BTreeSet<String>>,
    /// What to do where the registry lacks one of them.
    pub advice: String,
}

/// A blob that is needed and omitted.
struct OmittedBlob<'a> {
    blob: Descriptor,
    /// The deliveries that need it.
    stops: Vec<usize>,
    /// Repositories that may have it.
    asked: Vec<&'a str>,
}

/// Asks the registry for what the source omits of the deliveries `todo`. What it lacks, or cannot
/// tell, is a problem.
pub(super) async fn find(
    uploader: &mut Uploader,
    omitted: &Omitted,
    (lock, deliveries, todo): (&Lock, &[Delivery], &[usize]),
) -> Option<Problem> {
    let wanted = wanted(omitted, lock, deliveries, todo);
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
            .stands_in(digest, &repository.as_str().into())
            .await;
    }
    let (inner, session) = (uploader.source.clone(), uploader.session.clone());
    let problem =
        (!nowhere.is_empty()).then(|| problem(&nowhere, lock, deliveries, omitted, session.host()));
    uploader.source = Arc::new(RegistryReadBack {
        inner,
        session,
        repositories,
    });
    problem
}

fn wanted<'a>(
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
            let asked = omitted.blobs[&digest].iter().map(String::as_str);
            let one = wanted.entry(digest);
            let one = one.or_insert_with(|| OmittedBlob {
                blob,
                stops: vec![],
                asked: asked.collect(),
            });
            if todo.contains(&at) {
                one.stops.push(at);
            }
            if !one
                .asked
                .contains(&delivery.destination.repository.as_str())
            {
                one.asked.push(&delivery.destination.repository);
            }
        }
    }
    wanted
        .into_values()
        .filter(|wanted| !wanted.stops.is_empty())
        .collect()
}

/// The first repository that has the blob in its right size. Nothing else that a receipt or a tag
/// says is believed.
async fn repository_of(
    session: &RegistrySession,
    wanted: &OmittedBlob<'_>,
) -> Result<Option<String>, HttpError> {
    for repository in &wanted.asked {
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

/// A source, with what it omits read back from the registry.
struct RegistryReadBack {
    inner: Arc<dyn PartSource>,
    session: Arc<RegistrySession>,
    /// The repository of each blob.
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
