//! The site's registry in the form that nodes need: address, certificates and credentials.

use crate::platform::{BasicCredentials, RenderRequest};
use crate::rendered_file::RenderedFile;
use landfall_content::registry::site_account;
use landfall_item::LockedImage;
use landfall_model::config::{PathDestinations, Site};
use landfall_model::document::read_text_input;
use landfall_model::{
    Destination, Failure, ImageRef, TargetRegistry, alias_hosts, path_prefix, split_port,
    without_brackets,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

/// The site's registry in the form that nodes need.
pub struct NodeRegistry<'s> {
    /// The host and port, and the prefix of all paths.
    pub target: TargetRegistry,
    /// Whether the registry uses plain HTTP.
    pub plain_http: bool,
    /// The certificates of the registry's certificate authority, in PEM form.
    pub ca: Option<String>,
    /// The certificate with which nodes authenticate.
    pub client: Option<ClientCertificate>,
    /// Whether nodes accept any certificate.
    pub skip_verify: bool,
    /// The site, if the registry is the site's own.
    site: Option<&'s Site>,
    environment: fn(&str) -> Option<String>,
}

/// Returns an auth file of docker and podman with these accounts, each for a registry or a
/// repository in it.
pub(crate) fn auth_file(accounts: &[(String, BasicCredentials)]) -> String {
    let auths: Map<String, Value> = accounts
        .iter()
        .map(|(place, account)| (place.clone(), json!({"auth": account.encoded()})))
        .collect();
    format!("{:#}\n", json!({"auths": auths}))
}

/// A certificate with which nodes authenticate to the registry.
pub struct ClientCertificate {
    /// The certificate in PEM form.
    pub certificate: String,
    /// The private key in PEM form.
    pub key: String,
}

