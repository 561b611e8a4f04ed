//! The hosts that a lock needs on the connected side: observed by earlier runs, predicted from the
//! lock or the manifests and from the documentation of registry operators, or declared as
//! endpoints. Formats them as lists, and as rules of firewalls and proxies.

mod format;
mod host;
mod known_services;
mod pattern;
mod probe;
mod record;
mod unresolved;

use self::host::{OWN_ROLE, SourceKind};
use self::known_services::{KnownService, services_at};
use self::pattern::{EgressPattern, InvalidHost};
use self::record::Contacted;
use self::unresolved::unresolved_source;
use landfall_content::registry::RegistrySessions;
use landfall_content::{EntryPart, LockEntry, PartOrigin};
use landfall_http::{HttpError, host_port};
use landfall_item::lockfile::{Endpoint, Lock};
use landfall_model::report::{EntryKind, count_of};
use landfall_model::{ChangedName, Descriptor, Digest, Failure, is_example_name, media_type};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

pub(crate) use self::format::FORMATS;
pub(crate) use self::host::{EgressHost, EgressRole, HostEvidence, diff, read_list};
pub(crate) use self::probe::probe;
#[cfg(any(test, fuzzing))]
pub(crate) use self::record::fuzz;
pub(crate) use self::record::{ContactRecord, remember};
pub(crate) use self::unresolved::{UpdateSources, unresolved_lock};

/// The hosts that a lock needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Egress {
    /// All hosts that the lock needs, sorted.
    pub hosts: Vec<EgressHost>,
    /// Hosts that are not known yet, and how they become known.
    pub notes: Vec<String>,
}

/// A host that the lock itself names.
struct SourceHost {
    /// The URL of the first item at this host, or the base URL of a registry.
    url: Url,
    /// The registry or file host, as the lock names it.
    name: String,
    /// The parts that a probe requests: a manifest, and a blob or file.
    samples: [Option<EntryPart>; 2],
    kind: SourceKind,
    /// Whether `lock` requests everything from this host that a pull requests.
    is_requested_by_lock: bool,
    /// The well-known services that its URLs belong to.
    services: Vec<&'static KnownService>,
}

/// The failure of a lock with a name that cannot be part of a URL.
fn unusable(error: HttpError) -> Failure {
    Failure::usage(error.to_string())
}

/// The hosts that `lock` names. Each key begins with the address that is contacted, which may be
/// that of a mirror.
fn sources(
    lock: &Lock,
    sessions: &RegistrySessions,
) -> Result<BTreeMap<String, SourceHost>, Failure> {
    let mut sources: BTreeMap<String, SourceHost> = BTreeMap::new();
    let parts = lock.each_entry().flat_map(|entry| {
        let by_lock = is_requested_by_lock(&entry);
        let parts = entry.parts.into_iter().flat_map(at_each_url);
        parts.map(move |part| (part, SourceKind::Files, by_lock))
    });
    let indexes = lock
        .items()
        .flat_map(landfall_item::LockedItem::lookup_urls)
        .map(|url| (index_part(url), SourceKind::Index, true));
    for (part, url_kind, by_lock) in parts.chain(indexes) {
        let (url, name, kind) = match &part.origin {
            PartOrigin::Manifest { registry, .. }
            | PartOrigin::Blob { registry, .. }
            | PartOrigin::Foreign { registry, .. } => (
                sessions.expected_url(registry).map_err(unusable)?,
                registry.to_string(),
                SourceKind::Registry,
            ),
            PartOrigin::Url(_) | PartOrigin::Urls(_) => {
                let Some(url) = part.origin.url() else {
                    continue;
                };
                url_source(url, url_kind, sessions).map_err(unusable)?
            }
            PartOrigin::Git { repository, .. } if repository.path.is_some() => continue,
            PartOrigin::Git { repository, .. } => {
                url_source(&repository.url, url_kind, sessions).map_err(unusable)?
            }
            PartOrigin::LargeFile(server) => {
                url_source(&server.url, url_kind, sessions).map_err(unusable)?
            }
            PartOrigin::Local(_) | PartOrigin::Computed(_) | PartOrigin::Trimmed { .. } => {
                continue;
            }
        };
        let source = add_source(&mut sources, (url, name, kind), by_lock);
        let sample = &mut source.samples[usize::from(!part.is_manifest())];
        let is_sample = match &part.origin {
            // the registry need not have it
            PartOrigin::Foreign { .. } => false,
            // usually at the host of the packs, which are the better samples
            PartOrigin::LargeFile(_) => sample.is_none(),
            // the smallest part: a proxy may read a whole file before it sends the first byte
            _ => sample
                .as_ref()
                .is_none_or(|known| part.descriptor.size < known.descriptor.size),
        };
        if is_sample {
            *sample = Some(part);
        }
    }
    for item in &lock.unresolved {
        if let Some(found) = unresolved_source(item, sessions) {
            // only `lock` requests an index
            let by_lock = found.2 == SourceKind::Index;
            add_source(&mut sources, found, by_lock);
        }
    }
    Ok(sources)
}

