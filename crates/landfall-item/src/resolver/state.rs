//! The state of a run that resolves items.

use super::resolve_error::ResolveError;
use crate::chart::FindImages;
use crate::packages::SharedSuites;
use crate::repositories::UpstreamRepositories;
use bytes::Bytes;
use landfall_content::archives::{ArchiveImages, ImageInArchive};
use landfall_content::registry::RegistrySessions;
use landfall_content::store::DiskStore;
use landfall_git::{ObjectId, OfferedRef};
use landfall_http::OnceMap;
use landfall_model::report::{EntryKind, Progress};
use landfall_model::{Descriptor, Digest, Limits, locked};
use landfall_signature::SignaturePolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Resolves the names of items to digests, and stores the content that it fetches.
pub struct Resolver {
    /// The connections to registries and web servers.
    pub sessions: Arc<RegistrySessions>,
    /// The store for fetched content.
    pub disk: DiskStore,
    /// The receiver of progress and notes.
    pub progress: Arc<dyn Progress>,
    /// The known facts about upstream repositories.
    pub repositories: UpstreamRepositories,
    /// Manifests that this run fetched and stored, by host and digest.
    pub(super) fetched: OnceMap<(String, Digest), ()>,
    /// Files that several items need, such as the index of an HTTP repository of charts, by URL.
    pub(super) shared: OnceMap<String, Bytes>,
    /// Parsed apt suites, which are read once for all sets with the same sources.
    pub(crate) suites: SharedSuites,
    /// The finder of images in charts; `None` if charts are not searched.
    pub image_finder: Option<Arc<dyn FindImages>>,
    /// The images of local archives, which are searched before upstream is queried.
    pub archives: Arc<ArchiveImages>,
    /// The image of an archive. If there is one, nothing is requested from the network.
    pub(super) archived_image: Option<Arc<ImageInArchive>>,
    /// The folder of the lock, to which it writes the paths of local content; `.` by default.
    pub lock_folder: PathBuf,
    /// The rules for the signatures that items must have.
    pub signatures: SignaturePolicy,
    /// The digests that an update looked up and accepted, by kind and name. Items that are locked
    /// for the first time, or again, get these digests, even if their names have moved since.
    pub looked_up: Arc<BTreeMap<(EntryKind, String), Digest>>,
    /// The objects that the listed tags of git repositories name, by URL and tag.
    git_tags: Mutex<BTreeMap<(String, String), ObjectId>>,
    /// Chart repositories that the manifest names, as `ChartName::repository_url` writes them. They
    /// may be read with credentials.
    pub named: BTreeSet<String>,
    /// A copy of this resolver without credentials, for chart and git repositories that the
    /// manifest does not name. Most runs do not need it, so it is created on first use.
    without_accounts: OnceLock<Box<Resolver>>,
    /// The number of resolved charts and git repositories that the manifest does not name.
    dependencies: AtomicUsize,
    /// The referrers that could not be read.
    pub lost_referrers: Arc<LostReferrers>,
}

impl Resolver {
    /// A resolver that stores fetched content in `disk`.
    pub fn new(
        sessions: Arc<RegistrySessions>,
        disk: DiskStore,
        progress: Arc<dyn Progress>,
    ) -> Resolver {
        Resolver {
            sessions,
            repositories: UpstreamRepositories::new(disk.clone()),
            disk,
            progress,
            fetched: OnceMap::default(),
            shared: OnceMap::default(),
            suites: SharedSuites::default(),
            image_finder: None,
            archives: Arc::default(),
            archived_image: None,
            lock_folder: ".".into(),
            signatures: SignaturePolicy::default(),
            looked_up: Arc::default(),
            git_tags: Mutex::default(),
            named: BTreeSet::new(),
            without_accounts: OnceLock::new(),
            dependencies: AtomicUsize::new(0),
            lost_referrers: Arc::default(),
        }
    }

    /// A resolver that reads manifests and blobs from `image`, and requests nothing from the
    /// network.
    pub(crate) fn with_archived_image(&self, image: Arc<ImageInArchive>) -> Resolver {
        let sessions = self.sessions.clone();
        Resolver {
            archived_image: Some(image),
            ..Resolver::new(sessions, self.disk.clone(), self.progress.clone())
        }
    }

    /// The digest that an update looked up for an item.
    pub fn looked_up(&self, kind: EntryKind, name: &str) -> Option<&Digest> {
        self.looked_up.get(&(kind, name.to_owned()))
    }

    /// Keeps the objects that the tags among `refs` of the git repository at `url` name.
    pub fn keep_git_tags(&self, url: &str, refs: &[OfferedRef]) {
        let tags = refs.iter().filter_map(|one| {
            let tag = one.name.strip_prefix("refs/tags/")?;
            Some(((url.to_owned(), tag.to_owned()), one.id))
        });
        locked(&self.git_tags).extend(tags);
    }

    /// The objects that the listed tags of git repositories name, by URL and tag.
    pub fn git_tags(&self) -> BTreeMap<(String, String), ObjectId> {
        locked(&self.git_tags).clone()
    }

    /// Sets the objects of tags that an update listed. A tag that has moved since is not locked.
    pub fn set_git_tags(&mut self, tags: BTreeMap<(String, String), ObjectId>) {
        self.git_tags = Mutex::new(tags);
    }

    /// The object that a tag of the git repository at `url` named when its tags were listed.
    pub fn git_tag(&self, url: &str, tag: &str) -> Option<ObjectId> {
        let key = (url.to_owned(), tag.to_owned());
        locked(&self.git_tags).get(&key).copied()
    }

