//! The API for programs: a [`Client`] is set up once, from a site, options and the environment, and
//! has the operations that need a network. The command line is one of these programs.

mod deliver;
mod lock;
#[cfg(feature = "cli")]
mod patches;
mod pull;
#[cfg(feature = "cli")]
mod refresh;

use landfall_content::archives::SourceArchive;
use landfall_content::bucket::{Bucket, BucketLocation, block_on};
use landfall_content::registry::{
    Keychain, RegistrySessions, certs_d, certs_d_folders, host_rules, proxy_rules,
};
use landfall_content::store::{BucketStore, StoreTimeouts};
use landfall_http::{PrivateTargets, TlsProfile, Transport, TransportConfig};
use landfall_model::config::Site;
use landfall_model::report::{Progress, SilentProgress};
use landfall_model::{Failure, Limits, Shard, TargetRegistry};
use landfall_signature::SignaturePolicy;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use self::deliver::Client;
pub(crate) use self::lock::{LockFileState, PreviousLock};
#[cfg(feature = "cli")]
pub(crate) use self::patches::DeliveredBundles;
pub(crate) use self::pull::BundleUpload;
pub use self::pull::{BundleOptions, PulledBundle};
#[cfg(feature = "cli")]
pub(crate) use self::refresh::{
    RefreshBase, RefreshRequest, Refreshed, RefreshedBundle, missing_items, unnamed_series,
};

/// A function that returns the value of an environment variable.
type Environment = fn(&str) -> Option<String>;

/// Sets up a [`Client`]. By default, it uses the environment and default limits.
pub struct ClientBuilder {
    site: Option<Site>,
    plain_http: Vec<String>,
    limits: Limits,
    environment: Environment,
    progress: Arc<dyn Progress>,
    archives: Vec<PathBuf>,
    lock_folder: PathBuf,
    shard: Shard,
}

impl Default for ClientBuilder {
    fn default() -> ClientBuilder {
        ClientBuilder {
            site: None,
            plain_http: Vec::new(),
            limits: Limits::default(),
            environment: |name| std::env::var(name).ok(),
            progress: Arc::new(SilentProgress),
            archives: Vec::new(),
            lock_folder: ".".into(),
            shard: Shard::default(),
        }
    }
}

impl ClientBuilder {
    /// Uses the registry, proxy, upstreams and credentials of a site.
    #[must_use]
    pub fn site(self, site: Option<Site>) -> ClientBuilder {
        ClientBuilder { site, ..self }
    }

