//! What every verb starts from: the global flags, the site, limits and progress.

use super::interrupt::Interrupts;
use super::progress::progress;
use super::shown::Shown;
use crate::cli::shared::{Exit, Failure, Global, Outcome, OutputMode, input_file};
use crate::client::{Client, ClientBuilder};
use landfall_content::registry::Sessions;
use landfall_model::Limits;
use landfall_model::config::Site;
use landfall_model::report::{Progress, TransferSide};
use landfall_model::{DestinationMap, Shard, TargetRegistry, is_repository};
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What every verb starts from.
pub(crate) struct Context {
    /// The flags that every verb takes.
    pub global: Global,
    /// The site, where one is named.
    pub site: Option<Site>,
    /// Bounds, with the flags applied.
    pub limits: Limits,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    /// What an HTML report shows beside the report.
    pub shown: Arc<Shown>,
    /// Who ends the command at Ctrl-C.
    pub interrupts: Interrupts,
    /// The sessions of clients beside the verb's own.
    beside: Mutex<Vec<Arc<Sessions>>>,
}

impl Context {
    /// Reads the site and applies the flags.
    ///
    /// # Errors
    /// When the site cannot be read (exit 2).
    pub(crate) fn new(mut global: Global) -> Result<Context, Failure> {
        global
            .plain_http
            .iter_mut()
            .for_each(|host| host.make_ascii_lowercase());
        let site = global.site.as_deref().map(input_file::site).transpose()?;
        let mut limits = Limits {
            jobs: global.jobs,
            max_wait_secs: global.max_wait,
            ..Limits::default()
        };
        limits.per_host = limits.per_host.max(global.jobs);
        limits.idle = Duration::from_secs(global.idle);
        if let Some(seconds) = global.first_byte {
            limits.first_byte = Duration::from_secs(seconds);
            limits.first_byte_proxied = limits.first_byte;
        }
        let shown = Arc::new(Shown::new(&global));
        let progress = shown.watch(progress(global.progress));
        Ok(Context {
            global,
            site,
            limits,
            progress,
            shown,
            interrupts: Interrupts::default(),
            beside: Mutex::default(),
        })
    }

    /// The mapping to `--to`, or to the site's `registry.address` where `--to` is left out.
    ///
    /// # Errors
    /// When neither is given (exit 2).
    pub(crate) fn mapping(&self, to: Option<&TargetRegistry>) -> Result<DestinationMap, Failure> {
        let target = match to {
            Some(target) => target.clone(),
            None => self.site_target()?.ok_or_else(|| {
                Failure::usage(
                    "where to? name a registry with --to HOST[:PORT][/PREFIX], or a site file with registry.address",
                )
            })?,
        };
        let paths = self
            .site
            .iter()
            .filter_map(|site| site.registry.as_ref())
            .flat_map(|registry| &registry.paths);
        for (prefix, to) in paths {
            if let Some(bad) = to
                .paths()
                .iter()
                .find(|path| !is_repository(path.trim_matches('/')))
            {
                return Err(Failure::usage(format!(
                    "registry.paths of the site: '{prefix}' goes to '{bad}', which no repository can be called: lower-case \
                     letters and digits, single separators . _ __ - between them, and / between parts"
                )));
            }
        }
        Ok(landfall_model::config::mapping(target, self.site.as_ref()))
    }

    /// The site's receipt, where it names one.
    pub(crate) fn site_receipt(&self) -> Option<PathBuf> {
        let site = self.site.as_ref()?;
        Some(site.resolve(site.receipt.as_ref()?))
    }

    /// The site's `registry.address`, where there is one.
    ///
    /// # Errors
    /// When it is no registry (exit 2).
    pub(crate) fn site_target(&self) -> Result<Option<TargetRegistry>, Failure> {
        let address = self
            .site
            .as_ref()
            .and_then(|site| site.registry.as_ref())
            .map(|r| &r.address);
        let wrong = |error| Failure::usage(format!("registry.address of the site: {error}"));
        address
            .map(|address| address.parse().map_err(wrong))
            .transpose()
    }

    /// A client, by flags, site and environment.
    ///
    /// # Errors
    /// A setting, an auth file, a certificate or a proxy that cannot be used (exit 2).
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_with(self.limits)
    }

    /// As [`Context::client`], with archives that are asked before the network.
    ///
    /// # Errors
    /// As there; an archive that cannot be read (exit 2).
    pub(crate) fn client_from(&self, archives: &[PathBuf]) -> Result<Client, Failure> {
        self.built(|builder| builder.archives(archives.into()))
    }

    /// As [`Context::client_from`], of one of several runners.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn client_of(&self, shard: Shard, archives: &[PathBuf]) -> Result<Client, Failure> {
        self.built(|builder| builder.archives(archives.into()).shard(shard))
    }

    /// As [`Context::client`], with other bounds.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn client_with(&self, limits: Limits) -> Result<Client, Failure> {
        self.built(|builder| builder.limits(limits))
    }

    /// A client beside the one of the verb, for object stores that are opened before it or without
    /// one. The hosts that it contacts are in the verb's report: see [`Context::add_hosts`].
    ///
    /// # Errors
    /// As [`Context::client`].
    pub(crate) fn client_beside(&self, limits: Limits) -> Result<Client, Failure> {
        let client = self.client_with(limits)?;
        self.beside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(client.shared_sessions());
        Ok(client)
    }

    /// Adds to the report of a verb which hosts its clients beside have contacted.
    pub(crate) fn add_hosts(&self, result: &mut Result<Outcome, Failure>) {
        let report = match result {
            Ok(outcome) => &mut outcome.report,
            Err(failure) => &mut *failure.report,
        };
        for sessions in self
            .beside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            report.add_hosts(sessions.transport().ledger().hosts());
        }
    }

    fn built(&self, more: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Result<Client, Failure> {
        let builder = ClientBuilder::default()
            .site(self.site.clone())
            .plain_http(&self.global.plain_http);
        let client = more(builder.limits(self.limits).progress(self.progress.clone())).build();
        client.map_err(Failure::from)
    }

    /// Whether the JSON document is asked for: what only it holds need not be made else.
    pub(crate) fn has_document(&self) -> bool {
        self.global.output == OutputMode::Json || self.global.report.is_some()
    }

    /// Runs `work` on a runtime of its own; Ctrl-C drops it, so that it leaves nothing temporary
    /// behind.
    ///
    /// # Errors
    /// Those of `work`; an interruption.
    #[allow(clippy::unused_self, reason = "a verb runs within its context")]
    pub(crate) fn run<F>(&self, work: F) -> Result<Outcome, Failure>
    where
        F: Future<Output = Result<Outcome, Failure>>,
    {
        let runtime = self.runtime()?;
        let _taken_over = self.interrupts.take_over(Duration::from_secs(1));
        let result = runtime.block_on(async {
            tokio::select! {
                result = work => result,
                _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
            }
        });
        // blocking reads in flight are not waited for
        runtime.shutdown_background();
        result
    }

    /// A runtime for a verb that ends otherwise than by [`Context::run`].
    ///
    /// # Errors
    /// When the system refuses the threads.
    #[allow(clippy::unused_self, reason = "a verb runs within its context")]
    pub(crate) fn runtime(&self) -> Result<tokio::runtime::Runtime, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot start: {error}")).on(TransferSide::Input)
        })
    }
}