impl<'s> NodeRegistry<'s> {
    /// Returns the registry `target` with the settings of `site`, which apply only if the site's
    /// own registry has the same host and port. `plain` lists the hosts of `--plain-http`. Fails if
    /// a certificate or key cannot be read.
    pub(super) fn of(
        target: &TargetRegistry,
        site: Option<&'s Site>,
        plain: &[String],
        environment: fn(&str) -> Option<String>,
    ) -> Result<NodeRegistry<'s>, Failure> {
        let site = site.filter(|site| {
            let own = site
                .registry
                .as_ref()
                .and_then(|registry| registry.address.parse::<TargetRegistry>().ok());
            own.is_some_and(|own| own.registry == target.registry)
        });
        let settings = site.and_then(|site| Some((site, site.registry.as_ref()?)));
        let mut registry = NodeRegistry {
            target: target.clone(),
            plain_http: names_host(plain, &target.registry),
            ca: None,
            client: None,
            skip_verify: false,
            site,
            environment,
        };
        if let Some((site, settings)) = settings {
            registry.plain_http |= settings.plain_http;
            registry.skip_verify = settings.skip_verify;
            registry.ca = settings
                .ca
                .as_ref()
                .map(|path| read_certificates(site, path))
                .transpose()?;
            registry.client = match (&settings.client_cert, &settings.client_key) {
                (Some(certificate), Some(key)) => Some(ClientCertificate {
                    certificate: read_certificates(site, certificate)?,
                    key: read_site_file(site, key)?,
                }),
                _ => None,
            };
        }
        Ok(registry)
    }

    /// Returns the scheme by which nodes reach the registry: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.plain_http { "http" } else { "https" }
    }

    /// Whether nodes do not verify the registry: it has plain HTTP, or they accept any certificate.
    pub fn is_insecure(&self) -> bool {
        self.plain_http || self.skip_verify
    }

    /// Whether the site has any credentials for the registry or for paths of it.
    pub fn has_any_account(&self) -> bool {
        self.has_account() || self.has_accounts_of_paths()
    }

    /// Returns the URL of the registry without a path: `scheme://host[:port]`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.target.registry)
    }

    /// Returns a note if the registry is an IP address or `localhost` and its scheme is not
    /// configured: landfall probes such a registry for plain HTTP, but nodes use only https.
    pub(super) fn scheme_note(&self, takes_plain_http: bool) -> Option<String> {
        let (host, _) = split_port(&self.target.registry);
        let is_address = host == "localhost" || without_brackets(host).parse::<IpAddr>().is_ok();
        let is_configured =
            self.plain_http || self.ca.is_some() || self.client.is_some() || self.skip_verify;
        if !is_address || is_configured {
            return None;
        }
        let note = format!(
            "nodes connect to {} over https and must trust its certificate",
            self.target.registry
        );
        Some(if takes_plain_http {
            note + "; if it speaks plain http, set registry.plainHTTP: true in the site"
        } else {
            note
        })
    }

    /// Fails if the registry is an IPv6 address, for `programs` that read references by
    /// containers/image: no domain in its grammar has brackets (containers/image#1004).
    pub(super) fn refuse_ipv6(&self, programs: &str) -> Result<(), Failure> {
        let registry = &self.target.registry;
        if !registry.starts_with('[') {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "{programs} cannot read names of images at an IPv6 address, such as {registry}/app; \
             give the registry a host name, and write that name as registry.address"
        )))
    }

    /// Returns a note if the site has a client certificate, for a `program` without a setting for
    /// it.
    pub(super) fn client_note(&self, program: &str) -> Option<String> {
        let is_used = self.client.is_some() && !self.plain_http;
        is_used.then(|| {
            format!(
                "{program} has no setting for a client certificate, and connects to the registry \
                 without that of the site"
            )
        })
    }

    /// Returns the certificates and the private key as files in `folder`: `ca.crt`, `client.cert`,
    /// `client.key`.
    pub fn trust(&self, folder: &str) -> Vec<RenderedFile> {
        let file =
            |name: &str, text: &String| RenderedFile::new(format!("{folder}/{name}"), text.clone());
        let mut files: Vec<RenderedFile> = self.ca.iter().map(|ca| file("ca.crt", ca)).collect();
        if let Some(ClientCertificate { certificate, key }) = &self.client {
            files.push(file("client.cert", certificate));
            files.push(file("client.key", key).secret(true));
        }
        files
    }

    /// Returns an auth file of docker and podman with these credentials.
    pub(crate) fn auth_file(&self, credentials: &BasicCredentials) -> String {
        auth_file(&[(self.target.registry.clone(), credentials.clone())])
    }

    /// Whether the site has credentials for the registry.
    pub fn has_account(&self) -> bool {
        let registry = self.site.and_then(|site| site.registry.as_ref());
        registry.is_some_and(|registry| registry.credentials.is_some())
    }

    /// Whether the site has separate credentials for some paths.
    pub fn has_accounts_of_paths(&self) -> bool {
        let registry = self.site.and_then(|site| site.registry.as_ref());
        let mut paths = registry.iter().flat_map(|registry| registry.paths.values());
        paths.any(|destinations| match destinations {
            PathDestinations::Entry(entry) => entry.credentials.is_some(),
            _ => false,
        })
    }

    /// Reads the credentials of the site for the registry as a whole, or for the path below which
    /// it has all images.
    pub(crate) fn own_account(&self) -> Result<Option<BasicCredentials>, Failure> {
        self.account(&self.target.prefix)
    }

    /// Reads the credentials of the site for `repository`.
    ///
    /// Fails if they cannot be read, or are a token.
    pub(crate) fn account(&self, repository: &str) -> Result<Option<BasicCredentials>, Failure> {
        let Some(site) = self.site else {
            return Ok(None);
        };
        let account = site_account(site, self.environment, &self.target.registry, repository)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(account.map(BasicCredentials::from))
    }
}

/// Whether one of `hosts`, the values of `--plain-http`, is the host of `address`, for all ports or
/// for its port.
pub(super) fn names_host(hosts: &[String], address: &str) -> bool {
    hosts.iter().any(|host| {
        let rest = address.strip_prefix(host.as_str());
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(':') && !rest.contains(']')))
    })
}

/// A repository of locked images whose account is not that of the registry, and the account, or the
/// error if it cannot be read.
type SeparateAccount = (String, Result<BasicCredentials, Failure>);