    /// Uses plain HTTP for these hosts, given as `host` or `host:port`. Credentials are sent to
    /// them without encryption.
    #[must_use]
    pub fn plain_http(self, hosts: impl IntoIterator<Item = impl Into<String>>) -> ClientBuilder {
        ClientBuilder {
            plain_http: hosts.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Limits concurrent transfers, attempts and waits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> ClientBuilder {
        ClientBuilder { limits, ..self }
    }

    /// Ignores environment variables, and so the proxies, the auth files and the user's `certs.d`
    /// folder that they name. `/etc/containers/certs.d` and `/etc/docker/certs.d` are still read.
    #[must_use]
    pub fn without_environment(self) -> ClientBuilder {
        ClientBuilder {
            environment: |_| None,
            ..self
        }
    }

    /// Reports progress to `progress`.
    #[must_use]
    pub fn progress(self, progress: Arc<dyn Progress>) -> ClientBuilder {
        ClientBuilder { progress, ..self }
    }

    /// Uses the content of these archives and OCI layouts of other tools before the network.
    #[must_use]
    pub fn archives(self, archives: Vec<PathBuf>) -> ClientBuilder {
        ClientBuilder { archives, ..self }
    }

    /// Sets the folder of the lock, `.` by default. Paths of local content in the lock are relative
    /// to it.
    #[must_use]
    pub fn lock_folder(self, folder: impl Into<PathBuf>) -> ClientBuilder {
        ClientBuilder {
            lock_folder: folder.into(),
            ..self
        }
    }

    /// Processes only this shard of each lock. The limits per upstream host are divided by the
    /// number of shards.
    #[must_use]
    pub fn shard(self, shard: Shard) -> ClientBuilder {
        ClientBuilder { shard, ..self }
    }

    /// Reads the files that the site and the environment name. Sends no request.
    ///
    /// # Errors
    /// Returns an error if a setting, auth file, certificate, proxy or archive cannot be used.
    pub fn build(self) -> Result<Client, Failure> {
        let archives = self.archives.iter();
        let archives = archives
            .map(|path| SourceArchive::open(path))
            .collect::<Result<Arc<[_]>, _>>()?;
        let site = self.site.as_ref();
        let signatures = site.map(SignaturePolicy::of_site).transpose()?;
        let signatures = signatures.unwrap_or_default();
        let keychain = Keychain::load(site, self.environment)?;
        // Connections are opened later, one by one. Without this check, a wrong path of a
        // certificate would be reported only when its host is first contacted.
        self.check_trust(&keychain)?;
        let trust = certs_d(&certs_d_folders(self.environment));
        let hosts = host_rules(site, &self.plain_http, &keychain, trust);
        for (host, _) in hosts.iter().filter(|(_, rule)| rule.tls.skip_verify) {
            self.progress.note(&format!(
                "warning: the certificate of {host} is not checked (skipVerify)"
            ));
        }
        let proxies = proxy_rules(site, self.environment)?;
        let private_targets = PrivateTargets::new(site.map_or(&[], |site| &site.private_targets))?;
        let transport = Transport::new(TransportConfig {
            limits: self.limits,
            shard: self.shard,
            proxies,
            private_targets,
            proxy_ca: self.proxy_ca(),
            hosts,
            progress: self.progress.clone(),
        });
        let sessions =
            RegistrySessions::new(transport, Arc::new(keychain), site, self.plain_hosts())?;
        Ok(Client {
            sessions: Arc::new(sessions),
            limits: self.limits,
            progress: self.progress,
            archives,
            lock_folder: self.lock_folder,
            signatures,
            shard: self.shard,
            imports: Mutex::default(),
        })
    }

    /// The plain HTTP hosts of the options and the site.
    fn plain_hosts(&self) -> Vec<String> {
        let site = self.site.as_ref();
        let registry = site
            .and_then(|site| site.registry.as_ref())
            .filter(|registry| registry.plain_http);
        let registry = registry
            .and_then(|registry| Some(registry.address.parse::<TargetRegistry>().ok()?.registry));
        let upstreams = site.iter().flat_map(|site| &site.upstreams);
        let upstreams = upstreams
            .filter(|(_, upstream)| upstream.plain_http)
            .map(|(host, _)| host.clone());
        self.plain_http
            .iter()
            .cloned()
            .chain(registry)
            .chain(upstreams)
            .collect()
    }

    fn proxy_ca(&self) -> Option<PathBuf> {
        let site = self.site.as_ref()?;
        Some(site.resolve(site.proxy.as_ref()?.ca.as_ref()?))
    }

    /// Reads all certificates and private keys that the site names. If a file cannot be used, the
    /// error contains the setting that names the file.
    fn check_trust(&self, keychain: &Keychain) -> Result<(), Failure> {
        let rules = host_rules(self.site.as_ref(), &[], keychain, BTreeMap::new());
        let proxy = TlsProfile {
            ca: self.proxy_ca().into_iter().collect(),
            ..TlsProfile::default()
        };
        let mut profiles = rules.into_values().map(|rule| rule.tls).chain([proxy]);
        profiles
            .try_for_each(|profile| profile.check())
            .map_err(|error| {
                let key = error
                    .path
                    .as_deref()
                    .and_then(|path| self.site.as_ref()?.trust_key(path));
                let key = key.map(|key| key + ": ").unwrap_or_default();
                Failure::usage(format!("{key}{error}"))
            })
    }
}

/// The failure of a thread that writes a bundle and panicked or was cancelled.
fn stopped(error: tokio::task::JoinError) -> Failure {
    Failure::failed(format!("packing stopped: {error}"))
}

impl Client {
    /// Returns the folder that `location` names in an object store. Sends no request.
    pub(crate) fn bucket(&self, location: &BucketLocation) -> Result<Bucket, Failure> {
        Ok(Bucket::open(location, self.sessions().transport())?)
    }

    /// Opens the store at `location` in an object store.
    pub(crate) fn open_objects(
        &self,
        location: &BucketLocation,
    ) -> Result<Arc<BucketStore>, Failure> {
        let bucket = self.bucket(location)?;
        let longest = Duration::from_secs(self.limits.max_wait_secs);
        let timeouts = StoreTimeouts::new(longest);
        let store = block_on(async move { BucketStore::open(bucket, timeouts).await })?;
        Ok(Arc::new(store))
    }
}
