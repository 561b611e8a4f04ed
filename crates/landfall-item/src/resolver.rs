//! The network and store that resolving uses. What is fetched is stored, so that `pull` does not
//! fetch it again.

use super::chart::FindImages;
use super::packages::SharedSuites;
use super::repositories::{RepositoryTags, UpstreamRepositories};
use bytes::Bytes;
use landfall_content::archives::ArchiveImages;
use landfall_content::registry::{FetchedManifest, RegistrySessions};
use landfall_content::store::DiskStore;
use landfall_content::upstream::{Upstreams, expect_file, get_file};
use landfall_content::{BlobRead, ContentError, EntryPart, LocalSink, PartOrigin, Transfer};
use landfall_http::{BodyFailure, ErrorKind, HttpError, OnceMap, UnlimitedSlot};
use landfall_model::report::{Progress, SilentProgress, TransferSide, one_line};
use landfall_model::{Descriptor, Digest, ImageRef, Limits, ManifestError};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Why an item cannot be resolved. The lock must be the same on every machine, so its text names no
/// mirror, redirect or time; the message for people does.
#[derive(Debug, Clone)]
pub struct ResolveError {
    /// The text for the lock.
    pub recorded: String,
    /// The message for people.
    pub told: String,
    /// Whether upstream answered that it does not have the item.
    pub is_gone: bool,
    /// Whether the failure may be temporary: the network, a server or this machine failed.
    pub is_passing: bool,
}

impl ResolveError {
    /// A failure of this machine. Its text differs from machine to machine, so the lock gets a
    /// fixed text instead.
    pub fn local(told: String) -> ResolveError {
        let recorded = "it could not be kept on the machine that locked it".into();
        ResolveError {
            recorded,
            told: one_line(&told),
            is_gone: false,
            is_passing: true,
        }
    }

    /// Upstream answered that it does not have the item.
    pub fn gone() -> ResolveError {
        ResolveError {
            is_gone: true,
            ..GONE.into()
        }
    }

    /// The same error, about a part of the item.
    #[must_use]
    pub fn of(self, part: &str) -> ResolveError {
        let [recorded, told] =
            [self.recorded, self.told].map(|text| one_line(&format!("{part}: {text}")));
        ResolveError {
            recorded,
            told,
            ..self
        }
    }

    /// The same error, with what happened next added to the message for people.
    #[must_use]
    pub fn then(self, next: &impl std::fmt::Display) -> ResolveError {
        ResolveError {
            told: one_line(&format!("{}; {next}", self.told)),
            ..self
        }
    }
}

impl std::fmt::Display for ResolveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told)
    }
}

const GONE: &str = "upstream does not have it";

impl From<String> for ResolveError {
    /// `why` may quote an index or a chart, so line breaks in it are removed.
    fn from(why: String) -> ResolveError {
        let why = one_line(&why);
        ResolveError {
            recorded: why.clone(),
            told: why,
            is_gone: false,
            is_passing: false,
        }
    }
}

impl From<&str> for ResolveError {
    fn from(why: &str) -> ResolveError {
        why.to_owned().into()
    }
}

impl From<HttpError> for ResolveError {
    fn from(error: HttpError) -> ResolveError {
        let recorded = match error.kind {
            ErrorKind::NotFound => GONE,
            ErrorKind::Denied => "upstream refuses access",
            ErrorKind::Proxy(_) => "the proxy does not let it through",
            ErrorKind::RetryAfter(_) => "upstream asked to come back later",
            ErrorKind::Network | ErrorKind::GivenUp => "upstream was not reached",
            ErrorKind::Status(_) => "upstream answered with an error",
            ErrorKind::Invalid => "upstream's answer was not valid",
            ErrorKind::Local => "it could not be asked for",
        };
        let is_gone = is_gone(&error);
        ResolveError {
            recorded: recorded.into(),
            told: error.to_string(),
            is_gone,
            is_passing: !is_gone,
        }
    }
}

/// Whether upstream does not have the item. Docker Hub and Quay answer 401 for a deleted
/// repository, as they do for a private one; proxies and firewalls refuse with 403.
fn is_gone(error: &HttpError) -> bool {
    error.kind == ErrorKind::NotFound
        || (error.kind == ErrorKind::Denied && error.status == Some(401))
}

impl From<ManifestError> for ResolveError {
    fn from(error: ManifestError) -> ResolveError {
        error.to_string().into()
    }
}

impl From<ContentError> for ResolveError {
    fn from(error: ContentError) -> ResolveError {
        ResolveError::local(error.to_string())
    }
}