/// Returns an auth file for programs that select the account by the repository. The file has the
/// account of the registry and the accounts of repositories with separate credentials. Returns
/// `None` if there are no accounts.
pub(super) fn auth_file_of_repositories(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, Failure> {
    let host = registry.target.registry.as_str();
    let mut accounts = Vec::new();
    if let Some(account) = registry.own_account()? {
        accounts.push((host.to_owned(), account));
    }
    for (repository, account) in separate_accounts(request, registry)? {
        accounts.push((format!("{host}/{repository}"), account?));
    }
    Ok((!accounts.is_empty()).then(|| auth_file(&accounts)))
}

/// Returns a note about the repositories with separate credentials, for platforms that have at most
/// one account for the registry.
pub(super) fn separate_accounts_note(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Option<String>, Failure> {
    // an account that cannot be read here is another one as well
    let separate = separate_accounts(request, registry)?;
    let Some((first, _)) = separate.first() else {
        return Ok(None);
    };
    let more = and_more(separate.len() - 1);
    Ok(Some(if registry.has_account() {
        format!(
            "nodes have one account for the registry; {first}{more} needs another account; allow \
             the account of the registry to read it too, or give the pods that use it an \
             imagePullSecret"
        )
    } else {
        format!(
            "nodes have no account for the registry; {first}{more} needs one; give the pods that \
             use it an imagePullSecret"
        )
    }))
}

/// The number of repositories besides the first, after its name.
pub(super) fn and_more(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(" (and {others} more)"),
    }
}

/// Returns the repositories with accounts of their own, sorted.
fn separate_accounts(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<Vec<SeparateAccount>, Failure> {
    if !registry.has_accounts_of_paths() {
        return Ok(Vec::new());
    }
    let usual = registry.own_account()?;
    let repositories: BTreeSet<String> = request
        .images()
        .flat_map(|image| request.mapping.destinations(image))
        .map(|destination| destination.repository)
        .collect();
    let accounts = repositories.into_iter().filter_map(|repository| {
        let account = registry.account(&repository).transpose()?;
        let is_usual = account
            .as_ref()
            .is_ok_and(|account| Some(account) == usual.as_ref());
        (!is_usual).then_some((repository, account))
    });
    Ok(accounts.collect())
}

// Certificates and private keys in PEM form for rendered files.

/// Returns the certificates in the file `path` of `site`. A private key in the file is omitted, so
/// that it cannot get into a rendered file.
///
/// Fails if the file cannot be read or contains no certificate. The message names the setting of
/// the site that refers to the file.
pub(super) fn read_certificates(site: &Site, path: &Path) -> Result<String, Failure> {
    let text = read_site_file(site, path)?;
    let found = only_certificates(&text);
    if found.is_empty() {
        let shown = site.resolve(path);
        let error = format!("{} has no certificate in PEM form", shown.display());
        return Err(with_site_key(site, path, &error));
    }
    Ok(found)
}

/// Reads the file `path` of `site`. Error messages name the setting of the site that refers to the
/// file.
pub(super) fn read_site_file(site: &Site, path: &Path) -> Result<String, Failure> {
    read_input(&site.resolve(path)).map_err(|error| with_site_key(site, path, &error.message))
}

/// Prefixes the message of `error` with the setting of the site that refers to the file.
fn with_site_key(site: &Site, path: &Path, error: &str) -> Failure {
    let key = site
        .trust_key(&site.resolve(path))
        .unwrap_or_else(|| site.key("a path"));
    Failure::usage(format!("{key}: {error}"))
}

pub(super) fn read_input(path: &Path) -> Result<String, Failure> {
    read_text_input(path).map_err(|error| Failure::read(path, error))
}

/// Splits a text that contains only certificates, for systems that require a file per certificate.
pub(super) fn split_certificates(certificates: &str) -> impl Iterator<Item = String> {
    let blocks = certificates.split_inclusive(END).map(str::trim_start);
    blocks
        .filter(|block| !block.is_empty())
        .map(|block| format!("{block}\n"))
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

const END: &str = "-----END CERTIFICATE-----";

fn only_certificates(text: &str) -> String {
    let blocks = text
        .split(BEGIN)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(END)?.0));
    blocks
        .map(|block| format!("{BEGIN}{}{END}\n", block.replace('\r', "")))
        .collect()
}

// Maps every upstream host to its path at the registry, with the repositories that have another
// path, for clients that can rewrite any name.

/// The paths of the repositories of an upstream host at the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HostPaths {
    /// The path before the repositories of the host; may be empty.
    pub prefix: String,
    /// The locked repositories below that path.
    pub usual: BTreeSet<String>,
    /// The locked repositories with another path, each with its full path.
    pub others: BTreeSet<(String, String)>,
}

