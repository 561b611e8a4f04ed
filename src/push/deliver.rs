//! One delivery: blobs, child manifests, index, what refers to them, tag last.

use super::names::project;
use super::plan::trimmed;
use super::refusals::{foreign_urls, refuses_children};
use crate::config::IndexPolicy;
use crate::content::{Brought, Entry, Origin, Part, Source, Transfer, TransferError, read_part};
use crate::http::ErrorKind;
use crate::model::{Digest, Limits, media_type, trim_index};
use crate::registry::{RegistrySink, Session, is_immutable, is_quota};
use crate::report::{Progress, Side};
use bytes::Bytes;
use futures_util::StreamExt;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Held while a manifest is written; says of one that was whether the registry lists it as a referrer.
type Turn = Arc<tokio::sync::Mutex<Option<bool>>>;

/// The repositories in which a digest is known to stand; held by who brings it to one.
type Place = Arc<tokio::sync::Mutex<Vec<Arc<str>>>>;

/// What all deliveries of a run share.
pub(super) struct Carrier {
    pub(super) session: Arc<Session>,
    pub(super) source: Arc<dyn Source>,
    pub(super) progress: Arc<dyn Progress>,
    /// Attempts at each blob.
    pub(super) limits: Limits,
    /// Blobs in flight.
    pub(super) lanes: Semaphore,
    /// What to do where an index with missing children is refused.
    pub(super) index: IndexPolicy,
    /// The registry has refused an index with missing children.
    pub(super) refuses_sparse: AtomicBool,
    /// Whether a tag of cosign's may be taken away from another digest.
    pub(super) move_tags: bool,
    /// Whose turn it is to write a manifest, by repository and reference.
    turns: Mutex<HashMap<(String, String), Turn>>,
    /// The registry has refused a mount.
    refuses_mounts: AtomicBool,
    /// Projects that have no room for more, and the name that the registry said it of.
    full: Mutex<BTreeMap<String, String>>,
    /// Where each digest is known to stand, and the turn to bring it there.
    places: Mutex<HashMap<Digest, Place>>,
}

impl Carrier {
    pub(super) fn new(
        session: Arc<Session>,
        source: Arc<dyn Source>,
        progress: Arc<dyn Progress>,
        limits: Limits,
        jobs: usize,
        index: IndexPolicy,
    ) -> Carrier {
        Carrier {
            session,
            source,
            progress,
            limits,
            lanes: Semaphore::new(jobs),
            index,
            refuses_sparse: AtomicBool::new(false),
            move_tags: false,
            turns: Mutex::default(),
            refuses_mounts: AtomicBool::new(false),
            full: Mutex::default(),
            places: Mutex::default(),
        }
    }

    fn places(&self, digest: &Digest) -> Place {
        let mut places = self.places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        places.entry(digest.clone()).or_default().clone()
    }

