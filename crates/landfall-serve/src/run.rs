//! Starts the server: opens the listeners and the writable store, reads the names in the bundles,
//! and accepts connections. A reload creates a new [`ServerState`] for the requests that follow.

use crate::catalog::{BundleCatalog, ServedRepository};
use crate::connections::{ConnectionTable, RequestLimiter, possible_connections};
use crate::git::GitDatabases;
use crate::observe::{AccessLog, RequestObserver};
use crate::response::{ANSWER_MEMORY, BodyBuffers, DOCUMENTS};
use crate::sign_in::SignInQueue;
use crate::state::{self, RefreshHandle, ServerContext, ServerState};
use crate::upload_sessions::UploadSessions;
use crate::verified_blobs::VerifiedBlobs;
use crate::writable::{WritableStore, unusable_folder};
use crate::{ServeOptions, ServedContent, ServerInfo, accept, api, blobs};
use landfall_content::{BlobChain, MemoryBlobs};
use landfall_http::{read_certificates, read_private_key};
use landfall_model::report::Progress;
use landfall_model::{DestinationMap, Failure, Limits, TargetRegistry, config};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, io};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::block_in_place;
use tokio_rustls::TlsAcceptor;

/// Serves the content from `load` until `stop` completes, then lets responses in progress end.
///
/// Calls `ready` as soon as clients can connect. Calls `load` again whenever `reload` completes,
/// and when a request finds that the content is outdated. If `load` fails during a reload,
/// the server continues with the previous content.
///
/// # Errors
/// Fails if the server cannot start.
pub async fn serve<E: From<Failure> + std::fmt::Display>(
    options: ServeOptions<'_>,
    load: impl Fn() -> Result<ServedContent, E>,
    ready: impl FnOnce(&ServerInfo),
    mut reload: impl AsyncFnMut(),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), E> {
    // in its own task, which continues while `load` blocks this one
    let stop = tokio::spawn(stop);
    // `load` may wait for a registry
    let content = block_in_place(&load)?;
    let mut addresses = Vec::new();
    for listen in &options.listen {
        addresses.push(ListenAddress::resolve(listen, !content.tls.is_empty()).await?);
    }
    let exposure = Exposure::new(&addresses, &options);
    // before anything is opened: a refused start must not create files
    exposure.check(&content, &*options.progress)?;
    let writable = match &options.writable {
        Some(dir) => Some(Arc::new(WritableStore::open(dir, options.max_bytes)?)),
        None => None,
    };
    let mut listeners = Vec::new();
    for address in &addresses {
        listeners.extend(address.bind().await?);
    }
    // the default for references, if the user named no registry
    let address = listeners
        .first()
        .map(|listener| listener.address.to_string())
        .unwrap_or_default();
    let target = options.target.clone().unwrap_or_else(|| TargetRegistry {
        registry: address.clone(),
        prefix: String::new(),
    });
    // the mapping by which references were rewritten, so that rewritten names lead to this server
    let mapping = config::destination_map(target, options.site);
    let (refresh, refresh_requests) = RefreshHandle::new();
    let drain = options.drain;
    let context = Arc::new(new_context(options, writable, refresh, &listeners, address));
    let first = new_state(&context, content, &mapping)?;
    let info = first.info();
    let (state_sender, states) = watch::channel(Arc::new(first));
    let (end, ended) = watch::channel(false);
    ready(&info);
    // in its own task, so that connections are accepted while a reload reads its files
    let accepting = tokio::spawn(accept::accept_connections(listeners, states, ended));
    let renew = || -> Result<Arc<ServerState>, E> {
        let content = block_in_place(&load)?;
        exposure.check(&content, &*context.progress)?;
        let state = Arc::new(new_state(&context, content, &mapping)?);
        let _ = state_sender.send(state.clone());
        let metrics = &context.observer.metrics;
        metrics.reloads.fetch_add(1, Ordering::Relaxed);
        Ok(state)
    };
    let reloading = async {
        loop {
            reload().await;
            // log rotation uses the same signal
            let log = context.observer.log.as_ref();
            if let Some(Err(error)) = log.map(AccessLog::reopen) {
                context.progress.note(&format!(
                    "cannot reopen the access log, which is still written to its old file: {error}"
                ));
            }
            match renew() {
                Ok(_) => context
                    .progress
                    .note("reloaded: new requests use the current files"),
                Err(error) => context.progress.note(&format!(
                    "reload failed, the previous content is still served: {error}"
                )),
            }
        }
    };
    let refreshing = refresh_requests.answer(async || {
        let renew = || {
            let state = renew().map_err(|error| error.to_string())?;
            context.progress.note("refreshed: serving a newer lock");
            Ok(state)
        };
        let state = state_sender.borrow().clone();
        state::refreshed(state, renew).await
    });
    let stopped = context.clone();
    // in its own task, because a reload may wait for a registry that does not answer
    let stopping = tokio::spawn(async move {
        let _ = stop.await;
        stopped.draining.store(true, Ordering::Relaxed);
        tokio::time::sleep(drain).await;
        let _ = end.send(true);
    });
    let running = async {
        tokio::select! {
            _ = stopping => {}
            () = reloading => {}
            () = api::clean_up(context.clone()) => {}
        }
        let _ = accepting.await;
    };
    // refreshes are answered until the last response has ended
    tokio::select! {
        () = running => {}
        () = refreshing => {}
    }
    Ok(())
}