/// The part at each of its URLs: if one lacks the file, a pull requests the next, such as that of a
/// snapshot of a repository.
fn at_each_url(part: EntryPart) -> Vec<EntryPart> {
    let EntryPart { descriptor, origin } = part;
    let at = |origin| EntryPart {
        descriptor: descriptor.clone(),
        origin,
    };
    match origin {
        PartOrigin::Urls(urls) => urls.into_iter().map(PartOrigin::Url).map(at).collect(),
        origin => vec![at(origin)],
    }
}

/// The source of a URL: the URL that is requested, which may be that of a mirror, the host that the
/// lock names, and the kind.
fn url_source(
    url: &str,
    kind: SourceKind,
    sessions: &RegistrySessions,
) -> Result<(Url, String, SourceKind), HttpError> {
    let (url, origin) = sessions.file_url(url)?;
    let name = origin.unwrap_or_else(|| url.host_str().unwrap_or_default().to_owned());
    Ok((url, name, kind))
}

/// Adds a host with its URL, name and kind, unless it is in `sources` already. `by_lock` says
/// whether `lock` requests the same content from it as a pull.
fn add_source(
    sources: &mut BTreeMap<String, SourceHost>,
    (url, name, kind): (Url, String, SourceKind),
    by_lock: bool,
) -> &mut SourceHost {
    // one address may serve both a registry and files
    let key = format!("{} {name} {kind:?}", host_port(&url));
    let services: Vec<_> = services_at(&url).collect();
    let source = sources.entry(key).or_insert_with(|| SourceHost {
        url,
        name,
        samples: [None, None],
        kind,
        is_requested_by_lock: true,
        services: Vec::new(),
    });
    source.is_requested_by_lock &= by_lock;
    for service in services {
        if !source.services.contains(&service) {
            source.services.push(service);
        }
    }
    source
}

/// Whether `lock` requests the same content of an entry as a pull. `lock` downloads charts,
/// providers and the objects of git repositories, and downloads a file or requests its size. A pull
/// may then find all content of the entry in the store.
fn is_requested_by_lock(entry: &LockEntry) -> bool {
    let is_large = |part: &EntryPart| matches!(part.origin, PartOrigin::LargeFile(_));
    match entry.kind {
        EntryKind::File | EntryKind::Chart | EntryKind::Provider => true,
        EntryKind::Git => !entry.parts.iter().any(is_large),
        _ => false,
    }
}

/// An index or discovery document as a part that a probe can request. It is not content of a
/// bundle, so its digest and size are unknown.
fn index_part(url: String) -> EntryPart {
    let descriptor = Descriptor::new(Digest::sha256(b""), 0, media_type::OCTETS);
    EntryPart {
        descriptor,
        origin: PartOrigin::Url(url),
    }
}

/// What hosts are listed for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EgressQuery<'q> {
    /// The lock that needs the hosts.
    pub lock: &'q Lock,
    /// Whether `landfall lock` wrote it. Otherwise it has only the names in manifests.
    pub is_locked: bool,
    /// The role of the machines that need the hosts; `None` means all machines.
    pub role: Option<&'q EgressRole>,
}