    /// Forgets what came of a turn, unless somebody waits for it or has it.
    fn forget(&self, repository: &str, reference: &str) {
        let mut turns = self.turns.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (repository.to_owned(), reference.to_owned());
        if turns.get(&key).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&key);
        }
    }

    /// The turn to write what stands at a tag or digest, and what came of the last one.
    pub(super) fn turn(&self, repository: &str, reference: &str) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        turns.entry((repository.to_owned(), reference.to_owned())).or_default().clone()
    }

    /// The blobs of an entry that stands whole in `repository` can be mounted from there.
    pub(super) async fn stands(&self, entry: &Entry, repository: &str) {
        let repository: Arc<str> = repository.into();
        for part in entry.parts.iter().filter(|part| !part.is_manifest()) {
            self.stands_in(&part.descriptor.digest, &repository).await;
        }
    }

    /// The blob can be mounted from `repository`.
    pub(super) async fn stands_in(&self, digest: &Digest, repository: &Arc<str>) {
        self.places(digest).lock().await.push(repository.clone());
    }

    /// Where each digest is known to stand, for the receipt. Nothing is known afterwards.
    pub(super) fn take_places(&self) -> BTreeMap<Digest, String> {
        let mut places = self.places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = |(digest, list): (Digest, Place)| {
            let first = list.try_lock().ok()?.first()?.to_string();
            Some((digest, first))
        };
        places.drain().filter_map(first).collect()
    }

    /// Brings one entry to `repository:tag`. Returns the digest that the tag stands at.
    pub(super) async fn deliver(
        self: &Arc<Self>,
        entry: &Entry,
        repository: &str,
        tag: &str,
    ) -> Result<Digest, TransferError> {
        let delivered = self.deliver_parts(entry, repository, tag).await;
        if let Err(error) = &delivered
            && error.side == Side::Destination
            && is_quota(error.why.kind, &error.why.codes)
        {
            let mut full = self.full.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            full.entry(project(repository).to_owned()).or_insert_with(|| entry.name.clone());
        }
        delivered
    }

    /// A quota refusal is final for its project: what is whole there stays, and nothing more is tried.
    fn has_room(&self, repository: &str) -> Result<(), TransferError> {
        let full = self.full.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(first) = full.get(project(repository)) else { return Ok(()) };
        let message = format!(
            "not sent: '{}' has no room for more, as was said of {first}; raise its quota and run it again",
            project(repository)
        );
        Err(TransferError::new(Side::Destination, ErrorKind::Invalid, message))
    }

    async fn deliver_parts(
        self: &Arc<Self>,
        entry: &Entry,
        repository: &str,
        tag: &str,
    ) -> Result<Digest, TransferError> {
        self.has_room(repository)?;
        self.blobs(entry, repository).await?;
        let manifests: Vec<&Part> = entry
            .parts
            .iter()
            .filter(|part| part.is_manifest() && part.descriptor.digest != entry.top.digest)
            .filter(|part| !matches!(part.origin, Origin::Trimmed { .. }))
            .filter(|part| !entry.only_refers(&part.descriptor.digest))
            .collect();
        let (indexes, leaves): (Vec<&Part>, Vec<&Part>) =
            manifests.into_iter().partition(|part| media_type::is_index(&part.descriptor.media_type));
        let putting: Vec<_> = leaves.iter().map(|part| self.put_child(part, repository)).collect();
        let mut putting = futures_util::stream::iter(putting).buffer_unordered(4);
        while let Some(result) = putting.next().await {
            result?;
        }
        for part in indexes {
            self.put_child(part, repository).await?;
        }
        if !entry.referrers.is_empty() {
            // the tag comes last: where it stands, what refers to the image stands too
            self.put_top(entry, repository, None).await?;
            self.attach(entry, repository).await?;
        }
        self.put_top(entry, repository, Some(tag)).await
    }

    async fn put_child(&self, part: &Part, repository: &str) -> Result<(), TransferError> {
        let bytes = read_part(&*self.source, part).await.map_err(TransferError::source)?;
        let reference = part.descriptor.digest.to_string();
        self.put(repository, &reference, &part.descriptor.media_type, bytes).await.map(drop)
    }

    /// Puts a manifest; by digest once for the whole run, since some registries answer wrongly about a
    /// manifest that is just being written again. Says whether the registry lists it as a referrer.
    pub(super) async fn put(
        &self,
        repository: &str,
        reference: &str,
        kind: &str,
        bytes: Bytes,
    ) -> Result<bool, TransferError> {
        let turn = self.turn(repository, reference);
        let is_digest = reference.contains(':');
        let result = {
            let mut listed = turn.lock().await;
            match *listed {
                Some(listed) if is_digest => Ok(listed),
                _ => {
                    self.put_now(repository, reference, kind, bytes).await.inspect(|now| *listed = Some(*now))
                }
            }
        };
        drop(turn);
        if !is_digest {
            self.forget(repository, reference);
        }
        result
    }

    async fn put_now(
        &self,
        repository: &str,
        reference: &str,
        kind: &str,
        bytes: Bytes,
    ) -> Result<bool, TransferError> {
        // docker-registry answers DIGEST_INVALID where one manifest is written at two places at once
        let content = Digest::sha256(&bytes).to_string();
        let turn = self.turn("", &content);
        let put = {
            let _turn = turn.lock().await;
            self.session.put_manifest(repository, reference, kind, bytes.clone()).await
        };
        drop(turn);
        self.forget("", &content);
        let mut error = match put {
            Ok(listed) => return Ok(listed),
            Err(error) => error,
        };
        if is_immutable(error.kind, &error.codes) {
            // the tag may have come to stand at this very digest meanwhile, and may not be written again
            let stands = self.session.head_manifest(repository, reference, true).await;
            if let Ok(Some(digest)) = stands
                && digest.matches(&bytes)
            {
                return Ok(false);
            }
        }
        if foreign_urls(&bytes) {
            error = error.hint(
                "; it names URLs of layers, which registries may refuse: docker-registry takes those that \
                 validation.manifests.urls.allow of its configuration names",
            );
        }
        Err(TransferError::destination(error))
    }

    /// The untouched index where the registry takes it, else the trimmed one: at the tag, or by digest.
    async fn put_top(
        &self,
        entry: &Entry,
        repository: &str,
        tag: Option<&str>,
    ) -> Result<Digest, TransferError> {
        let reference = |part: &Part| tag.map_or_else(|| part.descriptor.digest.to_string(), str::to_owned);
        let top = top(entry);
        let bytes = read_part(&*self.source, top).await.map_err(TransferError::source)?;
        let kind = &top.descriptor.media_type;
        let Some(part) = trimmed(entry) else {
            self.put(repository, &reference(top), kind, bytes).await?;
            return Ok(top.descriptor.digest.clone());
        };
        if !self.refuses_sparse.load(Ordering::Relaxed) {
            match self.put(repository, &reference(top), kind, bytes.clone()).await {
                Ok(_) => return Ok(top.descriptor.digest.clone()),
                Err(error) if refuses_children(&error) && self.index == IndexPolicy::Trimmed => {
                    self.refuses_sparse.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        let Origin::Trimmed { keep, .. } = &part.origin else { return Ok(top.descriptor.digest.clone()) };
        let invalid = |message: String| TransferError::new(Side::Source, ErrorKind::Invalid, message);
        let bytes = trim_index(&bytes, keep).map_err(|error| invalid(error.to_string()))?;
        if !part.descriptor.digest.matches(&bytes) {
            return Err(invalid(format!(
                "the trimmed index is not {}, as the lock says",
                part.descriptor.digest
            )));
        }
        self.put(repository, &reference(part), kind, bytes.into()).await?;
        Ok(part.descriptor.digest.clone())
    }

    /// Whether the registry takes the entry's index although children are missing: it is put by digest,
    /// without a tag.
    pub(super) async fn takes_sparse(&self, entry: &Entry, repository: &str) -> Result<bool, TransferError> {
        let top = top(entry);
        match self.put_child(top, repository).await {
            Ok(()) => Ok(true),
            Err(error) if refuses_children(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn blobs(self: &Arc<Self>, entry: &Entry, repository: &str) -> Result<(), TransferError> {
        let repository: Arc<str> = repository.into();
        let mut tasks = tokio::task::JoinSet::new();
        let mut seen = std::collections::HashSet::new();
        for part in entry.parts.iter().filter(|part| !part.is_manifest()) {
            if seen.insert(&part.descriptor.digest) {
                let (carrier, part, repository) = (self.clone(), part.clone(), repository.clone());
                tasks.spawn(async move { carrier.blob(&part, &repository).await });
            }
        }
        while let Some(done) = tasks.join_next().await {
            let local = |message: String| TransferError::new(Side::Destination, ErrorKind::Local, message);
            done.map_err(|error| local(format!("a transfer ended without a result: {error}")))??;
        }
        Ok(())
    }

    /// Brings one blob to `repository`: mounted where the registry has it in another repository, else sent
    /// unless it is there. It is sent by one at a time, mounted by any number.
    async fn blob(&self, part: &Part, repository: &Arc<str>) -> Result<(), TransferError> {
        let places = self.places(&part.descriptor.digest);
        let size = part.descriptor.size;
        // the turn comes before the lane: whoever waits for another's upload holds no lane
        let mut turn = places.lock().await;
        if turn.iter().any(|place| place == repository) {
            return Ok(());
        }
        let mut from = turn.first().cloned();
        if let Some(other) = from.as_deref().filter(|_| !self.refuses_mounts.load(Ordering::Relaxed)) {
            drop(turn);
            if self.mounted(part, repository, other).await? {
                self.progress.bytes(size);
                places.lock().await.push(repository.clone());
                return Ok(());
            }
            from = None;
            turn = places.lock().await;
        }
        let _lane = self.lanes.acquire().await;
        self.has_room(repository)?;
        let sink = RegistrySink::new(self.session.clone(), repository.clone(), from);
        let (source, progress) = (self.source.clone(), self.progress.clone());
        let transfer = Transfer { source, sink: Arc::new(sink), limits: self.limits, progress };
        if transfer.bring(part).await? == Brought::There {
            self.progress.bytes(size);
        }
        turn.push(repository.clone());
        Ok(())
    }

    /// Whether the registry mounted the blob from `other`. Where it did not, mounts wait for their turn, as
    /// they may end in uploads.
    async fn mounted(&self, part: &Part, repository: &str, other: &str) -> Result<bool, TransferError> {
        let _lane = self.lanes.acquire().await;
        self.has_room(repository)?;
        match self.session.mount(repository, &part.descriptor.digest, other).await {
            Ok(true) => Ok(true),
            Err(error) if is_quota(error.kind, &error.codes) => Err(TransferError::destination(error)),
            Ok(false) | Err(_) => {
                self.refuses_mounts.store(true, Ordering::Relaxed);
                Ok(false)
            }
        }
    }
}

fn top(entry: &Entry) -> &Part {
    // entries end with their top
    &entry.parts[entry.parts.len() - 1]
}