impl HostPaths {
    /// Whether every repository has the same name at the registry as upstream.
    pub(super) fn is_plain(&self) -> bool {
        self.prefix.is_empty() && self.others.is_empty()
    }
}

/// Returns the paths of the hosts in the lock and of their aliases. If a repository is locked under
/// a host and under its alias, each name keeps its own path. The host of the registry itself has no
/// common path, because most names there are those of delivered images.
pub(super) fn host_paths(request: &RenderRequest<'_>) -> BTreeMap<String, HostPaths> {
    let own = &request.mapping.target().registry;
    let mut hosts: BTreeMap<String, HostPaths> = BTreeMap::new();
    let mut add = |host: &str, image: &ImageRef| {
        // one destination is enough: the client can be configured with any of the destinations
        let Some(destination) = request.mapping.destinations(image).into_iter().next() else {
            return;
        };
        let prefix = if host == own {
            String::new()
        } else {
            usual_path(request, host)
        };
        let usual = join_path(&prefix, &image.repository);
        let paths = hosts.entry(host.to_owned()).or_insert_with(|| HostPaths {
            prefix,
            ..HostPaths::default()
        });
        if destination.repository == usual {
            paths.usual.insert(image.repository.clone());
        } else {
            paths
                .others
                .insert((image.repository.clone(), destination.repository));
        }
    };
    let named: BTreeSet<String> = request.images().map(ImageRef::name).collect();
    for image in request.images() {
        add(&image.registry, image);
        for host in alias_hosts(&image.registry) {
            if !named.contains(&format!("{host}/{}", image.repository)) {
                add(host, image);
            }
        }
    }
    hosts
}

/// Returns the location of each host at the registry, except the registry itself, and the location
/// of each repository in [`HostPaths::others`].
pub(super) fn registry_locations(request: &RenderRequest<'_>) -> Vec<(String, String)> {
    let registry = &request.mapping.target().registry;
    let mut locations = Vec::new();
    for (host, paths) in host_paths(request) {
        if host != *registry {
            locations.push((host.clone(), join_path(registry, &paths.prefix)));
        }
        let others = paths.others.iter();
        locations.extend(
            others.map(|(repository, path)| {
                (format!("{host}/{repository}"), join_path(registry, path))
            }),
        );
    }
    locations
}

/// Joins two parts of a path, one of which may be empty.
pub(super) fn join_path(first: &str, second: &str) -> String {
    match (first, second) {
        ("", one) | (one, "") => one.to_owned(),
        (first, second) => format!("{first}/{second}"),
    }
}

/// A path of the registry that mirrors an upstream host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostMirror {
    /// The path before every repository of the host; may be empty.
    pub prefix: String,
    /// The repository by which the site's credentials for the mirror are selected: the repository
    /// of one image below the prefix, or the prefix itself.
    pub repository: String,
}

/// Returns the mirrors of each upstream host in the lock, of each alias of these hosts, and of the
/// registry itself. If upstream must not be used, the entry `_default` has the mirror of all other
/// hosts. If a host has several mirrors, clients try them in the order of the list.
///
/// Fails if an earlier mirror has a different image with the same name, because clients would pull
/// that image.
pub(super) fn host_mirrors(
    request: &RenderRequest<'_>,
) -> Result<BTreeMap<String, Vec<HostMirror>>, Failure> {
    let target = request.mapping.target();
    let plain = |prefix: &str| HostMirror {
        prefix: prefix.into(),
        repository: prefix.into(),
    };
    let mut hosts: BTreeMap<String, Vec<HostMirror>> = BTreeMap::new();
    for image in request.images() {
        let aliases = alias_hosts(&image.registry).map(str::to_owned);
        // pods may name an image by any alias of its host, such as k8s.gcr.io for registry.k8s.io
        for host in std::iter::once(image.registry.clone()).chain(aliases) {
            let usual = usual_path(request, &host);
            let mirrors = hosts.entry(host).or_default();
            add_mirror(mirrors, image, &request.mapping.destinations(image), &usual);
        }
    }
    for (host, mirrors) in &mut hosts {
        // the mirror at the usual path of a host is tried first, because it has most of the host's
        // images; then the mirrors at the usual paths of the host's aliases
        let mut usual = vec![usual_path(request, host)];
        usual.extend(alias_hosts(host).map(|alias| usual_path(request, alias)));
        mirrors.sort_by_key(|mirror| {
            let position = usual.iter().position(|path| *path == mirror.prefix);
            position.unwrap_or(usual.len())
        });
        check_unambiguous(host, mirrors, request)?;
    }
    // names that are already rewritten point at the registry itself
    hosts.insert(target.registry.clone(), vec![plain("")]);
    if !request.upstream_fallback() {
        hosts.insert("_default".into(), vec![plain(&target.prefix)]);
    }
    Ok(hosts)
}

