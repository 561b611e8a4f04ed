//! What the source of a push leaves out, as a delta does: found at the registry before the first byte, mounted
//! from there like everything else, and read back where mounts are refused.

use super::deliver::Carrier;
use super::plan::Delivery;
use super::preflight::{Problem, ProblemKind};
use crate::content::{Opened, Part, Source};
use crate::http::Error;
use crate::item::entry;
use crate::lockfile::Lock;
use crate::model::{Descriptor, Digest, human_size};
use crate::registry::Session;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// What the source of a push leaves out.
#[derive(Debug, Clone, Default)]
pub struct LeftOut {
    /// Each blob, and repositories that may have it besides those that it goes to.
    pub blobs: BTreeMap<Digest, BTreeSet<String>>,
    /// What to do where the registry has one of them not.
    pub advice: String,
}

/// A blob that is needed and left out.
struct Wanted<'a> {
    blob: Descriptor,
    /// The deliveries that need it.
    stops: Vec<usize>,
    /// Repositories that may have it.
    asked: Vec<&'a str>,
}

/// Asks the registry for what is left out of the deliveries `todo`. What it has not, or cannot tell, is a
/// problem.
pub(super) async fn find(
    carrier: &mut Carrier,
    left_out: &LeftOut,
    (lock, deliveries, todo): (&Lock, &[Delivery], &[usize]),
    jobs: usize,
) -> Option<Problem> {
    let wanted = wanted(left_out, lock, deliveries, todo);
    let session = &carrier.session;
    let asking: Vec<_> = wanted.iter().map(|wanted| place(session, wanted)).collect();
    let answers: Vec<_> = futures_util::stream::iter(asking).buffered(jobs.max(1)).collect().await;
    let mut places = BTreeMap::new();
    let mut nowhere = Vec::new();
    for (wanted, answer) in wanted.iter().zip(answers) {
        match answer {
            Ok(Some(place)) => {
                places.insert(wanted.blob.digest.clone(), place);
            }
            Ok(None) => nowhere.push((wanted, String::new())),
            Err(error) => nowhere.push((wanted, format!(": {error}"))),
        }
    }
    for (digest, place) in &places {
        carrier.stands_in(digest, &place.as_str().into()).await;
    }
    let (inner, session) = (carrier.source.clone(), carrier.session.clone());
    let problem =
        (!nowhere.is_empty()).then(|| problem(&nowhere, lock, deliveries, left_out, session.host()));
    carrier.source = Arc::new(ReadBack { inner, session, places });
    problem
}

fn wanted<'a>(
    left_out: &'a LeftOut,
    lock: &Lock,
    deliveries: &'a [Delivery],
    todo: &[usize],
) -> Vec<Wanted<'a>> {
    let mut wanted: BTreeMap<Digest, Wanted> = BTreeMap::new();
    for (at, delivery) in deliveries.iter().enumerate().filter(|_| !left_out.blobs.is_empty()) {
        let parts = entry(lock, delivery.entry).parts.into_iter().map(|part| part.descriptor);
        let blobs: BTreeMap<Digest, Descriptor> = parts
            .filter(|blob| left_out.blobs.contains_key(&blob.digest))
            .map(|blob| (blob.digest.clone(), blob))
            .collect();
        for (digest, blob) in blobs {
            let asked = left_out.blobs[&digest].iter().map(String::as_str);
            let one = wanted.entry(digest);
            let one = one.or_insert_with(|| Wanted { blob, stops: vec![], asked: asked.collect() });
            if todo.contains(&at) {
                one.stops.push(at);
            }
            if !one.asked.contains(&delivery.place.repository.as_str()) {
                one.asked.push(&delivery.place.repository);
            }
        }
    }
    wanted.into_values().filter(|wanted| !wanted.stops.is_empty()).collect()
}

/// The first repository that has the blob in its right size. Nothing else that a receipt or a tag says is
/// believed.
async fn place(session: &Session, wanted: &Wanted<'_>) -> Result<Option<String>, Error> {
    for repository in &wanted.asked {
        if session.blob_size(repository, &wanted.blob.digest).await? == Some(wanted.blob.size) {
            return Ok(Some((*repository).to_owned()));
        }
    }
    Ok(None)
}

fn problem(
    nowhere: &[(&Wanted<'_>, String)],
    lock: &Lock,
    deliveries: &[Delivery],
    left_out: &LeftOut,
    host: &str,
) -> Problem {
    let size: u64 = nowhere.iter().fold(0, |sum, (wanted, _)| sum.saturating_add(wanted.blob.size));
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
        let names: BTreeSet<String> =
            wanted.stops.iter().map(|&at| entry(lock, deliveries[at].entry).name).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let Descriptor { digest, size, .. } = &wanted.blob;
        let _ = write!(message, "\n      {digest} {} for {names}{why}", human_size(*size));
        stops.extend(wanted.stops.iter().copied());
    }
    let _ = write!(message, "\n    {}", left_out.advice);
    Problem::new(ProblemKind::Content, host, message, stops.into_iter().collect())
}

/// A source of which the registry has what it lacks.
struct ReadBack {
    inner: Arc<dyn Source>,
    session: Arc<Session>,
    /// The repository of each blob.
    places: BTreeMap<Digest, String>,
}

impl Source for ReadBack {
    fn open<'a>(&'a self, part: &'a Part, offset: u64) -> BoxFuture<'a, Result<Opened, Error>> {
        let Some(repository) = self.places.get(&part.descriptor.digest) else {
            return self.inner.open(part, offset);
        };
        Box::pin(async move {
            let (start, stream) = self.session.blob_to_send(repository, &part.descriptor, offset).await?;
            Ok(Opened::unchecked(start, stream))
        })
    }
}