fn new_context(
    options: ServeOptions<'_>,
    writable: Option<Arc<WritableStore>>,
    refresh: RefreshHandle<Arc<ServerState>>,
    listeners: &[Listener],
    address: String,
) -> ServerContext {
    let limits = options.limits;
    let max_connections = max_connections(&limits, &*options.progress);
    ServerContext {
        verified_blobs: VerifiedBlobs::new(limits.hashing),
        body_buffers: BodyBuffers::new(blobs::BODY_PIECE),
        writable,
        uploads: UploadSessions::default(),
        needs_sweep: AtomicBool::new(false),
        connections: ConnectionTable::new(max_connections, limits.keep_alive, limits.stall),
        requests: RequestLimiter::new(limits.requests),
        answer_memory: RequestLimiter::new(ANSWER_MEMORY),
        documents: Semaphore::new(DOCUMENTS),
        git_selections: Arc::new(Semaphore::new(limits.hashing)),
        sign_ins: Arc::new(SignInQueue::new(max_connections)),
        manifest_slots: Arc::new(Semaphore::new(limits.manifests)),
        observer: Arc::new(RequestObserver::new(options.log)),
        refresh,
        redirect: options.redirect,
        draining: AtomicBool::new(false),
        limits,
        progress: options.progress,
        address,
        urls: listeners.iter().map(Listener::url).collect(),
        ports: listeners
            .iter()
            .map(|listener| listener.address.port())
            .collect(),
    }
}

/// The number of connections that may be open at once.
fn max_connections(limits: &Limits, progress: &dyn Progress) -> usize {
    let max = possible_connections(limits.connections, limits.requests);
    if max < limits.connections {
        progress.note(&format!(
            "warning: only {max} connections are possible at once, since the process may not open \
             more files (ulimit -n)"
        ));
    }
    max
}

/// The first address of `listen` that is not a loopback address.
fn beyond_loopback(listen: &ListenAddress) -> Option<SocketAddr> {
    listen
        .addresses
        .iter()
        .copied()
        .find(|address| !address.ip().is_loopback())
}

/// The exposure of the server to clients on other machines.
struct Exposure {
    /// An address that is not a loopback address; `None` if there is none.
    address: Option<SocketAddr>,
    /// Whether an address that is not a loopback address accepts plain http.
    is_plain_http: bool,
    /// Whether the server accepts pushes, but only from users who sign in.
    needs_users: bool,
}

impl Exposure {
    fn new(addresses: &[ListenAddress], options: &ServeOptions<'_>) -> Exposure {
        Exposure {
            address: addresses.iter().find_map(beyond_loopback),
            is_plain_http: addresses
                .iter()
                .any(|listen| !listen.tls && beyond_loopback(listen).is_some()),
            needs_users: options.writable.is_some() && !options.anonymous_push,
        }
    }

    /// Refuses to expose pushes without users, and warns of passwords over plain http. A reload
    /// must check this again, because the new content may have no users.
    fn check(&self, content: &ServedContent, progress: &dyn Progress) -> Result<(), Failure> {
        let Some(address) = self.address else {
            return Ok(());
        };
        if self.needs_users && content.users.is_none() {
            return Err(Failure::usage(format!(
                "refusing to accept pushes from everyone who can reach {address}; list the users \
                 in a file with --htpasswd FILE, or allow everyone with --anonymous-push"
            )));
        }
        if content.users.is_some() && self.is_plain_http {
            progress.note(
                "warning: passwords are sent unencrypted over plain http; use --tls-cert and \
                 --tls-key",
            );
        }
        Ok(())
    }
}

