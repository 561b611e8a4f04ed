//! The options of the server, the content that it serves, and its report after the start.

use crate::observe::AccessLog;
use crate::sign_in::HtpasswdUsers;
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

/// A bundle, or another source with a lock and content, such as a registry.
#[derive(Clone)]
pub struct ServedBundle {
    /// The name that the page and messages show, such as the file name.
    pub name: String,
    /// The digest of the bundle, or of the lock of another source; `None` if it is not known.
    pub digest: Option<Digest>,
    /// The items that a partial bundle lacks, by kind and name.
    pub missing: Vec<String>,
    /// The keys of its signatures. The server does not verify them.
    pub signatures: Vec<String>,
    /// The lock, which names all items.
    pub lock: Lock,
    /// The content of the items, including the blobs that a delta takes from its bases.
    pub blobs: Arc<dyn BlobRead>,
    /// The changes since an older bundle, if one is known.
    pub changes: Option<BundleChanges>,
    /// The destinations at the registry that holds the content, if the source is a registry.
    /// Clients pull images from that registry, not from this server.
    pub registry: Option<DestinationMap>,
}

/// The differences between a bundle and an older one.
#[derive(Debug, Clone)]
pub struct BundleChanges {
    /// The name of the older bundle.
    pub since: String,
    /// The differences, in the order in which the page lists them.
    pub changes: Vec<BundleChange>,
}

/// An item that differs between two bundles.
#[derive(Debug, Clone)]
pub struct BundleChange {
    /// The kind of change: `added`, `removed`, `moved` and so on.
    pub change: &'static str,
    /// The kind of the item.
    pub kind: EntryKind,
    /// The name of the item in the lock.
    pub name: String,
    /// The digests in the older and in the newer bundle.
    pub digests: [Option<Digest>; 2],
}

/// Options that stay the same as long as the server runs.
pub struct ServeOptions<'a> {
    /// Where to listen: `HOST:PORT`, optionally with `http://` or `https://` before it. Port 0
    /// selects a free port.
    pub listen: Vec<String>,
    /// The registry that references were rewritten to; by default the server's own address.
    pub target: Option<TargetRegistry>,
    /// The site, for its destination paths.
    pub site: Option<&'a Site>,
    /// The folder for pushed content. Without it the server is read-only.
    pub writable: Option<PathBuf>,
    /// The maximum size of the folder for pushed content, in bytes.
    pub max_bytes: Option<u64>,
    /// Accepts pushes from everybody if there are no users, even at addresses that other machines
    /// can reach.
    pub anonymous_push: bool,
    /// Redirects requests for large blobs to the object store that contains them.
    pub redirect: bool,
    /// How long to keep answering after the stop signal, while `/readyz` reports 503.
    pub drain: Duration,
    /// The access log; `None` writes none.
    pub log: Option<AccessLog>,
    /// Bounds on memory, connections and sizes.
    pub limits: Limits,
    /// Receives warnings and other messages.
    pub progress: Arc<dyn Progress>,
}

/// The content that is served, and who may use it. A reload reads it again.
#[derive(Default)]
pub struct ServedContent {
    /// The bundles, served by name and by digest. If a name means different content in two bundles,
    /// the later bundle wins.
    pub bundles: Vec<ServedBundle>,
    /// All content, in the order in which it is searched: bundles first, then the bases of deltas.
    pub content: Vec<Arc<dyn VerifiedRead>>,
    /// Bundles that were served before; their content is still served by digest.
    pub earlier: Vec<ServedBundle>,
    /// Checks whether this content is outdated, before requests by name and requests by digest for
    /// content that is not in it.
    pub is_outdated: Option<OutdatedCheck>,
    /// Package metadata that the server generates. Sets with `index: trimmed` have it instead of
    /// their signed metadata.
    pub made: Vec<GeneratedFile>,
    /// The users of the API; `None` allows everybody.
    pub users: Option<HtpasswdUsers>,
    /// Generates the configuration of nodes for the page.
    pub guides: Option<NodeGuides>,
    /// PEM files with certificate chains and their keys. Each certificate is used for the names
    /// that it covers, the first one also for all other names.
    pub tls: Vec<(PathBuf, PathBuf)>,
}

/// Checks whether the served content is outdated. An error says why that is unknown.
pub type OutdatedCheck = Arc<dyn Fn() -> BoxFuture<'static, Result<bool, String>> + Send + Sync>;

/// Generates the configuration for nodes that reach the server as `host[:port]` (first argument),
/// over TLS or not (second argument).
pub type NodeGuides = Arc<dyn Fn(&str, bool) -> Vec<NodeGuide> + Send + Sync>;

/// The configuration of one container runtime or distribution.
#[derive(Debug, Clone)]
pub struct NodeGuide {
    /// The platform as `landfall render` names it, such as `containerd`.
    pub title: String,
    /// A description of the platform in one line.
    pub about: String,
    /// The configuration files: path on a node, and content.
    pub files: Vec<(String, String)>,
    /// Further instructions, one paragraph each.
    pub notes: Vec<String>,
}

/// The properties that a server reports after the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// The URL of each address, as in `http://127.0.0.1:5000`.
    pub urls: Vec<String>,
    /// The number of items of each kind, including kinds without items.
    pub items: Vec<EntryCount>,
    /// Whether the server accepts pushes.
    pub writable: bool,
}
