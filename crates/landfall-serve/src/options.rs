//! What to serve and how, and what a running server reports.

use super::auth::HtpasswdUsers;
use super::observe::AccessLog;
use futures_util::future::BoxFuture;
use landfall_content::{BlobRead, VerifiedRead};
use landfall_item::GeneratedFile;
use landfall_item::lockfile::Lock;
use landfall_model::config::Site;
use landfall_model::report::{EntryCount, EntryKind, Progress};
use landfall_model::{DestinationMap, Digest, Limits, TargetRegistry};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A bundle, or anything else that has a lock and content.
#[derive(Clone)]
pub struct ServedBundle {
    /// Its name for people, such as its file name.
    pub name: String,
    /// Its digest, where it has one.
    pub digest: Option<Digest>,
    /// What a partial bundle lacks, by kind and name.
    pub missing: Vec<String>,
    /// The keys of its signatures, which nobody has checked here.
    pub signatures: Vec<String>,
    /// What it holds.
    pub lock: Lock,
    /// What it says to hold, its bases included.
    pub blobs: Arc<dyn BlobRead>,
    /// What is new in it, where that is known.
    pub changes: Option<BundleChanges>,
    /// The destinations at the registry that holds it, where it is no bundle: images are pulled
    /// from there, not from here.
    pub registry: Option<DestinationMap>,
}

/// What is new since something older.
#[derive(Debug, Clone)]
pub struct BundleChanges {
    /// The name of what is older.
    pub since: String,
    /// What differs.
    pub changes: Vec<BundleChange>,
}

/// One difference.
#[derive(Debug, Clone)]
pub struct BundleChange {
    /// What became of it: `added`, `removed`, and so on.
    pub change: &'static str,
    /// Its kind.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// The digest that it had, and the one that it has.
    pub digests: [Option<Digest>; 2],
}

/// How to serve. It stays as it is as long as the server runs.
pub struct ServeOptions<'a> {
    /// `HOST:PORT`, with `http://` or `https://` before it or without; port 0 takes a free one.
    pub listen: Vec<String>,
    /// The registry of rewritten references; this server's own address by default.
    pub target: Option<TargetRegistry>,
    /// The site, for its destination paths.
    pub site: Option<&'a Site>,
    /// The folder for pushes.
    pub writable: Option<PathBuf>,
    /// How many bytes it may have.
    pub max_bytes: Option<u64>,
    /// Whether everybody may push, also beyond loopback.
    pub anonymous_push: bool,
    /// Whether big blobs are answered by links to where they stand, where there are such links.
    pub redirect: bool,
    /// How long it goes on answering after it was told to stop, while it says that it is not ready.
    pub drain: Duration,
    /// Where each request is told.
    pub log: Option<AccessLog>,
    /// Bounds.
    pub limits: Limits,
    /// Where warnings go.
    pub progress: Arc<dyn Progress>,
}

/// What is served, and to whom. A reload reads it anew.
#[derive(Default)]
pub struct ServedContent {
    /// What is served by name. Where two bundles hold one name, the later one counts.
    pub bundles: Vec<ServedBundle>,
    /// All content, in the order in which it is looked for: the bundles, and what deltas take from
    /// elsewhere.
    pub content: Vec<Arc<dyn VerifiedRead>>,
    /// What was served before by name, and is still there by digest.
    pub earlier: Vec<ServedBundle>,
    /// Whether all of this is outdated by now. Asked before each look-up by name, where it is
    /// there.
    pub is_outdated: Option<OutdatedCheck>,
    /// Metadata of packages that is made here, in place of what the bundles have.
    pub made: Vec<GeneratedFile>,
    /// Who may use the API; everybody by default.
    pub users: Option<HtpasswdUsers>,
    /// How to point nodes here.
    pub guides: Option<NodeGuides>,
    /// Certificate chains and their keys, PEM; each is for the names that it covers, the first one
    /// for all others.
    pub tls: Vec<(PathBuf, PathBuf)>,
}

/// Finds out whether what is served is outdated; an error says why nobody knows.
pub type OutdatedCheck = Arc<dyn Fn() -> BoxFuture<'static, Result<bool, String>> + Send + Sync>;

/// Makes the configuration with which nodes ask a server that they reach as `host[:port]`, over TLS
/// or not.
pub type NodeGuides = Arc<dyn Fn(&str, bool) -> Vec<NodeGuide> + Send + Sync>;

/// Configuration of one kind of node.
#[derive(Debug, Clone)]
pub struct NodeGuide {
    /// Its word, such as `containerd`.
    pub title: String,
    /// What it is, in a line.
    pub about: String,
    /// Each file with its path on a node.
    pub files: Vec<(String, String)>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// What a started server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `http://127.0.0.1:5000`, for each address.
    pub urls: Vec<String>,
    /// The number of items of each kind, also where it is 0.
    pub items: Vec<EntryCount>,
    /// Whether it takes pushes.
    pub writable: bool,
}
