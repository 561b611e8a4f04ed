//! The server of `landfall serve`. It serves bundles straight from their files as an OCI registry,
//! a file server and a web page. With `--writable` it is also a registry that accepts pushes.
//!
//! A request is accepted in `accept`, authenticated and dispatched in `router`, and answered by a
//! handler in `api`, `git`, `page` or `blobs`. The handlers share
//! [`ServerState`](state::ServerState). Below the handlers are `catalog` (names to digests),
//! `writable` (pushed content), `sign_in`, `connections` and `observe`. `registry_source` serves
//! the content of another registry. `export` writes files, charts, git repositories and providers
//! for an existing web server instead of serving them.
//!
//! # Verification, connections and reloads
//!
//! The first request for a blob of a bundle starts its hashing, and all other requests for the blob
//! wait for the result. A blob that was hashed is identified by the inode, time and size of its
//! file, so it stays verified after a reload, and a file that looks different is hashed again. Over
//! plain http, uncompressed content is sent with `sendfile` after its checksums were compared.
//!
//! Each connection has an entry in a table, which records when bytes arrived or left and whether
//! the client must act next; each request has a permit up to the last byte of its response. A
//! stalled client loses its connection and its permit if another client needs them. A request gets
//! its permit only after its password was verified. Results of bcrypt are cached by a keyed hash,
//! and client addresses take turns while they wait for bcrypt.
//!
//! A reload creates a new state for the requests that follow. In the folder for pushes, a push
//! holds a shared lock, so that its blobs are not removed before its manifest names them. A removal
//! first reads which content the manifests name and only then takes the lock exclusively, so pushes
//! wait only while files are removed.
//!
//! # Limits
//!
//! What may happen at the same time, so that clients cannot use up memory, processors or files:
//!
//! | what | number | when none is free |
//! | --- | --- | --- |
//! | open connections | `--max-connections` | idle and stalled ones are closed |
//! | requests, to the last byte of the response | `--max-requests` | 503 after 30 s |
//! | memory of documents that are sent | 512 MiB | 503 after 30 s |
//! | documents that are built | 16 | waits |
//! | uploads, from the first request to the last | `--max-uploads` | an empty one ends, or 429 |
//! | pushed manifests in memory | 4 | waits |
//! | blobs that are hashed | 4 | waits |
//! | selections of git objects | 4 | waits |
//! | git repositories that are opened | 4 | waits |
//! | comparisons with bcrypt, one for each address | 2 | waits; 429 if too many wait |
//! | lines of the access log that wait | 4096 | dropped, and counted |
//!
//! The limiters are in `connections` (the first three rows), `state.rs`, `upload_sessions.rs`,
//! `verified_blobs.rs`, `git/databases.rs`, `sign_in/password_checker.rs` and
//! `observe/access_log.rs`.
//!
//! The crate imports `landfall-model`, `landfall-http`, `landfall-content`, `landfall-git`,
//! `landfall-patch` (for long paths in archives) and `landfall-item`. Begin with `run.rs` and
//! `router.rs`.

mod accept;
mod api;
mod blobs;
mod catalog;
mod connections;
mod export;
mod git;
#[cfg(test)]
mod hostile;
mod metrics_page;
mod observe;
mod options;
mod page;
mod registry_source;
mod response;
mod route;
mod router;
mod run;
mod sign_in;
mod state;
#[cfg(any(test, feature = "testkit"))]
pub mod testing;
mod upload_sessions;
mod verified_blobs;
mod writable;

pub use crate::export::{
    EXPORT_RECORD, ExportMode, GitExportFormat, export_charts, export_files, export_git,
    export_packages, export_providers,
};
pub use crate::observe::{AccessLog, LogTarget};
pub use crate::options::{
    BundleChange, BundleChanges, NodeGuide, NodeGuides, OutdatedCheck, ServeOptions, ServedBundle,
    ServedContent, ServerInfo,
};
pub use crate::registry_source::{DeliveredContent, find_delivered};
pub use crate::run::serve;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use crate::sign_in::fuzz;
pub use crate::sign_in::{AccessRight, HtpasswdUsers};
