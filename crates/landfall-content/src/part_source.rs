//! The trait for sources of parts, and how a part is opened and read from a source, from any
//! offset.

use crate::error::{shorter, truncated};
use crate::git_packs::GitPacks;
use crate::retry::PartAttempts;
use crate::{FailedAttempt, FailureCause, LocalContent, verify_stream};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt};
use landfall_http::{
    Activity, ByteStream, ErrorKind, HttpError, LendableSlot, Transport, UnlimitedSlot,
    lend_while_waiting,
};
use landfall_model::report::{Progress, SilentProgress};
use landfall_model::{Descriptor, Digest, Limits, locked};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tracing::warn;
use url::Url;

/// A source of parts: upstream (registries, web servers and git servers), or a store or bundle.
pub trait PartSource: Send + Sync {
    /// Returns the host that serves the part, or an empty string if it is read locally.
    fn host<'a>(&self, _part: &'a EntryPart) -> &'a str {
        ""
    }

    /// Opens the part at `offset`. The source may start earlier, see [`OpenedPart::start`].
    fn open<'a>(
        &'a self,
        part: &'a EntryPart,
        offset: u64,
    ) -> BoxFuture<'a, Result<OpenedPart, HttpError>>;
}

/// A part that a source has opened.
pub struct OpenedPart {
    /// The offset at which the stream starts: 0 if the source cannot start elsewhere.
    pub start: u64,
    /// The bytes of the part from `start` on.
    pub stream: ByteStream,
    /// Whether the source has verified the bytes, or verifies them while they are read, so that
    /// they are not hashed again.
    pub is_checked: bool,
    /// Called if a blob that contains these bytes turns out wrong. The source answers differently
    /// afterwards, for example without ranges.
    pub on_corrupt: Option<OnCorrupt>,
}

/// Called if the bytes of a source turn out wrong.
pub type OnCorrupt = Box<dyn FnOnce() + Send>;

impl OpenedPart {
    /// Returns a stream whose bytes were not verified yet.
    pub fn unchecked(start: u64, stream: ByteStream) -> OpenedPart {
        OpenedPart {
            start,
            stream,
            is_checked: false,
            on_corrupt: None,
        }
    }

    /// Returns a stream whose bytes the source has verified, or verifies while they are read.
    pub fn checked(start: u64, stream: ByteStream) -> OpenedPart {
        OpenedPart {
            is_checked: true,
            ..OpenedPart::unchecked(start, stream)
        }
    }

    /// Returns the whole of a small part that is in memory, unverified.
    pub fn whole(bytes: Bytes) -> OpenedPart {
        OpenedPart::unchecked(0, futures_util::stream::iter([Ok(bytes)]).boxed())
    }

    /// Returns a stream that the server of `url` began at `start`. If `start` is not 0 and the
    /// bytes turn out wrong, no more ranges are requested from that server. A part made of two
    /// responses does not show which response was wrong, so the next attempt fetches the whole
    /// part.
    pub fn ranged(start: u64, stream: ByteStream, transport: &Transport, url: &Url) -> OpenedPart {
        let opened = OpenedPart::unchecked(start, stream);
        if start == 0 {
            return opened;
        }
        let (transport, url) = (transport.clone(), url.clone());
        opened.on_corrupt(move || transport.distrust_ranges(&url))
    }

    /// Sets the function that is called if these bytes turn out wrong.
    #[must_use]
    pub fn on_corrupt(self, act: impl FnOnce() + Send + 'static) -> OpenedPart {
        OpenedPart {
            on_corrupt: Some(Box::new(act)),
            ..self
        }
    }
}

// Opens one part of a source for a sink, at any offset and as often as the sink needs it. A stream
// that breaks off is resumed here, so that the sink does not notice.

/// One part of a source while it is transferred to a sink.
pub struct PartOpener {
    source: Arc<dyn PartSource>,
    part: EntryPart,
    /// The slot of the transfer, lent to others while the source sends nothing.
    slot: Arc<dyn LendableSlot>,
    progress: Arc<dyn Progress>,
    /// The counter of the long local work of this transfer.
    pub(super) activity: Activity,
    state: Mutex<OpenerState>,
}