/// Resolves the names of items to digests, and stores what it fetches on the way.
pub struct Resolver {
    sessions: Arc<RegistrySessions>,
    disk: DiskStore,
    progress: Arc<dyn Progress>,
    repositories: UpstreamRepositories,
    /// Manifests that this run fetched and stored, by host and digest.
    fetched: OnceMap<(String, Digest), ()>,
    /// Files that several items need, such as the index of an HTTP repository of charts, by URL.
    shared: OnceMap<String, Bytes>,
    /// Parsed apt suites, which are read once for all sets with the same sources.
    suites: SharedSuites,
    image_finder: Option<Arc<dyn FindImages>>,
    /// The images of local archives, which are searched before upstream is asked.
    archives: Arc<ArchiveImages>,
    /// Chart repositories that the manifest names, as `ChartName::place` writes them.
    named: BTreeSet<String>,
    /// This resolver without credentials, for chart repositories that only charts name.
    without_accounts: OnceLock<Box<Resolver>>,
    /// How many charts were resolved that the manifest does not name.
    dependencies: AtomicUsize,
}

impl Resolver {
    /// A resolver that stores what it fetches in `disk`.
    pub fn new(
        sessions: Arc<RegistrySessions>,
        disk: DiskStore,
        progress: Arc<dyn Progress>,
    ) -> Resolver {
        let (repositories, fetched, shared) = (
            UpstreamRepositories::new(disk.clone()),
            OnceMap::default(),
            OnceMap::default(),
        );
        let (archives, suites) = (Arc::default(), SharedSuites::default());
        Resolver {
            sessions,
            disk,
            progress,
            repositories,
            fetched,
            shared,
            suites,
            image_finder: None,
            archives,
            named: BTreeSet::new(),
            without_accounts: OnceLock::new(),
            dependencies: AtomicUsize::new(0),
        }
    }

    /// Sets the finder of images in charts.
    #[must_use]
    pub fn finding_images(self, finder: Arc<dyn FindImages>) -> Resolver {
        Resolver {
            image_finder: Some(finder),
            ..self
        }
    }

    /// Sets the archives that are searched before upstream is asked.
    #[must_use]
    pub fn with_archives(self, archives: Arc<ArchiveImages>) -> Resolver {
        Resolver { archives, ..self }
    }

    /// Sets the chart repositories that the manifest names, which may be read with credentials.
    #[must_use]
    pub fn with_accounts_for(self, named: impl Iterator<Item = String>) -> Resolver {
        Resolver {
            named: named.collect(),
            ..self
        }
    }

    /// The resolver for the chart repository at `place`, on `host`: one without credentials unless
    /// the manifest or the site names it. A chart from upstream may name any repository as a
    /// dependency, and must not make landfall send the site's credentials there.
    pub fn for_charts_at(&self, place: &str, host: &str) -> &Resolver {
        if self.named.contains(place) || self.sessions.is_in_site(host) {
            return self;
        }
        self.without_accounts.get_or_init(|| {
            let sessions = Arc::new(self.sessions.without_accounts());
            let other = Resolver::new(sessions, self.disk.clone(), self.progress.clone());
            let (image_finder, archives) = (self.image_finder.clone(), self.archives.clone());
            Box::new(Resolver {
                image_finder,
                archives,
                ..other
            })
        })
    }

    /// Counts a chart that the manifest does not name.
    ///
    /// # Errors
    /// If this run has already resolved as many as the limit allows.
    pub fn count_dependency(&self) -> Result<(), ResolveError> {
        let most = self.limits().chart_dependencies;
        if self.dependencies.fetch_add(1, Ordering::Relaxed) < most {
            Ok(())
        } else {
            let why = format!(
                "charts name more than {most} other charts; list the ones that are needed in \
                     the manifest"
            );
            Err(why.into())
        }
    }

    /// The apt suites that this run has parsed.
    pub fn suites(&self) -> &SharedSuites {
        &self.suites
    }

    /// The images of local archives, which are searched before upstream is asked.
    pub fn archives(&self) -> &ArchiveImages {
        &self.archives
    }

    /// The finder of images in charts; `None` if charts are not searched.
    pub fn image_finder(&self) -> Option<&Arc<dyn FindImages>> {
        self.image_finder.as_ref()
    }

    /// The connections to registries and web servers.
    pub fn sessions(&self) -> &RegistrySessions {
        &self.sessions
    }

    /// The store that keeps what is fetched.
    pub fn disk(&self) -> &DiskStore {
        &self.disk
    }

    /// The receiver of progress and notes.
    pub fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    /// The limits on sizes and counts in this run.
    pub fn limits(&self) -> &Limits {
        self.sessions.transport().limits()
    }

