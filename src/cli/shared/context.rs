//! The context of every verb: the global options, the site, limits and progress.

use super::command_log::{CommandLog, Invocation, RecordedInputs};
use super::interrupt::Interrupts;
use super::page_recorder::PageRecorder;
use super::progress::progress;
use super::{CliError, GlobalFlags, OutputMode, VerbOutcome, input_file};
use crate::client::{Client, ClientBuilder};
use landfall_content::parent_folder;
use landfall_content::registry::RegistrySessions;
use landfall_item::lockfile::Lock;
use landfall_item::manifest::MergedManifest;
use landfall_model::config::Site;
use landfall_model::report::{Progress, TransferSide, command_word};
use landfall_model::{
    DestinationMap, Digest, Limits, PlatformRequest, Shard, TargetRegistry, locked,
};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Runs `work` on a thread for blocking work, so that Ctrl-C is handled meanwhile. Fails if `work`
/// panics; the message begins with `what`.
pub(crate) async fn run_blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| CliError::failed(format!("{what} stopped: {error}")))
}

/// The context of every verb.
pub(crate) struct Context {
    pub global: GlobalFlags,
    pub site: Option<Site>,
    /// The limits, with the global options applied.
    pub limits: Limits,
    pub progress: Arc<dyn Progress>,
    /// Records the parts of an HTML page that are not in the report.
    pub page: Arc<PageRecorder>,
    pub interrupts: Interrupts,
    /// The files that the verb reads, for the evidence log.
    pub inputs: Arc<RecordedInputs>,
    sessions: Arc<Mutex<ClientSessions>>,
}

/// The sessions of the clients of a verb, from which its report gets the contacted hosts.
#[derive(Default)]
pub(crate) struct ClientSessions {
    all: Vec<Arc<RegistrySessions>>,
    /// The sessions of additional clients: the report of the verb lacks their hosts.
    additional: Vec<Arc<RegistrySessions>>,
}

impl ClientSessions {
    /// Adds to the report of a verb the hosts that additional clients contacted. If the verb failed
    /// or was interrupted before it had a report, adds the hosts of all clients.
    pub(crate) fn add_hosts(&self, result: &mut Result<VerbOutcome, CliError>) {
        let (report, added) = match result {
            Ok(outcome) => (&mut outcome.report, &self.additional),
            Err(failure) if failure.report.hosts.is_empty() => (&mut *failure.report, &self.all),
            Err(failure) => (&mut *failure.report, &self.additional),
        };
        for sessions in added {
            report.add_hosts(sessions.transport().ledger().hosts());
        }
    }
}

impl Context {
    /// Reads the site and applies the global options.
    pub(crate) fn new(global: GlobalFlags) -> Result<Context, CliError> {
        let site = global.site.as_deref().map(input_file::site).transpose()?;
        let mut limits = Limits {
            jobs: global.jobs,
            max_wait_secs: global.max_wait,
            ..Limits::default()
        };
        // Without this, --jobs above the default would have no effect for a lock with one registry.
        limits.per_host = limits.per_host.max(global.jobs);
        limits.idle = Duration::from_secs(global.idle);
        // Without --first-byte, the timeout is longer through a proxy. The flag sets both timeouts.
        if let Some(seconds) = global.first_byte {
            limits.first_byte = Duration::from_secs(seconds);
            limits.first_byte_proxied = limits.first_byte;
        }
        let inputs = RecordedInputs::default();
        if let Some(site) = &site
            && let Some(digest) = &site.digest
        {
            inputs.add("site", &site.file, digest);
        }
        let page = Arc::new(PageRecorder::new(&global));
        let progress = page.watch(progress(global.progress));
        Ok(Context {
            global,
            site,
            limits,
            progress,
            page,
            interrupts: Interrupts::default(),
            inputs: Arc::new(inputs),
            sessions: Arc::default(),
        })
    }

