//! The server's start: listen, read the names in the bundles, open the writable store, take
//! connections. And its reload: a new [`State`] for the requests that follow; those in progress
//! keep theirs.

use super::buffers::Buffers;
use super::bundles::Bundles;
use super::connections::{InFlight, Seats};
use super::freshness::Freshness;
use super::known_blobs::KnownBlobs;
use super::listen::{Door, Place};
use super::observe::Observer;
use super::repository::Repository;
use super::sign_in_queue::SignInQueue;
use super::state::{Kept, State};
use super::upload_sessions::Uploads;
use super::writable::WritableStore;
use super::{
    ServeError, ServeOptions, ServedContent, ServerInfo, blob_body, connections, deletion, listen,
    lookup,
};
use landfall_content::{BlobChain, MemoryBlobs};
use landfall_model::config;
use landfall_model::report::Progress;
use landfall_model::{DestinationMap, Limits, TargetRegistry};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, watch};
use tokio::task::block_in_place;

/// Serves until `stop` is ready, and lets responses in progress end. Calls `ready` as soon as
/// clients can connect. What it serves comes from `load`, which is called again whenever `reload`
/// is ready; where that fails, what was served before is served on.
///
/// # Errors
/// When the server cannot start.
pub async fn serve<E: From<ServeError> + std::fmt::Display>(
    options: ServeOptions<'_>,
    load: impl Fn() -> Result<ServedContent, E>,
    ready: impl FnOnce(&ServerInfo),
    mut reload: impl AsyncFnMut(),
    stop: impl Future<Output = ()>,
) -> Result<(), E> {
    // it may ask a registry
    let served = block_in_place(&load)?;
    let mut places = Vec::new();
    for listen in &options.listen {
        places.push(Place::find(listen, !served.tls.is_empty()).await?);
    }
    let exposure = Exposure::of(
        &places,
        options.writable.is_some() && !options.anonymous_push,
    );
    exposure.check(&served, &*options.progress)?;
    let writable = options
        .writable
        .as_deref()
        .map(|dir| WritableStore::open(dir, options.max_bytes))
        .transpose()?
        .map(Arc::new);
    let mut doors = Vec::new();
    for place in &places {
        doors.push(place.bind().await?);
    }
    let limits = options.limits;
    let most = most_connections(&limits, &*options.progress);
    let address = doors
        .first()
        .map(|door| door.address.to_string())
        .unwrap_or_default();
    let here = TargetRegistry {
        registry: address.clone(),
        prefix: String::new(),
    };
    let mapping = config::destination_map(options.target.clone().unwrap_or(here), options.site);
    let (freshness, asking) = Freshness::new();
    let kept = Arc::new(Kept {
        known: KnownBlobs::new(limits.hashing),
        buffers: Buffers::new(blob_body::PIECE),
        writable,
        uploads: Uploads::default(),
        to_sweep: AtomicBool::new(false),
        seats: Seats::new(most, limits.keep_alive, limits.stall),
        in_flight: InFlight::new(limits.requests),
        sign_ins: Arc::new(SignInQueue::new(most)),
        manifest_slots: Arc::new(Semaphore::new(limits.manifests)),
        observer: Arc::new(Observer::new(options.log)),
        freshness,
        redirect: options.redirect,
        draining: AtomicBool::new(false),
        limits,
        notes: options.progress,
        address,
        urls: doors.iter().map(Door::url).collect(),
        ports: doors.iter().map(|door| door.address.port()).collect(),
    });
    let first = state(&kept, served, &mapping)?;
    let serving = first.serving();
    let (states, current) = watch::channel(Arc::new(first));
    let (end, ended) = watch::channel(false);
    ready(&serving);
    // a task of its own: connections are taken while a reload reads its files
    let connections = tokio::spawn(connections::run(doors, current, ended));
    let renew = || -> Result<Arc<State>, E> {
        let served = block_in_place(&load)?;
        exposure.check(&served, &*kept.notes)?;
        let state = Arc::new(state(&kept, served, &mapping)?);
        let _ = states.send(state.clone());
        kept.observer
            .metrics
            .reloads
            .fetch_add(1, Ordering::Relaxed);
        Ok(state)
    };
    let reloading = async {
        loop {
            reload().await;
            if let Some(log) = &kept.observer.log {
                log.reopen();
            }
            match renew() {
                Ok(_) => kept
                    .notes
                    .note("reloaded: new requests get what the files hold now"),
                Err(error) => {
                    kept.notes.note(&format!(
                        "nothing is reloaded, what was served is served on: {error}"
                    ));
                }
            }
        }
    };
    let renewing = asking.answer(async || {
        let renew = || {
            let renewed = renew().map_err(|error| error.to_string());
            renewed.inspect(|_| kept.notes.note("renewed: another lock is served now"))
        };
        let state = states.borrow().clone();
        lookup::renewed(state, renew).await
    });
    let stopping = async {
        stop.await;
        kept.draining.store(true, Ordering::Relaxed);
        tokio::time::sleep(options.drain).await;
    };
    let running = async {
        tokio::select! {
            () = stopping => {}
            () = reloading => {}
            () = deletion::clean_up(kept.clone()) => {}
        }
        let _ = end.send(true);
        let _ = connections.await;
    };
    // up to the last answer
    tokio::select! {
        () = running => {}
        () = renewing => {}
    }
    Ok(())
}

