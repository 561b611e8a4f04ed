//! What to serve and how, and what a running server reports.

use super::auth::Users;
use crate::config::Site;
use crate::content::BlobRead;
use crate::lockfile::Lock;
use crate::model::Target;
use crate::model::{Digest, Limits};
use crate::report::{Kind, Progress};
use std::path::PathBuf;
use std::sync::Arc;

/// A bundle, or anything else that has a lock and content.
pub(crate) struct ServedBundle {
    /// Its name for people, such as its file name.
    pub name: String,
    /// Its digest, where it has one.
    pub digest: Option<Digest>,
    /// What a partial bundle lacks, by kind and name.
    pub missing: Vec<String>,
    /// What it holds.
    pub lock: Lock,
    /// The bytes.
    pub blobs: Arc<dyn BlobRead>,
}

/// What to serve, and to whom.
pub(crate) struct Options<'a> {
    /// `HOST:PORT`; port 0 takes a free one.
    pub listen: String,
    /// What is served. Where two bundles hold one name, the later one counts.
    pub bundles: Vec<ServedBundle>,
    /// The registry of rewritten references; this server's own address by default.
    pub target: Option<Target>,
    /// The site, for its destination paths.
    pub site: Option<&'a Site>,
    /// The folder for pushes.
    pub writable: Option<PathBuf>,
    /// Who may use the API; everybody by default.
    pub users: Option<Users>,
    /// Whether everybody may push, also beyond loopback.
    pub anonymous_push: bool,
    /// Certificate chain and key, PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Bounds.
    pub limits: Limits,
    /// Where warnings go.
    pub progress: Arc<dyn Progress>,
}

/// What a started server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Serving {
    /// `http://127.0.0.1:5000`
    pub url: String,
    /// The number of items of each kind, also where it is 0.
    pub items: Vec<(Kind, usize)>,
    /// Whether it takes pushes.
    pub writable: bool,
}
