//! SERVE IT. Bundles, straight from the file, as an OCI registry, a file server and a plain page; and,
//! where that is asked for, a registry that takes pushes, for sites that have none.
//!
//! [`serve`] is the server; [`export_files`] writes the files for a web server that is there already.

mod app;
mod auth;
mod catalogue;
mod content;
mod export;
mod files;
mod frames;
mod listen;
mod name;
mod page;
mod pushed;
mod put_manifest;
mod range;
mod referrers;
mod registry;
mod reply;
#[cfg(test)]
mod testing;
mod upload;

pub use auth::Users;
pub use catalogue::Source;
pub use export::{ExportError, export_files};
pub use files::FilePlace;

use crate::config::Site;
use crate::content::BlobRead;
use crate::model::Limits;
use crate::model::Target;
use crate::report::{Kind, Progress};
use app::App;
use catalogue::Catalogue;
use content::Contents;
use pushed::Pushed;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// What to serve, and to whom.
pub struct Options<'a> {
    /// `HOST:PORT`; port 0 takes a free one.
    pub listen: String,
    /// What is read.
    pub sources: Vec<Source>,
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
    /// Images in the bundles.
    pub images: usize,
    /// Files in the bundles.
    pub files: usize,
    /// Whether it takes pushes.
    pub writable: bool,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// `--listen` is no address.
    #[error("cannot listen at '{address}': {why}; write HOST:PORT, as in 127.0.0.1:5000")]
    Address {
        /// What was given.
        address: String,
        /// The system's answer.
        why: String,
    },
    /// The system does not give the address.
    #[error("cannot listen at {address}: {source}; name another with --listen HOST:PORT")]
    Listen {
        /// What was given.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Everybody on the network could push.
    #[error(
        "--writable at {address} would let everybody who reaches it push images; name who may with --htpasswd \
         FILE, or say --anonymous-push if that is meant"
    )]
    Exposed {
        /// An address beyond loopback.
        address: SocketAddr,
    },
    /// The folder of `--writable` cannot be used.
    #[error("cannot use {dir} for pushes: {source}")]
    Writable {
        /// The folder.
        dir: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process serves the folder.
    #[error("{dir} is served by another landfall already; end it or name another folder with --writable")]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use {path} for TLS: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The password file cannot be used.
    #[error("cannot use the password file {path}: {why}")]
    Users {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Serves until `stop` is ready; then the answers under way may end. `ready` hears of it when clients
/// can connect.
///
/// # Errors
/// When it cannot begin.
pub async fn serve(
    options: Options<'_>,
    ready: impl FnOnce(&Serving),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let Options { listen, sources, target, site, limits, progress, .. } = options;
    let addresses = listen::addresses(&listen).await?;
    let open = options.users.is_none() && !options.anonymous_push;
    if let Some(&address) = addresses.iter().find(|address| !address.ip().is_loopback())
        && options.writable.is_some()
        && open
    {
        return Err(ServeError::Exposed { address });
    }
    let tls = options.tls.map(|(cert, key)| listen::tls(&cert, &key)).transpose()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    if options.users.is_some() && tls.is_none() && addresses.iter().any(|address| !address.ip().is_loopback())
    {
        progress.note("warning: passwords travel in clear over plain http; give --tls-cert and --tls-key");
    }
    let writable = options.writable;
    let pushed = writable.as_deref().map(Pushed::open).transpose()?.map(Arc::new);
    let listener = listen::bind(&listen, &addresses).await?;
    let bound = listener.local_addr().map_err(|source| ServeError::Listen { address: listen, source })?;
    let address = bound.to_string();

    let here = Target { registry: address.clone(), prefix: String::new() };
    let mut catalogue = Catalogue::new(&sources, &crate::config::mapping(target.unwrap_or(here), site));
    catalogue.also_called(address.clone());
    if let (Some(pushed), Some(dir)) = (&pushed, writable) {
        let hidden = hidden(&catalogue, pushed).map_err(|source| ServeError::Writable { dir, source })?;
        catalogue.notes.extend(hidden);
    }
    catalogue.notes.iter().for_each(|note| progress.note(note));
    let items = || catalogue.bundles.iter().flat_map(|bundle| &bundle.items);
    let serving = Serving {
        url: format!("{scheme}://{address}"),
        images: items().filter(|item| item.kind == Kind::Image).count(),
        files: items().filter(|item| item.kind == Kind::File).count(),
        writable: pushed.is_some(),
    };
    let mut places: Vec<Arc<dyn BlobRead>> = sources.into_iter().map(|source| source.blobs).collect();
    places.extend(pushed.clone().map(|pushed| pushed as Arc<dyn BlobRead>));
    let app = App {
        catalogue,
        contents: Contents::new(places, progress.clone()),
        pushed,
        uploads: Default::default(),
        users: options.users,
        limits,
        notes: progress,
        address,
    };
    ready(&serving);
    listen::run(listener, tls, Arc::new(app), stop).await;
    Ok(())
}

/// Notes about tags that were pushed before a bundle with other content came under the same name.
fn hidden(catalogue: &Catalogue, pushed: &Pushed) -> io::Result<Vec<String>> {
    let mut notes = Vec::new();
    for name in pushed.names()? {
        let held = catalogue.repositories(&name, None);
        for tag in pushed.tags(&name)?.unwrap_or_default() {
            let is_other = |held: &&catalogue::Repository| match held.tag(&tag) {
                Ok(Some(held)) => {
                    pushed.tag(&name, &tag).ok().flatten().is_some_and(|own| own != held.digest)
                }
                Ok(None) => false,
                Err(_) => true,
            };
            if held.iter().any(is_other) {
                notes.push(format!("{name}:{tag}: what a bundle has is served, not what was pushed"));
            }
        }
    }
    Ok(notes)
}
