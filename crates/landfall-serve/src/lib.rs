//! The server of `landfall serve`: bundles, straight from the file, as an OCI registry, a file
//! server and a plain page; and, on request, a registry that takes pushes, for sites that have
//! none.
//!
//! [`serve`] is the server. A request goes from `listen` by way of `connections` and `router` to
//! the handler of its `route`: `pull`, `blob_upload`, `manifest_upload`, `page`. What the handlers
//! share is in `state`. `origin` finds files under their original URLs, and `registry_source` offers what a
//! registry holds. [`export_files`] writes the files for a web server that is there already.
//!
//! It imports `landfall-model`, `landfall-http`, `landfall-content` and `landfall-item`. Begin with
//! `run.rs` and `router.rs`.
//!
//! # Verification, connections and reloads
//!
//! The first request for a blob starts its hashing, and all others for the blob wait for that. A
//! blob that was hashed is identified by the inode, time and size of its file, so it stays
//! verified over a reload, and a file that looks different is hashed again. Over plain http,
//! stored content is sent with `sendfile` after its checksums were compared.
//!
//! Each connection has a seat, which knows when bytes arrived or left and whether the client must
//! act next; each request has a place in flight up to the last byte of its response. A stalled
//! client loses both as soon as another client needs them. A request gets its place once its
//! password is known to be right: bcrypt results are cached by a keyed hash, and client addresses
//! take turns while they wait.
//!
//! A reload makes a new state for the requests that follow. In the folder for pushes, a lock keeps
//! what a manifest needs until the manifest names it; removals take that lock alone, after they
//! have read what all manifests name, so pushes wait only while files are removed.

mod auth;
mod blob_body;
mod blob_response;
mod blob_upload;
mod buffers;
mod bundles;
mod chart_table;
mod connections;
mod deletion;
mod error;
mod export;
mod file_table;
mod freshness;
#[cfg(test)]
mod hostile;
mod known_blobs;
mod listen;
mod lookup;
mod manifest_upload;
mod metrics_page;
mod observe;
mod options;
mod origin;
mod page;
mod passwords;
mod pull;
mod range;
mod referrers;
mod registry_source;
mod repository;
mod response;
mod route;
mod router;
mod run;
mod sign_in_queue;
mod state;
#[cfg(any(test, feature = "testkit"))]
pub mod testing;
mod upload_sessions;
mod writable;

#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use auth::fuzz;
pub use auth::{AccessRight, HtpasswdUsers};
pub use error::ServeError;
pub use export::{ExportError, export_charts, export_files, export_packages};
pub use observe::{AccessLog, LogTarget};
pub use options::{
    BundleChange, BundleChanges, NodeGuide, NodeGuides, OutdatedCheck, ServeOptions, ServedBundle,
    ServedContent, ServerInfo,
};
pub use registry_source::{DeliveredContent, RegistrySourceError, find_delivered};
pub use run::serve;