    /// Stores a small blob for `pull`. If that fails, resolving continues, since `pull` reports the
    /// same problem. It runs on a blocking thread: another task may be downloading the same blob,
    /// and waiting for its lock on the async thread could block that very task.
    pub async fn keep(&self, descriptor: Descriptor, bytes: Bytes) {
        let disk = self.disk.clone();
        let why = match tokio::task::spawn_blocking(move || disk.put(&descriptor, &bytes)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.progress.note(&format!("not kept for pull: {why}"));
    }

    /// Prints `line` as a note, unless this run has already printed it.
    pub fn note_once(&self, line: &str) {
        self.sessions.transport().note_once(line);
    }

    /// A manifest by tag or digest. If its descriptor is `known`, it is read from the store if
    /// possible, and fetched once if several items need it at the same time.
    ///
    /// # Errors
    /// If the registry does not have the manifest, or cannot be reached.
    pub async fn manifest(
        &self,
        name: &ImageRef,
        reference: &str,
        known: Option<&Descriptor>,
    ) -> Result<FetchedManifest, ResolveError> {
        let archived = self.archives.find(name, reference);
        if let Some(raw) = known
            .or(archived.as_ref())
            .and_then(|descriptor| self.kept_manifest(descriptor))
        {
            return Ok(raw);
        }
        let Some(descriptor) = known else {
            return self.fetch_manifest(name, reference, None).await;
        };
        let fetching = async || {
            Ok::<_, ResolveError>(((), self.fetch_manifest(name, reference, known).await?))
        };
        let key = (name.registry.clone(), descriptor.digest.clone());
        let ((), own) = self.fetched.get_or_init_with(key, fetching).await?;
        match own.or_else(|| self.kept_manifest(descriptor)) {
            Some(raw) => Ok(raw),
            None => self.fetch_manifest(name, reference, known).await,
        }
    }

    fn kept_manifest(&self, descriptor: &Descriptor) -> Option<FetchedManifest> {
        if !self.is_kept(descriptor) {
            return None;
        }
        let bytes = self.disk.read(descriptor).ok()?;
        let content_type = Some(descriptor.media_type.to_string()).filter(|kind| !kind.is_empty());
        Some(FetchedManifest {
            bytes: bytes.into(),
            content_type,
            digest: descriptor.digest.clone(),
        })
    }

    /// Whether the store has this blob, after copying it from an archive if necessary. If the store
    /// fails, upstream is asked.
    fn is_kept(&self, descriptor: &Descriptor) -> bool {
        let is_there = || {
            self.disk
                .has(&descriptor.digest, descriptor.size)
                .unwrap_or(false)
        };
        if is_there() {
            return true;
        }
        let Some(bytes) = self.archives.document(&descriptor.digest) else {
            return false;
        };
        if let Err(error) = self.disk.put(descriptor, &bytes) {
            self.progress.note(&format!("not kept for pull: {error}"));
        }
        is_there()
    }

    async fn fetch_manifest(
        &self,
        name: &ImageRef,
        reference: &str,
        known: Option<&Descriptor>,
    ) -> Result<FetchedManifest, ResolveError> {
        let session = self.sessions.upstream(&name.registry).await?;
        let raw = match known {
            Some(descriptor) => session.manifest_of(&name.repository, descriptor).await?,
            None => session.manifest(&name.repository, reference).await?,
        };
        let descriptor = Descriptor {
            digest: raw.digest.clone(),
            size: raw.bytes.len() as u64,
            media_type: raw.content_type.clone().unwrap_or_default().into(),
        };
        self.keep(descriptor, raw.bytes.clone()).await;
        Ok(raw)
    }

    /// All tags of an image's repository, if its registry lists them in at most `pages` answers.
    ///
    /// # Errors
    /// If the registry cannot be reached.
    pub async fn tags(
        &self,
        name: &ImageRef,
        pages: usize,
    ) -> Result<RepositoryTags, ResolveError> {
        let session = self.sessions.upstream(&name.registry).await?;
        Ok(self.repositories.tags(&session, name, pages).await?)
    }

    /// The tags of an image's repository, if this run has listed them.
    pub fn listed_tags(&self, name: &ImageRef) -> RepositoryTags {
        self.repositories.listed_tags(name)
    }

    /// What is known about upstream repositories.
    pub fn repositories(&self) -> &UpstreamRepositories {
        &self.repositories
    }

    /// Stores what this run learned about upstream repositories.
    pub fn remember(&self) {
        // a full disk is reported by what needs more space than this file
        if let Some(error) = self
            .repositories
            .remember()
            .err()
            .filter(|error| !error.is_full_disk())
        {
            self.progress
                .note(&format!("the next run will send more requests: {error}"));
        }
    }

    /// Downloads a file of at most `most` bytes. `expected` is its digest, if it is known: then a
    /// `Content-Encoding` header is ignored, as some servers send it for a `.gz` file that is
    /// stored compressed.
    ///
    /// # Errors
    /// If it cannot be downloaded, is larger, or has another digest.
    pub async fn small_file(
        &self,
        url: &str,
        most: usize,
        expected: Option<&Digest>,
    ) -> Result<Bytes, HttpError> {
        let mut attempts = self.sessions.transport().retry_policy().body_attempts();
        loop {
            let response = expect_file(get_file(&self.sessions, url, None).await?, url).await?;
            let compressed = response.compression_error("the file");
            if let Some(error) = compressed.clone().filter(|_| expected.is_none()) {
                return Err(error);
            }
            let at = response.url.clone();
            let failure = match response.bytes(most).await {
                Ok(bytes) if expected.is_none_or(|expected| expected.matches(&bytes)) => {
                    return Ok(bytes);
                }
                Ok(bytes) => {
                    let words = format!(
                        "its bytes are {}, not {}",
                        Digest::sha256(&bytes),
                        shown(expected)
                    );
                    BodyFailure::Wrong(
                        compressed
                            .unwrap_or_else(|| HttpError::new(ErrorKind::Invalid, words).at(&at)),
                    )
                }
                Err(error) => BodyFailure::<HttpError>::reading(error),
            };
            attempts.after(failure).await?;
        }
    }

    /// Downloads a file of at most `most` bytes, once per run.
    ///
    /// # Errors
    /// If it cannot be downloaded, or is larger.
    pub async fn shared_file(&self, url: &str, most: usize) -> Result<Bytes, HttpError> {
        self.shared
            .get_or_try_init(url.to_owned(), || self.small_file(url, most, None))
            .await
    }

    /// The index of an HTTP repository of charts.
    ///
    /// # Errors
    /// If it cannot be downloaded.
    pub async fn index(&self, url: &str) -> Result<Bytes, ResolveError> {
        let index = self.shared_file(url, self.limits().chart_index_bytes).await;
        index.map_err(|error| ResolveError::from(error).of("the index of its repository"))
    }

    /// Downloads a small blob such as a config, verifies its digest and stores it for `pull`.
    ///
    /// # Errors
    /// If it cannot be downloaded.
    pub async fn small_blob(
        &self,
        name: &ImageRef,
        blob: &Descriptor,
    ) -> Result<Vec<u8>, ResolveError> {
        self.blob_up_to(name, blob, self.limits().document_bytes as u64)
            .await
    }

    /// Downloads a blob of at most `limit` bytes, verifies its digest and stores it for `pull`.
    ///
    /// # Errors
    /// If it cannot be downloaded, or is larger.
    pub async fn blob_up_to(
        &self,
        name: &ImageRef,
        blob: &Descriptor,
        limit: u64,
    ) -> Result<Vec<u8>, ResolveError> {
        if blob.size > limit {
            return Err(format!(
                "its blob {} has {} bytes, more than {limit}",
                blob.digest, blob.size
            )
            .into());
        }
        if self.is_kept(blob) {
            return self.disk.read(blob).map_err(ResolveError::from);
        }
        let (registry, repository) = (
            name.registry.as_str().into(),
            name.repository.as_str().into(),
        );
        let part = EntryPart {
            descriptor: blob.clone(),
            origin: PartOrigin::Blob {
                registry,
                repository,
            },
        };
        let limits = *self.limits();
        let transfer = Transfer {
            source: Arc::new(Upstreams(self.sessions.clone())),
            sink: Arc::new(LocalSink::new(Arc::new(self.disk.clone()), limits, None)),
            limits,
            progress: Arc::new(SilentProgress),
        };
        transfer
            .run(&part, Arc::new(UnlimitedSlot))
            .await
            .map_err(|error| match error.side {
                TransferSide::Source => ResolveError::from(*error.why),
                _ => ResolveError::local(error.to_string()),
            })?;
        self.disk.read(blob).map_err(ResolveError::from)
    }
}

fn shown(digest: Option<&Digest>) -> String {
    digest.map(Digest::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::StatusCode;

    #[test]
    fn a_registrys_401_is_gone_and_its_403_is_a_refusal() {
        for (status, gone) in [(401, true), (403, false)] {
            let error = HttpError::new(ErrorKind::Denied, "no")
                .with_status(StatusCode::from_u16(status).unwrap());
            assert_eq!(ResolveError::from(error).is_gone, gone, "{status}");
        }
        assert!(!ResolveError::from(HttpError::new(ErrorKind::Denied, "no account")).is_gone);
        assert!(!ResolveError::from(HttpError::new(ErrorKind::Network, "lost")).is_gone);
    }
}