fn new_state(
    context: &Arc<ServerContext>,
    content: ServedContent,
    mapping: &DestinationMap,
) -> Result<ServerState, Failure> {
    let mut bundles = BundleCatalog::new(&content.bundles, mapping);
    for url in &context.urls {
        if let Some((_, host)) = url.split_once("://") {
            bundles.add_own_host(host.to_owned());
        }
    }
    bundles.add_generated(&content.made);
    let mut sources = content.content;
    let made = content
        .made
        .into_iter()
        .map(|file| (file.digest, file.bytes.into()));

    sources.push(Arc::new(MemoryBlobs(made.collect())));
    if let Some(store) = &context.writable {
        let warnings =
            hidden_tags(&bundles, store).map_err(|error| unusable_folder(store.dir(), &error))?;
        bundles.warnings.extend(warnings);
        sources.push(store.blobs.clone());
    }
    for warning in &bundles.warnings {
        context.progress.note(warning);
    }
    Ok(ServerState {
        bundles,
        blobs: BlobChain(sources.iter().map(|source| source.clone() as _).collect()),
        content: sources,
        earlier: BundleCatalog::new(&content.earlier, mapping),
        git_databases: GitDatabases::default(),
        is_outdated: content.is_outdated,
        users: content.users,
        guides: content.guides,
        tls: tls_acceptor(&content.tls)?,
        context: context.clone(),
    })
}

/// A warning for each pushed tag that is hidden by a different image or an ambiguous tag of a
/// bundle.
fn hidden_tags(bundles: &BundleCatalog, store: &WritableStore) -> io::Result<Vec<String>> {
    let mut warnings = Vec::new();
    for name in store.repositories()? {
        let repositories = bundles.repositories(&name, None);
        for tag in store.tags(&name)?.unwrap_or_default() {
            if repositories
                .iter()
                .any(|repository| hides_tag(repository, store, &name, &tag))
            {
                warnings.push(format!(
                    "{name}:{tag}: the pushed image is hidden by the tag of a bundle"
                ));
            }
        }
    }
    Ok(warnings)
}

fn hides_tag(repository: &ServedRepository, store: &WritableStore, name: &str, tag: &str) -> bool {
    match repository.tag(tag) {
        Ok(None) => false,
        Ok(Some(served)) => {
            let pushed = store.tag(name, tag).ok().flatten();
            pushed.is_some_and(|pushed| pushed != served.digest)
        }
        // an ambiguous tag of the bundles is never answered with the pushed image
        Err(_) => true,
    }
}

/// A value of `--listen`, resolved.
pub(crate) struct ListenAddress {
    /// The addresses of the host, those of IPv4 first.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) tls: bool,
}

/// A socket that accepts connections.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) tls: bool,
}

impl Listener {
    /// The URL of the listener, as in `https://127.0.0.1:5000`.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

impl ListenAddress {
    /// Parses and resolves `HOST:PORT`, optionally with `http://` or `https://` before it. Without
    /// a scheme, the address speaks https if the server has a certificate.
    pub(crate) async fn resolve(
        listen: &str,
        has_certificate: bool,
    ) -> Result<ListenAddress, Failure> {
        let (text, tls) = if let Some(text) = listen.strip_prefix("http://") {
            (text, false)
        } else if let Some(text) = listen.strip_prefix("https://") {
            (text, true)
        } else {
            (listen, has_certificate)
        };
        if tls && !has_certificate {
            return Err(invalid_address(
                listen,
                "https needs --tls-cert and --tls-key",
            ));
        }
        let addresses: BTreeSet<SocketAddr> = tokio::net::lookup_host(text.trim_end_matches('/'))
            .await
            .map_err(|error| invalid_address(listen, error))?
            .collect();
        if addresses.is_empty() {
            return Err(invalid_address(listen, "the host name has no address"));
        }
        Ok(ListenAddress {
            addresses: addresses.into_iter().collect(),
            tls,
        })
    }

    /// Listens at every address of the host, because clients choose any of them. If the port is 0,
    /// all get the port that is free at the first one.
    pub(crate) async fn bind(&self) -> Result<Vec<Listener>, Failure> {
        let mut listeners: Vec<Listener> = Vec::new();
        let mut foreign = None;
        for address in &self.addresses {
            let mut address = *address;
            if let Some(first) = listeners.first() {
                address.set_port(first.address.port());
            }
            match self.try_bind(address).await {
                Ok(listener) => listeners.push(listener),
                Err(error) => {
                    let failure = Failure::failed(format!(
                        "cannot listen at {address}: {error}; use another address with --listen \
                         HOST:PORT"
                    ));
                    let kind = error.kind();
                    if matches!(
                        kind,
                        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                    ) {
                        return Err(failure);
                    }
                    // machines without IPv6 have a name for ::1, too
                    foreign = Some(failure);
                }
            }
        }
        match foreign {
            Some(failure) if listeners.is_empty() => Err(failure),
            _ => Ok(listeners),
        }
    }