struct OpenerState {
    attempts: PartAttempts,
    /// The number of received bytes, including repeated ones.
    received: u64,
    /// How many bytes of the part are counted as done in the progress.
    counted: u64,
    /// The failure of the source, for a sink that sees only the error of a stream.
    failure: Option<FailedAttempt>,
    /// Whether the source broke off and was not opened again yet.
    is_broken: bool,
    /// To be called if the bytes of this attempt turn out wrong.
    on_corrupt: Vec<OnCorrupt>,
}

impl PartOpener {
    pub(super) fn new(
        source: Arc<dyn PartSource>,
        part: &EntryPart,
        slot: Arc<dyn LendableSlot>,
        limits: &Limits,
        progress: Arc<dyn Progress>,
        activity: Activity,
    ) -> PartOpener {
        let state = OpenerState {
            attempts: PartAttempts::new(limits),
            received: 0,
            counted: 0,
            failure: None,
            is_broken: false,
            on_corrupt: Vec::new(),
        };
        PartOpener {
            source,
            part: part.clone(),
            slot,
            progress,
            activity,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, OpenerState> {
        locked(&self.state)
    }

    /// Returns the part that is transferred.
    pub fn part(&self) -> &EntryPart {
        &self.part
    }

    pub(super) fn received(&self) -> u64 {
        self.state().received
    }

    /// Counts received bytes. Bytes that are received again are added to the total of progress.
    pub fn count_received(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.state().received += bytes;
        // a part that is read locally sends no requests, whose ends would count
        drop(self.activity.busy());
        let repeated = bytes - self.count(bytes);
        if repeated > 0 {
            self.progress.more(repeated);
        }
        self.progress.bytes(bytes);
    }

    /// Counts `bytes` further bytes of the part as done, up to the size of the part. Returns how
    /// many of them it counted.
    fn count(&self, bytes: u64) -> u64 {
        let mut state = self.state();
        // bytes of a repeated attempt are not progress a second time
        let counted = bytes.min(self.part.descriptor.size - state.counted);
        state.counted += counted;
        counted
    }

    /// Counts the whole part as done, including the bytes that the sink already had.
    pub(super) fn count_complete(&self) {
        self.progress.bytes(self.count(u64::MAX));
    }

    /// Raises the total of progress by the bytes that were counted, because the transfer failed and
    /// the part is not done. The rest is marked as counted too, so that a body that is still being
    /// read cannot count any more.
    pub(super) fn uncount(&self) {
        let rest = self.count(u64::MAX);
        self.progress.more(self.part.descriptor.size - rest);
    }

    pub(super) fn begin_attempt(&self) {
        let mut state = self.state();
        state.failure = None;
        state.is_broken = false;
        state.on_corrupt.clear();
    }

    /// Returns the pause before the next attempt, or `None` after the last one. Notifies the source
    /// if the bytes were wrong.
    pub(super) fn pause_after(&self, failed: &FailedAttempt) -> Option<Duration> {
        let mut state = self.state();
        let mut cause = failed.cause;
        if matches!(cause, FailureCause::Wrong | FailureCause::WrongOnce) {
            // called once: the source then answers differently, so these wrong bytes do not count
            // as the first of two failures
            for act in std::mem::take(&mut state.on_corrupt) {
                act();
                cause = FailureCause::WrongOnce;
            }
        }
        state.attempts.after(cause)
    }

    /// Opens the part at `offset`. The source may start earlier.
    pub(super) async fn open(&self, offset: u64) -> Result<OpenedPart, FailedAttempt> {
        lend_while_waiting(&*self.slot, self.open_with_slot(offset)).await
    }

    async fn open_with_slot(&self, offset: u64) -> Result<OpenedPart, FailedAttempt> {
        let mut opened = self
            .source
            .open(&self.part, offset)
            .await
            .map_err(FailedAttempt::opening)?;
        self.state().on_corrupt.extend(opened.on_corrupt.take());
        Ok(opened)
    }

    /// Opens the part at `offset` for a sink that cannot verify the received bytes. A stream from
    /// byte 0 is verified here and fails before its end if the digest is wrong; a stream from the
    /// middle cannot be verified.
    ///
    /// # Errors
    /// The error of the source; [`PartOpener::failure`] returns the failed attempt.
    pub async fn stream(self: &Arc<Self>, offset: u64) -> Result<ByteStream, HttpError> {
        let opened = match self.open(offset).await {
            Ok(opened) => opened,
            Err(failed) => return Err(self.note(failed)),
        };
        let needs_check = offset == 0 && !opened.is_checked;
        let opener = self.clone();
        let stream = self
            .resuming(offset, opened)
            .inspect_ok(move |bytes| opener.count_received(bytes.len()))
            .boxed();
        if needs_check {
            Ok(self.noting(verify_stream(stream, &self.part.descriptor)))
        } else {
            Ok(stream)
        }
    }

    /// Opens the part at `offset` for a sink that verifies the received bytes and counts them with
    /// [`PartOpener::count_received`]. [`PartOpener::failed`] turns an error of the stream into a
    /// failed attempt.
    ///
    /// # Errors
    /// If the source cannot be opened.
    pub async fn unchecked_stream(
        self: &Arc<Self>,
        offset: u64,
    ) -> Result<ByteStream, FailedAttempt> {
        Ok(self.resuming(offset, self.open(offset).await?))
    }

    /// Returns the bytes from `offset` to the end of the part. If the source breaks off, it is
    /// opened again at that byte, so neither the sink nor its hash has to start over.
    pub(super) fn resuming(self: &Arc<Self>, offset: u64, opened: OpenedPart) -> ByteStream {
        let resuming = ResumingStream {
            opener: self.clone(),
            opened_at: offset,
            at: offset,
            ended_at: None,
            stream: skip(opened.stream, offset - opened.start),
        };
        futures_util::stream::unfold(Some(resuming), async |state: Option<ResumingStream>| {
            let resuming = state?;
            let slot = resuming.opener.slot.clone();
            lend_while_waiting(&*slot, resuming.next()).await
        })
        .boxed()
    }

    /// Opens the part again at `at`, where a stream that was opened at `opened_at` broke off.
    async fn reopen(
        &self,
        broken: HttpError,
        opened_at: u64,
        at: u64,
    ) -> Result<ByteStream, HttpError> {
        let mut pause = None;
        // other errors, such as wrong bytes or a denied request, would repeat at the same offset
        if broken.kind == ErrorKind::Network {
            let mut state = self.state();
            state.is_broken = true;
            // the bytes since the last opening decide: a stream that makes progress may break any
            // number of times
            pause = state.attempts.broke_off(at - opened_at);
        }
        let Some(pause) = pause else {
            return Err(self.note(FailedAttempt::reading(broken)));
        };
        warn!(
            digest = %self.part.descriptor.digest,
            offset = at,
            ?pause,
            error = %broken,
            "the source broke off; resuming at this offset"
        );
        pause_for(pause).await;
        match self.open_with_slot(at).await {
            Ok(opened) => {
                self.state().is_broken = false;
                Ok(skip(opened.stream, at - opened.start))
            }
            Err(failed) => Err(self.note(failed)),
        }
    }

    /// Records the first failure of `stream`, unless a failure was recorded before.
    fn noting(self: &Arc<Self>, stream: ByteStream) -> ByteStream {
        let opener = self.clone();
        stream
            .inspect_err(move |error| {
                if opener.state().failure.is_none() {
                    opener.note(FailedAttempt::reading(error.clone()));
                }
            })
            .boxed()
    }

    fn note(&self, failed: FailedAttempt) -> HttpError {
        let error = (*failed.error.why).clone();
        self.state().failure = Some(failed);
        error
    }

    /// Whether the source has broken off in this attempt and sends no bytes now. If so, the source
    /// caused a failure that the sink reports.
    pub fn is_broken(&self) -> bool {
        let state = self.state();
        state.is_broken || state.failure.is_some()
    }

    /// Removes and returns the failure of the source in this attempt, if there was one.
    pub fn failure(&self) -> Option<FailedAttempt> {
        self.state().failure.take()
    }

    /// Returns the failed attempt for an error of a stream of this opener.
    pub fn failed(&self, error: HttpError) -> FailedAttempt {
        self.failure()
            .unwrap_or_else(|| FailedAttempt::reading(error))
    }
}

/// Reads a part that no transfer reads, from `offset` on. If the source breaks off, it is opened
/// again at that byte.
pub fn resuming_stream(
    source: Arc<dyn PartSource>,
    part: &EntryPart,
    offset: u64,
    limits: &Limits,
) -> ByteStream {
    let opener = Arc::new(PartOpener::new(
        source,
        part,
        Arc::new(UnlimitedSlot),
        limits,
        Arc::new(SilentProgress),
        Activity::default(),
    ));
    let opening = async move { opener.unchecked_stream(offset).await };
    futures_util::stream::once(opening)
        .map_err(|failed| (*failed.error.why).clone())
        .try_flatten()
        .boxed()
}

/// A stream of a part that is opened again wherever the source breaks off.
struct ResumingStream {
    opener: Arc<PartOpener>,
    /// The offset at which `stream` was opened.
    opened_at: u64,
    /// The offset of the next byte.
    at: u64,
    /// The offset at which an earlier stream ended without an error.
    ended_at: Option<u64>,
    stream: ByteStream,
}

impl ResumingStream {
    /// Returns the next bytes and the stream after them, or an error that ends the stream, or
    /// `None` at the end of the part.
    async fn next(mut self) -> Option<(Result<Bytes, HttpError>, Option<ResumingStream>)> {
        loop {
            let descriptor = &self.opener.part.descriptor;
            let broken = match self.stream.next().await {
                Some(Ok(bytes)) => {
                    self.at += bytes.len() as u64;
                    return Some((Ok(bytes), Some(self)));
                }
                None if self.at >= descriptor.size => return None,
                // Without a length in the response, TLS must announce the end, which some servers
                // do not. The bytes are all there, and their digest is compared.
                Some(Err(error))
                    if self.at >= descriptor.size && error.kind == ErrorKind::Network =>
                {
                    return None;
                }
                // if two responses end at the same byte, they were not cut: the content is shorter
                None if self.ended_at == Some(self.at) => shorter(descriptor, self.at),
                None => {
                    self.ended_at = Some(self.at);
                    truncated(descriptor, self.at)
                }
                Some(Err(error)) => error,
            };
            let ResumingStream {
                opener,
                opened_at,
                at,
                ended_at,
                stream,
            } = self;
            // the broken stream may still hold the slot that the next request waits for
            drop(stream);
            match opener.reopen(broken, opened_at, at).await {
                Ok(stream) => {
                    self = ResumingStream {
                        opener,
                        opened_at: at,
                        at,
                        ended_at,
                        stream,
                    }
                }
                Err(error) => return Some((Err(error), None)),
            }
        }
    }
}

/// Sleeps for `pause`. Does not yield to other tasks if the pause is zero.
pub(super) async fn pause_for(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

/// Drops the first `bytes` of a stream, for a source that can only start at its beginning.
fn skip(stream: ByteStream, mut bytes: u64) -> ByteStream {
    if bytes == 0 {
        return stream;
    }
    let skip_piece = move |next: Result<Bytes, HttpError>| {
        let next = next.map(|mut piece| {
            let skipped = bytes.min(piece.len() as u64);
            bytes -= skipped;
            piece.split_off(skipped as usize)
        });
        let is_empty = next.as_ref().is_ok_and(Bytes::is_empty);
        // an empty piece would look like the end to some receivers
        std::future::ready((!is_empty).then_some(next))
    };
    stream.filter_map(skip_piece).boxed()
}

/// One blob or manifest of a [`LockEntry`](crate::LockEntry).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPart {
    /// Digest, size and media type.
    pub descriptor: Descriptor,
    /// The origin of its bytes.
    pub origin: PartOrigin,
}

/// The origin of the bytes of an [`EntryPart`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartOrigin {
    /// A manifest of a registry, requested by digest.
    Manifest {
        /// The host of the registry, as in the lock.
        registry: Arc<str>,
        /// The repository, without the host.
        repository: Arc<str>,
    },
    /// A blob of a registry.
    Blob {
        /// The host of the registry, as in the lock.
        registry: Arc<str>,
        /// The repository, without the host.
        repository: Arc<str>,
    },
    /// A foreign layer: the registry need not have it, and URLs for it are in the manifests of its
    /// image.
    Foreign {
        /// The host of the registry, as in the lock.
        registry: Arc<str>,
        /// The repository, without the host.
        repository: Arc<str>,
        /// The manifests of the image, which list the URLs. Shared by all layers of the image.
        manifests: Arc<[Descriptor]>,
    },
    /// A file on a web server.
    Url(String),
    /// A file with several URLs for the same bytes. If a URL does not provide the file, the next
    /// one is tried.
    Urls(Vec<String>),
    /// A pack that is written from the objects of a git repository.
    Git {
        /// The repository and all its packs.
        repository: Arc<GitPacks>,
        /// The index of this pack in `repository.packs`.
        pack: usize,
    },
    /// A large file of a git repository, requested by digest from its Git LFS server.
    LargeFile(Arc<LfsServer>),
    /// Content next to the lock.
    Local(LocalContent),
    /// Computed from the lock, so nothing is fetched.
    Computed(Vec<u8>),
    /// The index `of` with only the children in `keep` ([`landfall_model::trim_index`]).
    Trimmed {
        /// The untrimmed index, a part of the same entry.
        of: Descriptor,
        /// The digests of the children that are kept.
        keep: std::collections::BTreeSet<Digest>,
    },
}

impl PartOrigin {
    /// Returns the URL of a file on a web server; the first if it has several.
    pub fn url(&self) -> Option<&str> {
        match self {
            PartOrigin::Url(url) => Some(url),
            PartOrigin::Urls(urls) => urls.first().map(String::as_str),
            _ => None,
        }
    }
}

impl EntryPart {
    /// Returns the registry or web server that has the bytes, as the lock names it, or an empty
    /// string if they are computed or next to the lock.
    pub fn host(&self) -> &str {
        match &self.origin {
            PartOrigin::Manifest { registry, .. }
            | PartOrigin::Blob { registry, .. }
            | PartOrigin::Foreign { registry, .. } => registry,
            PartOrigin::Git { repository, .. } if repository.path.is_none() => {
                host_of(&repository.url)
            }
            PartOrigin::LargeFile(server) => host_of(&server.url),
            origin => origin.url().map_or("", host_of),
        }
    }