/// How many connections there may be at one time.
fn most_connections(limits: &Limits, progress: &dyn Progress) -> usize {
    let most = connections::raise_open_files(limits.connections, limits.requests);
    if most < limits.connections {
        progress.note(&format!(
            "warning: at most {most} connections at one time: the process may not open more files (ulimit -n)"
        ));
    }
    most
}

/// Who could do what.
struct Exposure {
    /// An address beyond loopback.
    beyond: Option<SocketAddr>,
    /// Whether plain http is spoken beyond loopback.
    in_clear: bool,
    /// Whether it takes pushes, and not from everybody.
    takes_pushes: bool,
}

impl Exposure {
    /// What listening at `places` means.
    fn of(places: &[Place], takes_pushes: bool) -> Exposure {
        let is_beyond = |address: &&SocketAddr| !address.ip().is_loopback();
        let in_clear = places
            .iter()
            .any(|place| !place.tls && place.addresses.iter().any(|one| is_beyond(&one)));
        let mut addresses = places.iter().flat_map(|place| &place.addresses);
        Exposure {
            beyond: addresses.find(is_beyond).copied(),
            in_clear,
            takes_pushes,
        }
    }

    /// Whether `served` may be served so.
    fn check(&self, served: &ServedContent, progress: &dyn Progress) -> Result<(), ServeError> {
        let Some(address) = self.beyond else {
            return Ok(());
        };
        if self.takes_pushes && served.users.is_none() {
            return Err(ServeError::Exposed { address });
        }
        if served.users.is_some() && self.in_clear {
            progress.note(
                "warning: passwords travel in clear over plain http; give --tls-cert and --tls-key",
            );
        }
        Ok(())
    }
}

/// The state in which `served` is served.
fn state(
    kept: &Arc<Kept>,
    served: ServedContent,
    mapping: &DestinationMap,
) -> Result<State, ServeError> {
    let mut bundles = Bundles::new(&served.bundles, mapping);
    let own = kept.urls.iter().filter_map(|url| url.split_once("://"));
    own.for_each(|(_, host)| bundles.also_called(host.to_owned()));
    bundles.add_made(&served.made);
    let mut content = served.content;
    let made = served
        .made
        .into_iter()
        .map(|file| (file.digest, file.bytes.into()));
    content.push(Arc::new(MemoryBlobs(made.collect())));
    if let Some(store) = &kept.writable {
        let hidden = hidden(&bundles, store);
        bundles
            .notes
            .extend(hidden.map_err(|source| ServeError::Writable {
                dir: store.dir().into(),
                source,
            })?);
        content.push(store.blobs.clone());
    }
    bundles.notes.iter().for_each(|note| kept.notes.note(note));
    let tls = listen::tls(&served.tls)?;
    let (users, guides, is_outdated) = (served.users, served.guides, served.is_outdated);
    let earlier = Bundles::new(&served.earlier, mapping);
    Ok(State {
        bundles,
        earlier,
        blobs: BlobChain(content.iter().map(|blobs| blobs.clone() as _).collect()),
        content,
        is_outdated,
        users,
        guides,
        tls,
        kept: kept.clone(),
    })
}

/// A note for each pushed tag that a bundle now holds with other content.
fn hidden(bundles: &Bundles, store: &WritableStore) -> io::Result<Vec<String>> {
    let mut notes = Vec::new();
    for name in store.repositories()? {
        let held = bundles.repositories(&name, None);
        for tag in store.tags(&name)?.unwrap_or_default() {
            let is_other = |held: &&Repository| match held.tag(&tag) {
                Ok(Some(held)) => store
                    .tag(&name, &tag)
                    .ok()
                    .flatten()
                    .is_some_and(|pushed| pushed != held.digest),
                Ok(None) => false,
                Err(_) => true,
            };
            if held.iter().any(is_other) {
                notes.push(format!(
                    "{name}:{tag}: what a bundle has is served, not what was pushed"
                ));
            }
        }
    }
    Ok(notes)
}