    async fn try_bind(&self, address: SocketAddr) -> io::Result<Listener> {
        let socket = TcpListener::bind(address).await?;
        // the address of the socket: port 0 was replaced by a free port
        let address = socket.local_addr()?;
        Ok(Listener {
            socket,
            address,
            tls: self.tls,
        })
    }
}

fn invalid_address(listen: &str, why: impl fmt::Display) -> Failure {
    Failure::usage(format!(
        "cannot listen at '{listen}': {why}; write HOST:PORT, as in 127.0.0.1:5000 or, for all \
         addresses, 0.0.0.0:5000"
    ))
}

/// An acceptor for HTTP/1.1 over TLS with these certificate chains and keys, or `None` without any.
pub(crate) fn tls_acceptor(files: &[(PathBuf, PathBuf)]) -> Result<Option<TlsAcceptor>, Failure> {
    if files.is_empty() {
        return Ok(None);
    }
    // not the default provider of the process: another crate may have set it, or it may be missing
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let keys = files
        .iter()
        .map(|(cert, key)| load_key(cert, key, &provider))
        .collect::<Result<_, _>>()?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files[0].0, error))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(CertificateResolver(keys)));
    // the server does not implement HTTP/2, so it must not be negotiated
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

fn load_key(
    cert: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, Failure> {
    let chain = read_certificates(cert).map_err(|error| unusable(cert, error))?;
    if chain.is_empty() {
        return Err(unusable(cert, "it contains no certificate"));
    }
    let private = read_private_key(key).map_err(|why| unusable(key, why))?;
    CertifiedKey::from_der(chain, private, provider)
        .map(Arc::new)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let key = key.display();
                unusable(
                    cert,
                    format!("the private key {key} belongs to another certificate"),
                )
            }
            error => unusable(cert, error),
        })
}

fn unusable(path: &Path, why: impl fmt::Display) -> Failure {
    Failure::usage(format!("cannot use {} for TLS: {why}", path.display()))
}

/// Selects the first certificate that covers the name in the TLS handshake (SNI), or else the first
/// one.
#[derive(Debug)]
struct CertificateResolver(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        // without a match the first one is used: the client then reports the name that it expected
        let covering = name.and_then(|name| self.0.iter().find(|key| covers(key, &name)));
        covering.or(self.0.first()).cloned()
    }
}

fn covers(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let Some(cert) = key.cert.first() else {
        return false;
    };
    ParsedCertificate::try_from(cert).is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_options;
    use std::cell::Cell;
    use std::net::TcpStream;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};
    use tokio::sync::oneshot;

    fn addresses(texts: &[&str]) -> ListenAddress {
        ListenAddress {
            addresses: texts.iter().map(|text| text.parse().unwrap()).collect(),
            tls: false,
        }
    }

    #[tokio::test]
    async fn every_address_of_a_host_is_bound_to_one_port() {
        // 192.0.2.1 belongs to no machine (RFC 5737)
        let host = addresses(&["192.0.2.1:0", "127.0.0.1:0", "127.0.0.2:0"]);
        let bound = host.bind().await.unwrap();
        let ips = bound
            .iter()
            .map(|listener| listener.address.ip().to_string());
        assert_eq!(ips.collect::<Vec<_>>(), ["127.0.0.1", "127.0.0.2"]);
        let port = bound[0].address.port();
        assert_eq!(bound[1].address.port(), port);
        let taken = format!("127.0.0.2:{port}");
        let free = format!("127.0.0.3:{port}");
        let refused = addresses(&[&free, &taken]).bind().await;
        assert!(refused.is_err_and(|failure| failure.message.contains(&taken)));
        let foreign = addresses(&["192.0.2.1:0"]).bind().await;
        assert!(foreign.is_err_and(|failure| failure.message.contains("192.0.2.1:0")));
    }

    #[test]
    fn a_server_stops_while_a_reload_waits_for_its_content() {
        let (announce, address) = channel();
        let (begin, begun) = channel();
        let (release, released) = channel::<()>();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = std::thread::spawn(move || {
            let loads = Cell::new(0);
            let load = || {
                loads.set(loads.get() + 1);
                if loads.get() == 2 {
                    begin.send(()).unwrap();
                    let _ = released.recv();
                }
                Ok::<_, Failure>(ServedContent::default())
            };
            let ready = |info: &ServerInfo| announce.send(info.urls[0].clone()).unwrap();
            let reloads = Cell::new(0);
            let reload = async || {
                if reloads.replace(1) > 0 {
                    std::future::pending::<()>().await;
                }
            };
            let stop = async move { drop(stopped.await) };
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime
                .block_on(serve(test_options(), load, ready, reload, stop))
                .unwrap();
        });
        let url: String = address.recv().unwrap();
        begun.recv().unwrap();
        drop(stop);
        let deadline = Instant::now() + Duration::from_mins(1);
        while TcpStream::connect(url.trim_start_matches("http://")).is_ok() {
            assert!(Instant::now() < deadline, "connections are still accepted");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(release);
        server.join().unwrap();
    }
}