    /// The resolver for the chart or git repository at `url` on `host`. It has no credentials
    /// unless the manifest names the chart repository or the site names the host. Content from
    /// upstream may name any repository as a dependency, and must not make landfall send the site's
    /// credentials there.
    pub fn for_dependency_at(&self, url: &str, host: &str) -> &Resolver {
        if self.named.contains(url) || self.sessions.is_in_site(host) {
            return self;
        }
        // The other resolver has its own caches, so it never reuses a file that was fetched with
        // credentials.
        self.without_accounts.get_or_init(|| {
            let sessions = Arc::new(self.sessions.without_accounts());
            let other = Resolver::new(sessions, self.disk.clone(), self.progress.clone());
            Box::new(Resolver {
                image_finder: self.image_finder.clone(),
                archives: self.archives.clone(),
                signatures: self.signatures.clone(),
                looked_up: self.looked_up.clone(),
                lost_referrers: self.lost_referrers.clone(),
                ..other
            })
        })
    }

    /// Counts a chart or git repository that the manifest does not name.
    ///
    /// # Errors
    /// If this run has already resolved as many of them as the limit allows.
    pub fn count_dependency(&self) -> Result<(), ResolveError> {
        let limit = self.limits().chart_dependencies;
        if self.dependencies.fetch_add(1, Ordering::Relaxed) < limit {
            return Ok(());
        }
        Err(format!(
            "charts and git repositories depend on more than {limit} charts and repositories that \
             the manifest does not name; add the needed ones to the manifest"
        )
        .into())
    }

    /// The number of seconds by which the clocks of servers are ahead of this machine's clock;
    /// `None` if no server sent a date.
    pub fn server_clock_offset(&self) -> Option<i64> {
        self.sessions.transport().ledger().clock_offset()
    }

    /// The limits on sizes and counts in this run.
    pub fn limits(&self) -> &Limits {
        self.sessions.transport().limits()
    }

    /// Stores a small blob for `pull`. If that fails, resolving continues, since `pull` reports the
    /// same problem.
    pub async fn keep(&self, descriptor: Descriptor, bytes: Bytes) {
        let disk = self.disk.clone();
        // On a blocking thread: another task may be downloading the same blob. If this task waited
        // for the blob's lock on an async thread, it could block that other task.
        match tokio::task::spawn_blocking(move || disk.put(&descriptor, &bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.note_not_stored(&error),
            Err(error) => self.note_not_stored(&error),
        }
    }

    /// Notes that a blob could not be stored for `pull`.
    pub(super) fn note_not_stored(&self, why: &dyn fmt::Display) {
        self.progress.note(&format!("not stored for pull: {why}"));
    }

    /// Prints `line` as a note, unless this run has already printed it.
    pub fn note_once(&self, line: &str) {
        self.sessions.transport().note_once(line);
    }

    /// Stores the facts that this run learned about upstream repositories.
    pub fn remember(&self) {
        // A full disk needs no note here: larger writes fail as well, and report it.
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
}

// The referrers that a run found and could not read. Their loss is recorded in the lock, and does
// not affect their images.

/// The word before the digest in the reference of a lost attestation, which is a child of the
/// image's index.
pub(crate) const ATTESTATION: &str = "attestation";

/// A referrer that exists upstream and cannot be read.
#[derive(Debug, Clone)]
pub struct LostReferrer {
    /// Its digest or tag; or, if the look-up failed, which referrers were looked up.
    pub reference: String,
    /// Why it cannot be read.
    pub cause: ResolveError,
}

/// The lost referrers of a run, by the names of items in the lock.
#[derive(Debug, Default)]
pub struct LostReferrers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The items of which the old lock lists lost referrers, and whether an attestation is among
    /// them.
    earlier: BTreeMap<String, bool>,
    /// The items whose referrers were looked up in this run.
    found: BTreeMap<String, Vec<LostReferrer>>,
}

impl LostReferrers {
    /// Sets the items whose referrers are looked up again, because an earlier run could not read
    /// all of them. `lost` are the items, each with the name of a lost referrer in the lock.
    pub fn retry<'a>(&self, lost: impl Iterator<Item = (&'a str, &'a str)>) {
        let earlier = &mut locked(&self.0).earlier;
        for (item, name) in lost {
            let reference = name[item.len()..].trim_start();
            *earlier.entry(item.to_owned()).or_default() |= reference.starts_with(ATTESTATION);
        }
    }

    /// Whether the referrers of `item` must be looked up again.
    pub(crate) fn must_retry(&self, item: &str) -> bool {
        locked(&self.0).earlier.contains_key(item)
    }

    /// Whether an earlier run did not find an attestation that the index of `item` lists.
    pub(crate) fn lacks_attestation(&self, item: &str) -> bool {
        locked(&self.0).earlier.get(item) == Some(&true)
    }

    /// Adds to the referrers of `item` that could not be read.
    pub(crate) fn add(&self, item: &str, lost: Vec<LostReferrer>) {
        if !lost.is_empty() {
            let found = &mut locked(&self.0).found;
            found.entry(item.into()).or_default().extend(lost);
        }
    }

    /// Records which referrers of `item` could not be read, after a look-up.
    pub(crate) fn record(&self, item: &str, lost: Vec<LostReferrer>) {
        locked(&self.0).found.insert(item.into(), lost);
    }

    /// The lost referrers of `item`; `None` if its referrers were not looked up in this run.
    pub fn of(&self, item: &str) -> Option<Vec<LostReferrer>> {
        locked(&self.0).found.get(item).cloned()
    }
}
