//! The server's start: listen, read the names in the bundles, open the writable store, take connections.

use super::bundles::Bundles;
use super::repository::Repository;
use super::state::State;
use super::upload_sessions::Uploads;
use super::writable::WritableStore;
use super::{Options, ServeError, Serving, connections, listen};
use crate::config;
use crate::content::{BlobChain, BlobRead};
use crate::model::Target;
use std::io;
use std::sync::Arc;

/// Serves until `stop` is ready, and lets responses in progress end. Calls `ready` as soon as clients can
/// connect.
///
/// # Errors
/// When the server cannot start.
pub(crate) async fn serve(
    options: Options<'_>,
    ready: impl FnOnce(&Serving),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let Options { listen, bundles: served, target, site, limits, progress, .. } = options;
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
    let writable = options.writable.as_deref().map(WritableStore::open).transpose()?.map(Arc::new);
    let listener = listen::bind(&listen, &addresses).await?;
    let bound = listener.local_addr().map_err(|source| ServeError::Listen { address: listen, source })?;
    let address = bound.to_string();

    let here = Target { registry: address.clone(), prefix: String::new() };
    let mut bundles = Bundles::new(&served, &config::mapping(target.unwrap_or(here), site));
    bundles.also_called(address.clone());
    if let (Some(store), Some(dir)) = (&writable, options.writable) {
        let hidden = hidden(&bundles, store).map_err(|source| ServeError::Writable { dir, source })?;
        bundles.notes.extend(hidden);
    }
    bundles.notes.iter().for_each(|note| progress.note(note));
    let serving = Serving {
        url: format!("{scheme}://{address}"),
        items: bundles.counts(),
        writable: writable.is_some(),
    };
    let mut blobs: Vec<Arc<dyn BlobRead>> = served.into_iter().map(|bundle| bundle.blobs).collect();
    blobs.extend(writable.as_ref().map(|store| store.blobs.clone() as Arc<dyn BlobRead>));
    let state = State {
        bundles,
        blobs: BlobChain(blobs),
        writable,
        uploads: Uploads::default(),
        users: options.users,
        limits,
        notes: progress,
        address,
    };
    ready(&serving);
    connections::run(listener, tls, Arc::new(state), stop).await;
    Ok(())
}

/// A note for each pushed tag that a bundle now holds with other content.
fn hidden(bundles: &Bundles, store: &WritableStore) -> io::Result<Vec<String>> {
    let mut notes = Vec::new();
    for name in store.repositories()? {
        let held = bundles.repositories(&name, None);
        for tag in store.tags(&name)?.unwrap_or_default() {
            let is_other = |held: &&Repository| match held.tag(&tag) {
                Ok(Some(held)) => {
                    store.tag(&name, &tag).ok().flatten().is_some_and(|pushed| pushed != held.digest)
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