/// The path at the registry below which the repositories of `host` are, unless the site gives them
/// other paths.
pub(super) fn usual_path(request: &RenderRequest<'_>, host: &str) -> String {
    let path = request.mapping.host_path(host);
    request.mapping.own_destination(&path).repository
}

/// Adds a mirror that has `image`, preferably the mirror at the `usual` path. Adds nothing if one
/// of `mirrors` already has the image.
fn add_mirror(
    mirrors: &mut Vec<HostMirror>,
    image: &ImageRef,
    destinations: &[Destination],
    usual: &str,
) {
    // clients only add a prefix, so they cannot reach a destination with another name
    let prefixes = || {
        destinations
            .iter()
            .filter_map(|destination| path_prefix(&destination.repository, &image.repository))
    };
    if prefixes().any(|prefix| mirrors.iter().any(|mirror| mirror.prefix == prefix)) {
        return;
    }
    if let Some(prefix) = prefixes()
        .find(|prefix| *prefix == usual)
        .or_else(|| prefixes().next())
    {
        mirrors.push(HostMirror {
            prefix: prefix.into(),
            repository: join_path(prefix, &image.repository),
        });
    }
}

/// For each image of `host` and of its aliases, fails if the first mirror with the image's name has
/// a different image under this name.
fn check_unambiguous(
    host: &str,
    mirrors: &[HostMirror],
    request: &RenderRequest<'_>,
) -> Result<(), Failure> {
    if mirrors.len() < 2 {
        return Ok(());
    }
    let mut by_name: BTreeMap<String, (&ImageRef, &landfall_model::Digest)> = BTreeMap::new();
    // an image without a tag is pulled by its digest, which no other image has
    for image in &request.lock.images {
        let Some(tag) = image.name.tag_or_latest() else {
            continue;
        };
        for destination in request.mapping.destinations(&image.name) {
            by_name.insert(
                format!("{}:{tag}", destination.repository),
                (&image.name, &image.digest),
            );
        }
    }
    let is_own = |image: &&LockedImage| image.name.registry == host;
    let own: BTreeSet<(&str, Option<&str>)> = request
        .lock
        .images
        .iter()
        .filter(is_own)
        .map(|image| (&*image.name.repository, image.name.tag_or_latest()))
        .collect();
    let by_alias = request.lock.images.iter().filter(|image| {
        let ImageRef {
            registry,
            repository,
            ..
        } = &image.name;
        // if a name is locked under both hosts, each host has its own image
        let is_locked = own.contains(&(&**repository, image.name.tag_or_latest()));
        alias_hosts(registry).any(|alias| alias == host) && !is_locked
    });
    for image in request.lock.images.iter().filter(is_own).chain(by_alias) {
        let Some(tag) = image.name.tag_or_latest() else {
            continue;
        };
        // the names in the order in which a client requests them
        let mut requested = mirrors.iter().map(|mirror| {
            let repository = join_path(&mirror.prefix, &image.name.repository);
            format!("{repository}:{tag}")
        });
        let first = requested.find_map(|name| Some((name.clone(), *by_name.get(&name)?)));
        if let Some((name, (other, digest))) = first
            && *digest != image.digest
        {
            return Err(Failure::refused(format!(
                "{}{} would be pulled from {name}, which is {other}; give {other} its own path in \
                 the site, under registry.paths",
                image.name,
                if image.name.registry == host {
                    String::new()
                } else {
                    format!(", requested from {host},")
                }
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_and_other_text_are_left_out() {
        let key = "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n";
        let one = format!("{BEGIN}\nabc\n{END}\n");
        assert_eq!(
            only_certificates(&format!("CA of x\n{one}{key}{one}")),
            format!("{one}{one}")
        );
        assert_eq!(only_certificates(key), "");
        assert_eq!(
            split_certificates(&format!("{one}{one}")).collect::<Vec<_>>(),
            [one.clone(), one]
        );
    }
}