    /// Starts to record the verb in the log of `--log` or the site; `None` if no log is configured,
    /// or the verb is not recorded.
    pub(crate) fn begin_log(
        &self,
        invocation: &Invocation,
    ) -> Result<Option<CommandLog>, CliError> {
        match self.log_path() {
            Some(path) => CommandLog::begin(path, invocation, &self.inputs, &*self.progress),
            None => Ok(None),
        }
    }

    /// The evidence log of `--log` or the site.
    pub(crate) fn log_path(&self) -> Option<PathBuf> {
        let of_site = || {
            let site = self.site.as_ref()?;
            Some(site.resolve(site.log.as_ref()?))
        };
        self.global.log.clone().or_else(of_site)
    }

    /// Reads a lock, and records it as an input.
    pub(crate) fn read_lock(&self, path: &Path) -> Result<Lock, CliError> {
        let (lock, text) = input_file::lock_and_text(path)?;
        self.inputs
            .add("lock", path, &Digest::sha256(text.as_bytes()));
        Ok(lock)
    }

    /// Reads manifests and plain lists, and records the files as inputs. Each entry must name its
    /// versions.
    pub(crate) fn read_manifests(
        &self,
        paths: &[PathBuf],
        platforms: &[PlatformRequest],
    ) -> Result<MergedManifest, CliError> {
        let merged = self.read_manifests_to_update(paths, platforms)?;
        merged.check_versions()?;
        Ok(merged)
    }

    /// Like [`Self::read_manifests`], but entries with `select` may have no versions yet.
    pub(crate) fn read_manifests_to_update(
        &self,
        paths: &[PathBuf],
        platforms: &[PlatformRequest],
    ) -> Result<MergedManifest, CliError> {
        let merged = input_file::manifests(paths, platforms)?;
        self.note_unused_site(paths);
        for (path, digest) in input_file::manifest_digests(paths)? {
            self.inputs.add("manifest", &path, &digest);
        }
        Ok(merged)
    }

    /// Notes that no site is named, although there is a `site.yaml` beside one of `paths`.
    pub(crate) fn note_unused_site(&self, paths: &[PathBuf]) {
        if self.site.is_none()
            && let Some(site) = input_file::site_beside(paths)
        {
            self.progress.note(&format!(
                "{site} is not used; add --site {}",
                command_word(&site),
            ));
        }
    }

    /// Records a file as an input, without returning its content.
    pub(crate) fn record_input(&self, role: &str, path: &Path) -> Result<(), CliError> {
        self.inputs.add(role, path, &input_file::digest(path)?);
        Ok(())
    }

    /// The mapping to `--to`, or to `registry.address` of the site if `--to` is omitted.
    pub(crate) fn mapping(&self, to: Option<&TargetRegistry>) -> Result<DestinationMap, CliError> {
        let target = match to {
            Some(target) => target.clone(),
            None => self.site_target()?.ok_or_else(|| {
                let site = input_file::site_beside(&[PathBuf::from("site.yaml")]);
                let site = site.filter(|_| self.site.is_none());
                let site = site.map_or("--site FILE with registry.address".into(), |site| {
                    format!("--site {}", command_word(&site))
                });
                CliError::usage("no destination registry is named")
                    .with_help(format!("add --to HOST[:PORT][/PREFIX], or {site}"))
            })?,
        };
        Ok(landfall_model::config::destination_map(
            target,
            self.site.as_ref(),
        ))
    }

    /// Whether the site names the signers of bundles.
    pub(crate) fn has_signers(&self) -> bool {
        let signers = self.site.as_ref().and_then(|site| site.signers.as_ref());
        signers.is_some()
    }

    /// The receipt that the site names.
    pub(crate) fn site_receipt(&self) -> Option<PathBuf> {
        let site = self.site.as_ref()?;
        Some(site.resolve(site.receipt.as_ref()?))
    }

    /// The `registry.address` of the site.
    pub(crate) fn site_target(&self) -> Result<Option<TargetRegistry>, CliError> {
        let Some(registry) = self.site.as_ref().and_then(|site| site.registry.as_ref()) else {
            return Ok(None);
        };
        let target = registry.address.parse();
        target
            .map(Some)
            .map_err(|error| CliError::usage(format!("registry.address of the site: {error}")))
    }