    /// Whether a push delivers the part as a manifest, not as a blob.
    pub fn is_manifest(&self) -> bool {
        match &self.origin {
            PartOrigin::Manifest { .. } | PartOrigin::Trimmed { .. } => true,
            PartOrigin::Blob { .. }
            | PartOrigin::Foreign { .. }
            | PartOrigin::Url(_)
            | PartOrigin::Urls(_)
            | PartOrigin::Git { .. }
            | PartOrigin::LargeFile(_) => false,
            // the computed parts are the manifests and configs of items that are not images
            PartOrigin::Computed(_) | PartOrigin::Local(_) => {
                landfall_model::media_type::is_manifest(&self.descriptor.media_type)
            }
        }
    }

    /// Whether the bytes must be stored. Other parts are computed from the lock or another part.
    pub fn is_stored(&self) -> bool {
        !matches!(
            self.origin,
            PartOrigin::Computed(_) | PartOrigin::Trimmed { .. }
        )
    }
}

/// Returns the host of a URL, with its port: the text between `//` and the next `/`.
fn host_of(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or(url)
}

/// A Git LFS server: the URL of its API, and the repository that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LfsServer {
    /// The URL to which `/objects/batch` is appended.
    pub url: String,
    /// The URL of the repository whose `.lfsconfig` names the server. `None` if the user named the
    /// server or its repository.
    pub named_by: Option<String>,
}

impl LfsServer {
    /// The server of the repository at `url`, unless its `.lfsconfig` names another one (git-lfs,
    /// docs/api/server-discovery.md).
    pub fn of_repository(url: &str) -> LfsServer {
        let ending = if url.ends_with(".git") { "" } else { ".git" };
        LfsServer {
            url: format!("{url}{ending}/info/lfs"),
            named_by: None,
        }
    }
}