impl<'q> EgressQuery<'q> {
    /// All hosts that a lock needs.
    pub(crate) fn of_lock(lock: &'q Lock) -> EgressQuery<'q> {
        EgressQuery {
            lock,
            is_locked: true,
            role: None,
        }
    }
}

/// Returns the hosts that a lock needs, according to the contacts of earlier runs and the mirrors
/// and proxies of this run.
pub(crate) fn needed(
    query: EgressQuery<'_>,
    record: &ContactRecord,
    sessions: &RegistrySessions,
) -> Result<Egress, Failure> {
    let EgressQuery {
        lock,
        is_locked,
        role,
    } = query;
    let mut list = HostList {
        hosts: BTreeMap::new(),
        sessions,
    };
    let mut notes = BTreeSet::new();
    let is_own = role.is_none_or(EgressRole::is_own);
    if is_own {
        add_sources(&mut list, &mut notes, lock, record)?;
    }
    let endpoints = lock.endpoints.iter();
    let endpoints: Vec<_> = endpoints
        .filter(|endpoint| role.is_none_or(|role| role.needs(endpoint)))
        .collect();
    endpoints
        .iter()
        .try_for_each(|endpoint| list.declare(endpoint))?;
    let hosts = endpoints.iter().map(|endpoint| &endpoint.host);
    let mut names: Vec<String> = hosts.clone().cloned().collect();
    if is_own {
        names.extend(lock.items().map(|item| item.name().into_owned()));
        names.extend(lock.unresolved.iter().map(|item| item.name.clone()));
    }
    let changed = ChangedName::among(names).into_iter();
    notes.extend(changed.map(ChangedName::note));
    let examples = hosts.filter(|host| is_example_name(host));
    notes.extend(examples.map(|host| {
        format!("{host} is an example: replace it in the manifest by the name of your site, or remove it")
    }));
    if is_own && !is_locked {
        notes.insert(
            "nothing was requested: the list is predicted from the names in the manifests; images \
             of charts and git submodules may come from further hosts, which become known when \
             `lock` resolves them"
                .into(),
        );
    } else if is_own && !lock.unresolved.is_empty() {
        notes.insert(format!(
            "{} of the lock could not be resolved: only the hosts in their names are listed; \
             further hosts become known when `lock` resolves them",
            count_of(lock.unresolved.len(), "item")
        ));
    }
    Ok(Egress {
        hosts: list.hosts.into_values().collect(),
        notes: notes.into_iter().collect(),
    })
}

/// Adds the hosts that landfall contacts for `lock`, and notes about those that are not known.
fn add_sources(
    list: &mut HostList<'_>,
    notes: &mut BTreeSet<String>,
    lock: &Lock,
    record: &ContactRecord,
) -> Result<(), Failure> {
    for source in sources(lock, list.sessions)?.into_values() {
        let SourceHost {
            url,
            name,
            kind,
            is_requested_by_lock,
            services,
            ..
        } = source;
        let address = host_port(&url);
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let contacted = record.get(host, port);
        let scheme = contacted.map_or(url.scheme(), |contacted| &contacted.scheme);
        // a refused request shows nothing about the hosts that the response would have named
        let known = contacted.filter(|contacted| !contacted.refused);
        let evidence = if known.is_some() {
            HostEvidence::Observed
        } else {
            HostEvidence::Predicted
        };
        list.add(host, port, scheme, evidence, kind.reason(&name))?;
        // Token services and redirect targets are not in the lock. Those that this host named in
        // any earlier run are needed for every lock that needs this host.
        let mut refused = None;
        for named in record.named_by(&address) {
            refused = refused.or(named.refused.then_some(&named.host));
            list.add(
                &named.host,
                named.port,
                &named.scheme,
                HostEvidence::Observed,
                contact_reason(named, &name),
            )?;
        }
        let unknown_because = match (known, refused) {
            (None, _) if contacted.is_some() => "it refused or failed every request".to_owned(),
            (None, _) => "no run with this store has contacted it".to_owned(),
            (Some(_), Some(host)) => format!("{host}, which it named, has not answered yet"),
            (Some(_), None) if is_requested_by_lock => continue,
            // the redirects of blobs become known only when a blob is requested
            (Some(known), None) if known.by.iter().all(|command| requests_no_blobs(command)) => {
                "only commands that request no blobs, such as `lock`, have contacted it".to_owned()
            }
            (Some(_), None) => continue,
        };
        // the command whose first run makes the hosts known: only `lock` requests an index
        let first = match kind {
            SourceKind::Index => "`lock`",
            SourceKind::Registry | SourceKind::Files => "pull",
        };
        let predictable = services
            .iter()
            .filter(|service| !service.content.is_empty());
        for service in predictable.clone() {
            list.predict(service, &name, known.is_some())?;
            notes.extend(service.note.map(|note| format!("{name}: {note}")));
        }
        if services.is_empty() {
            notes.insert(format!(
                "{name}: {unknown_because}: the hosts of its tokens and content become known at \
                 the first {first}, or with --probe"
            ));
        } else if predictable.count() > 0 {
            notes.insert(format!(
                "{name}: {unknown_because}: the hosts of its tokens and content are those that \
                 its operator documents; the first {first}, or --probe, replaces them with \
                 the actual hosts"
            ));
        }
    }
    Ok(())
}

/// The reason why a host that a response named was contacted.
fn contact_reason(named: &Contacted, source: &str) -> String {
    match (named.why.contains("token"), named.why.contains("redirect")) {
        (true, true) => format!("tokens and redirects of {source}"),
        (true, false) => format!("tokens of {source}"),
        (false, true) => format!("redirects of {source}"),
        // foreign layers of manifests, and large files of git servers
        (false, false) => format!("content that {source} names"),
    }
}

struct HostList<'a> {
    hosts: BTreeMap<(String, u16), EgressHost>,
    sessions: &'a RegistrySessions,
}

