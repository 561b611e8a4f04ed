//! What to serve, and what is served.

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
pub struct ServedBundle {
    /// How people call it, such as its file name.
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
pub struct Options<'a> {
    /// `HOST:PORT`; port 0 takes a free one.
    pub listen: String,
    /// What is served. Where two bundles hold one name, the later one counts.
    pub bundles: Vec<ServedBundle>,
    /// The registry that stands in rewritten references; this server's address where it is left out.
    pub target: Option<Target>,
    /// The site, for its destination paths.
    pub site: Option<&'a Site>,
    /// The folder for pushes.
    pub writable: Option<PathBuf>,
    /// Who may use the API; everybody where it is left out.
    pub users: Option<Users>,
    /// Whether everybody may push, beyond loopback too.
    pub anonymous_push: bool,
    /// Certificate chain and key, PEM.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Bounds.
    pub limits: Limits,
    /// Where warnings go.
    pub progress: Arc<dyn Progress>,
}

/// What is served, when it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// `http://127.0.0.1:5000`
    pub url: String,
    /// How many items of each kind the bundles hold; kinds without an item too.
    pub items: Vec<(Kind, usize)>,
    /// Whether it takes pushes.
    pub writable: bool,
}