    /// A client, set up from options, site and environment.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        self.client_with_limits(self.limits)
    }

    /// Like [`Context::client`], for the file `lock` or one shard of it. The content of `archives`,
    /// and local content next to the lock, is used before the network.
    pub(crate) fn client_for_lock(
        &self,
        lock: &Path,
        shard: Shard,
        archives: &[PathBuf],
    ) -> Result<Client, CliError> {
        self.build_client(|builder| {
            let builder = builder.lock_folder(parent_folder(lock));
            builder.archives(archives.into()).shard(shard)
        })
    }

    /// Like [`Context::client`], with other limits.
    pub(crate) fn client_with_limits(&self, limits: Limits) -> Result<Client, CliError> {
        self.build_client(|builder| builder.limits(limits))
    }

    /// An additional client, for object stores that a verb opens before its own client, or without
    /// one. The hosts that this client contacts are added to the report of the verb by
    /// [`Context::add_hosts`].
    pub(crate) fn additional_client(&self, limits: Limits) -> Result<Client, CliError> {
        let client = self.client_with_limits(limits)?;
        self.sessions().additional.push(client.shared_sessions());
        Ok(client)
    }

    /// An additional client with the settings of `site` instead of those of the context's site.
    pub(crate) fn client_of_site(&self, site: Site) -> Result<Client, CliError> {
        let client = self.build_client(|builder| builder.site(Some(site)))?;
        self.sessions().additional.push(client.shared_sessions());
        Ok(client)
    }

    fn sessions(&self) -> MutexGuard<'_, ClientSessions> {
        locked(&self.sessions)
    }

    /// The sessions of the clients so far and of later ones.
    pub(crate) fn shared_sessions(&self) -> Arc<Mutex<ClientSessions>> {
        self.sessions.clone()
    }

    /// Adds to the report of a verb the hosts that the report lacks.
    pub(crate) fn add_hosts(&self, result: &mut Result<VerbOutcome, CliError>) {
        self.sessions().add_hosts(result);
    }

    fn build_client(
        &self,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, CliError> {
        let builder = ClientBuilder::default()
            .site(self.site.clone())
            .plain_http(&self.global.plain_http);
        let builder = builder.limits(self.limits).progress(self.progress.clone());
        let client = configure(builder).build()?;
        self.sessions().all.push(client.shared_sessions());
        Ok(client)
    }

    /// Whether the report is printed as JSON or written to a file. Otherwise verbs do not collect
    /// data that only the report contains.
    pub(crate) fn has_document(&self) -> bool {
        self.global.output == OutputMode::Json || self.global.report.is_some()
    }

    /// Runs `work` on a runtime of its own. Ctrl-C drops `work`, so that its guards remove
    /// temporary files and abort uploads before the process ends.
    #[allow(clippy::unused_self, reason = "a verb runs within its context")]
    pub(crate) fn run<F>(&self, work: F) -> Result<VerbOutcome, CliError>
    where
        F: Future<Output = Result<VerbOutcome, CliError>>,
    {
        let runtime = self.runtime()?;
        // The guards of `work` have one second to clean up, then the process ends.
        let _guard = self.interrupts.take_over(Duration::from_secs(1));
        let result = runtime.block_on(async {
            tokio::select! {
                result = work => result,
                _ = tokio::signal::ctrl_c() => Err(CliError::interrupted()),
            }
        });
        // Dropping a runtime waits for blocking reads, which may take long on a network disk.
        runtime.shutdown_background();
        result
    }

    /// A runtime for a verb that handles Ctrl-C itself.
    #[allow(clippy::unused_self, reason = "a verb runs within its context")]
    pub(crate) fn runtime(&self) -> Result<tokio::runtime::Runtime, CliError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.map_err(|error| {
            CliError::failed(format!("cannot start: {error}")).on(TransferSide::Input)
        })
    }
}