impl HostList<'_> {
    /// Adds a host that landfall itself contacts.
    fn add(
        &mut self,
        host: &str,
        port: u16,
        scheme: &str,
        known: HostEvidence,
        why: String,
    ) -> Result<(), InvalidHost> {
        self.add_pattern(EgressPattern::exact(host)?, port, scheme, known, why);
        Ok(())
    }

    /// Like [`HostList::add`], for a host that may have a wildcard.
    fn add_pattern(
        &mut self,
        host: EgressPattern,
        port: u16,
        scheme: &str,
        known: HostEvidence,
        why: String,
    ) {
        // one name represents all names of a wildcard
        let name = match &host {
            EgressPattern::Below(below) => format!("x.{below}"),
            EgressPattern::Address(address) if address.is_ipv6() => format!("[{address}]"),
            exact => exact.to_string(),
        };
        let url = Url::parse(&format!("{scheme}://{name}:{port}/")).ok();
        let proxies = self.sessions.transport().proxies();
        let via = url.and_then(|url| Some(proxies.proxy_for(&url)?.address()));
        let row = self.row(host, port, scheme, known);
        row.via = via;
        add_reason(row, why);
    }

    /// Adds the documented hosts of the service `name`. With `has_tokens`, token hosts are left
    /// out: `lock` or `update` contacted the service, so the record has its real token hosts.
    fn predict(
        &mut self,
        service: &KnownService,
        name: &str,
        has_tokens: bool,
    ) -> Result<(), InvalidHost> {
        let tokens = service.tokens.filter(|_| !has_tokens);
        let tokens = tokens.iter().map(|host| ("tokens", host));
        let content = service.content.iter().map(|host| ("content", host));
        for (what, host) in tokens.chain(content) {
            let why = format!("{what} of {name}, see {}", service.source);
            let host = EgressPattern::declared(host)?;
            self.add_pattern(host, 443, "https", HostEvidence::Predicted, why);
        }
        Ok(())
    }

    /// Adds an endpoint of the manifests.
    fn declare(&mut self, endpoint: &Endpoint) -> Result<(), InvalidHost> {
        let scheme = match endpoint.port {
            443 => "https",
            80 => "http",
            _ => "tcp",
        };
        let host = EgressPattern::declared(&endpoint.host)?;
        // every machine needs an endpoint without roles, including the machine that runs landfall
        let is_new = !self.hosts.contains_key(&(host.to_string(), endpoint.port));
        let row = self.row(host, endpoint.port, scheme, HostEvidence::Declared);
        row.from.clone_from(&endpoint.from);
        if !(is_new || row.from.is_empty()) {
            row.from.push(OWN_ROLE.into());
            row.from.sort_unstable();
        }
        // the lock joins the reasons of several manifests with `; `
        endpoint
            .why
            .split("; ")
            .for_each(|why| add_reason(row, why.to_owned()));
        Ok(())
    }

    /// The row of a host. If several sources name the host, the most certain evidence counts.
    fn row(
        &mut self,
        host: EgressPattern,
        port: u16,
        scheme: &str,
        known: HostEvidence,
    ) -> &mut EgressHost {
        let key = (host.to_string(), port);
        let row = self.hosts.entry(key).or_insert_with(|| EgressHost {
            host,
            port,
            scheme: scheme.into(),
            known,
            why: Vec::new(),
            from: Vec::new(),
            via: None,
            reach: None,
            reason: None,
            change: None,
        });
        row.known = row.known.min(known);
        row
    }
}

fn add_reason(row: &mut EgressHost, why: String) {
    if let Err(at) = row.why.binary_search(&why) {
        row.why.insert(at, why);
    }
}

/// Whether a command requests the tags and manifests of images, but not their blobs.
fn requests_no_blobs(command: &str) -> bool {
    matches!(command, "lock" | "update")
}
