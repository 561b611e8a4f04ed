//! `landfall serve`: bundles as a registry and a file server; with `--writable`, a registry for
//! pushes.

mod node_guides;
mod published;

use crate::cli::shared::bundle_with_bases::{refused, unreadable};
use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::opened_file::OpenedFile;
use crate::cli::shared::packages_key::PackagesKey;
use crate::cli::shared::series_history::SeriesHistory;
use crate::cli::shared::store_location::StoreLocation;
use crate::cli::shared::{
    CliError, Context, Exit, OutputMode, VerbOutcome, nonzero_seconds, open_bundle,
};
use crate::client::Client;
use clap::Args;
use landfall_bundle::{Bundle, volume_locations};
use landfall_content::{BlobChain, BlobRead, VerifiedRead, missing_blobs};
use landfall_model::report::{EntryCount, RunReport};
use landfall_model::{Digest, Limits, TargetRegistry, parse_size};
use landfall_serve::{
    AccessLog, AccessRight, BundleChanges, HtpasswdUsers, LogTarget, ServeError, ServeOptions,
    ServedBundle, ServedContent, ServerInfo, find_delivered, serve,
};
use published::{ServeSources, news, published};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// Serve bundles as a registry and file server, until SIGINT or SIGTERM; SIGHUP reloads
///
/// Without a bundle, --from and --writable it serves what `landfall publish` named in the store
/// (--store).
#[derive(Args)]
pub(crate) struct ServeCommand {
    /// Bundles to serve straight from their files; where two hold one name, the later one counts. A
    /// delta counts after its bases. Of volumes in several folders, one of each, or each folder
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// A bundle, in place of an argument (may be repeated)
    #[arg(long = "bundle", value_name = "BUNDLE")]
    named: Vec<PathBuf>,
    /// Where to listen (may be repeated); port 0 takes a free one. With http:// or https:// before
    /// it, only that is spoken there
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5000")]
    listen: Vec<String>,
    /// Offer files and charts out of this registry, which `landfall push` delivered to. At each
    /// SIGHUP it is asked again
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    from: Option<TargetRegistry>,
    /// The registry that references were rewritten to [default: the site's registry.address, else
    /// here]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// Answer big blobs of a store in an object store by links to there, so that their bytes do not
    /// pass through here
    #[arg(long)]
    redirect: bool,
    /// Take pushes too, and keep them in this folder
    #[arg(long, value_name = "DIR")]
    writable: Option<PathBuf>,
    /// Most bytes of what was pushed, as in 500GB
    #[arg(long, value_name = "SIZE", requires = "writable", value_parser = size)]
    max_bytes: Option<u64>,
    /// HtpasswdUsers, as `htpasswd -B` writes them: all of the registry then needs a login
    #[arg(long, value_name = "FILE")]
    htpasswd: Option<PathBuf>,
    /// More users, who may only read
    #[arg(long, value_name = "FILE", requires = "htpasswd")]
    htpasswd_read: Option<PathBuf>,
    /// Let everybody read; only pushing then needs a login
    #[arg(long, requires = "htpasswd")]
    anonymous_read: bool,
    /// Let everybody push who reaches it
    #[arg(long, requires = "writable", conflicts_with = "htpasswd")]
    anonymous_push: bool,
    /// What deltas were packed against: read, and not served by name (may be repeated)
    #[arg(long, value_name = "BUNDLE")]
    base: Vec<PathBuf>,
    /// Take what deltas leave out from the store too
    #[arg(long)]
    with_store: bool,
    /// The bundle digest or the lock fingerprint that a bundle must have (may be repeated: one of
    /// them)
    #[arg(long, value_name = "sha256:…")]
    expect: Vec<Digest>,
    /// The lock that the bundles must be packed from
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Serve a bundle that says of itself that items are missing
    #[arg(long)]
    allow_partial: bool,
    /// Serve a bundle that is older than the last one of its series, as the site's receipt has it
    #[arg(long)]
    allow_older: bool,
    /// Certificate chain in PEM form: speak https. May be repeated: each is for the names that it
    /// covers, the first one for all others
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Vec<PathBuf>,
    /// Key of the certificate in PEM form; one for each --tls-cert, in their order
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Vec<PathBuf>,
    /// Write a line for each request to the end of this file; - is stderr
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    #[command(flatten)]
    packages: PackagesKey,
    #[command(flatten)]
    bounds: LimitFlags,
}

/// What clients may take of the server.
#[derive(Args)]
#[command(next_help_heading = "Bounds")]
struct LimitFlags {
    /// Connections at one time; then the one that is idle for longest makes room
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections, value_parser = count)]
    max_connections: usize,
    /// Requests in flight at one time; others wait up to 30 s
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests, value_parser = count)]
    max_requests: usize,
    /// Uploads in progress at one time
    #[arg(long, value_name = "N", default_value_t = Limits::default().uploads, value_parser = count)]
    max_uploads: usize,
    /// How long a connection may be idle
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = nonzero_seconds)]
    keep_alive: u64,
    /// How long a client may stand still in the middle of an answer or an upload
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = nonzero_seconds)]
    stall: u64,
    /// How long to answer on after SIGTERM, while /readyz says 503 and connections are closed one
    /// by one
    #[arg(long, value_name = "TIME", value_parser = nonzero_seconds)]
    drain: Option<u64>,
    /// How long an upload may be unused before it is removed
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = nonzero_seconds)]
    upload_expiry: u64,
}

fn count(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| "a number above 0 is needed".into())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

impl LimitFlags {
    fn limits(&self, limits: Limits) -> Limits {
        Limits {
            connections: self.max_connections,
            requests: self.max_requests,
            uploads: self.max_uploads,
            keep_alive: Duration::from_secs(self.keep_alive),
            stall: Duration::from_secs(self.stall),
            upload_expiry: Duration::from_secs(self.upload_expiry),
            ..limits
        }
    }
}

impl ServeCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.bundles.append(&mut self.named);
        let is_named = !self.bundles.is_empty() || self.writable.is_some() || self.from.is_some();
        if !is_named && context.global.store.is_none() {
            return Err(CliError::usage(
                "there is nothing to serve: name a bundle, a registry with --from, a folder with --writable DIR, or a store \
                 with --store",
            ));
        }
        let is_in_bucket =
            !is_named && matches!(context.store_location()?, StoreLocation::Bucket(_));
        if self.redirect && !is_in_bucket {
            return Err(CliError::usage(
                "--redirect links to an object store: name one with --store s3://BUCKET/PREFIX, and no bundle beside it",
            ));
        }
        if self.tls_cert.len() != self.tls_key.len() {
            return Err(CliError::usage(
                "give one --tls-key for each --tls-cert, in their order",
            ));
        }
        let target = match &self.to {
            Some(target) => Some(target.clone()),
            None => context.site_target()?,
        };
        let lock = open_bundle::lock_fingerprints(self.lock.as_deref())?;
        let (expect, lock, allow_partial) = (&self.expect[..], &lock[..], self.allow_partial);
        let taken = SeriesHistory::load(context, None, self.allow_older)?;
        let taken = Some(&taken);
        let demands = BundleRequirements {
            expect,
            lock,
            allow_partial,
            takes_rest: allow_partial,
            taken,
            ..BundleRequirements::default()
        };
        let requests = self.bounds.max_requests;
        // one connection for each response in flight
        let limits = Limits {
            per_host: requests.max(context.limits.per_host),
            ..context.limits
        };
        let client = self
            .from
            .as_ref()
            .map(|_| context.client_with_limits(limits))
            .transpose()?;
        let target_of_guides = target.clone();
        let shelf = (!is_named).then(|| context.shelf(limits)).transpose()?;
        let load = || {
            let found = match &shelf {
                Some(shelf) => published(shelf, &demands),
                None => self.found(context, &demands, client.as_ref()),
            };
            self.load(context, found?, target_of_guides.as_ref())
        };
        let options = ServeOptions {
            listen: self.listen.clone(),
            target,
            site: context.site.as_ref(),
            writable: self.writable.clone(),
            max_bytes: self.max_bytes,
            anonymous_push: self.anonymous_push,
            redirect: self.redirect,
            drain: Duration::from_secs(self.bounds.drain.unwrap_or_default()),
            log: self.access_log.as_deref().map(access_log).transpose()?,
            limits: self.bounds.limits(context.limits),
            progress: Arc::clone(&context.progress),
        };
        let runtime = context.runtime()?;
        // responses in progress end first
        let _taken_over = context.interrupts.take_over(Duration::from_secs(
            20 + self.bounds.drain.unwrap_or_default(),
        ));
        let result = runtime.block_on(async {
            let mut ended = Exit::Done;
            let cannot =
                |error| CliError::new(Exit::Failed, format!("cannot wait for signals: {error}"));
            let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
            let mut hang_up = signal(SignalKind::hangup()).map_err(cannot)?;
            let reload = async || {
                hang_up.recv().await;
            };
            let stop = async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = tokio::signal::ctrl_c() => ended = Exit::Interrupted,
                }
            };
            let ready = |serving: &ServerInfo| announce(serving, context.global.output);
            serve(options, load, ready, reload, stop).await?;
            Ok(VerbOutcome::new(RunReport::default(), "", ended))
        });
        runtime.shutdown_background();
        result
    }

    /// Opens the bundles, and finds what a registry holds.
    fn found(
        &self,
        context: &Context,
        demands: &BundleRequirements<'_>,
        client: Option<&Client>,
    ) -> Result<ServeSources, CliError> {
        let (mut bundles, mut paths) = (Vec::new(), self.bundles.clone());
        while !paths.is_empty() {
            let places = volume_locations(paths.remove(0), &mut paths);
            bundles.push(open_bundle::open(context, &places, demands)?.bundle);
        }
        let bundles = bases_first(bundles);
        let mut given = bundles.clone();
        for path in &self.base {
            given.push(OpenedFile::open(context, path)?.into_bundle(path)?);
        }
        let content = given
            .iter()
            .map(|bundle| Arc::new(bundle.clone()) as Arc<dyn VerifiedRead>);
        let mut content: Vec<Arc<dyn VerifiedRead>> = content.collect();
        if self.with_store {
            content.push(context.served_store()?);
        }
        let mut all: Vec<ServedBundle> = bundles
            .iter()
            .map(|bundle| served(bundle, &given, &content))
            .collect::<Result<_, _>>()?;
        if let (Some(from), Some(client)) = (&self.from, client) {
            let finding = async {
                find_delivered(client.sessions(), &context.mapping(Some(from))?)
                    .await
                    .map_err(CliError::from)
            };
            let mut found = Handle::current().block_on(finding)?;
            content.push(found.content);
            // a bundle that is named counts more than what was delivered earlier
            found.bundles.append(&mut all);
            all = found.bundles;
        }
        tell_news(&mut all, &bundles, &given);
        Ok(ServeSources {
            all,
            content,
            earlier: Vec::new(),
            is_outdated: None,
        })
    }

    /// What is served of what was found, with what is made of it and the files that say who may
    /// have it: at the start, and again at each SIGHUP.
    fn load(
        &self,
        context: &Context,
        found: ServeSources,
        target: Option<&TargetRegistry>,
    ) -> Result<ServedContent, CliError> {
        let ServeSources {
            all,
            content,
            earlier,
            is_outdated,
        } = found;
        let sets = all
            .iter()
            .flat_map(|one| one.lock.packages.iter().map(|set| (set, &*one.blobs)));
        let made = self.packages.made(sets, context)?.unwrap_or_else(|| {
            context.progress.note(
                "warning: packages with `index: trimmed` are offered without metadata, so that no machine finds them: name the \
                 site's OpenPGP key with --packages-key FILE",
            );
            Vec::new()
        });
        Ok(ServedContent {
            guides: Some(node_guides::of(context, &all, target)),
            bundles: all,
            earlier,
            is_outdated,
            content,
            made,
            users: self.users()?,
            tls: self
                .tls_cert
                .iter()
                .cloned()
                .zip(self.tls_key.iter().cloned())
                .collect(),
        })
    }

    /// Who may use the API, where not everybody may.
    fn users(&self) -> Result<Option<HtpasswdUsers>, ServeError> {
        let pushers = self
            .htpasswd
            .as_deref()
            .map(|path| (path, AccessRight::Push));
        let readers = self
            .htpasswd_read
            .as_deref()
            .map(|path| (path, AccessRight::Read));
        let files: Vec<(&Path, AccessRight)> = pushers.into_iter().chain(readers).collect();
        let anonymous = self.anonymous_read.then_some(AccessRight::Read);
        if files.is_empty() {
            Ok(None)
        } else {
            HtpasswdUsers::load(&files, anonymous).map(Some)
        }
    }
}

/// The access log at `path`.
fn access_log(path: &Path) -> Result<AccessLog, CliError> {
    let target = match path.to_str() {
        Some("-") => LogTarget::Stderr,
        _ => LogTarget::File(path.into()),
    };
    AccessLog::open(target).map_err(|error| {
        CliError::usage(format!(
            "cannot write the access log {}: {error}",
            path.display()
        ))
    })
}

/// A bundle as it is served: a delta takes what it leaves out from all that is given.
fn served(
    bundle: &Bundle,
    given: &[Bundle],
    content: &[Arc<dyn VerifiedRead>],
) -> Result<ServedBundle, CliError> {
    let lock = bundle.held()?;
    let mut blobs: Arc<dyn BlobRead> = Arc::new(bundle.clone());
    if !bundle.omitted().is_empty() {
        blobs = Arc::new(BlobChain(
            std::iter::once(blobs)
                .chain(content.iter().map(|blobs| blobs.clone() as _))
                .collect(),
        ));
        let lacking = missing_blobs(&lock.entries(), &*blobs).map_err(unreadable)?;
        if !lacking.is_empty() {
            return Err(refused(bundle, &lacking, given));
        }
    }
    let path = bundle.path();
    Ok(ServedBundle {
        changes: None,
        registry: None,
        name: path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
        digest: Some(bundle.digest().clone()),
        missing: open_bundle::lacks(bundle),
        signatures: bundle.signature_keys(),
        lock,
        blobs,
    })
}

/// Tells of each bundle what is new in it: since its base, or since the one before it with the same
/// manifests.
fn tell_news(all: &mut [ServedBundle], bundles: &[Bundle], given: &[Bundle]) {
    let base_of = |one: &ServedBundle| {
        let bundle = bundles
            .iter()
            .find(|bundle| Some(bundle.digest()) == one.digest.as_ref())?;
        let is_base = |other: &&Bundle| bundle.bases().iter().any(|base| other.is(base));
        let base = given.iter().find(is_base)?;
        Some((
            base.path().file_name()?.to_string_lossy().into_owned(),
            base.held().ok()?,
        ))
    };
    for at in 0..all.len() {
        let before = all[..at]
            .iter()
            .rev()
            .find(|other| other.lock.name == all[at].lock.name);
        let older = base_of(&all[at])
            .or_else(|| before.map(|other| (other.name.clone(), other.lock.clone())));
        all[at].changes = older.map(|(since, lock)| BundleChanges {
            since,
            changes: news(&lock, &all[at].lock),
        });
    }
}

/// The bundles in their order, but each base before the first delta that is based on it.
fn bases_first(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    for at in 0..bundles.len() {
        // as often as there are others: by their locks, two bundles may call each other a base
        for _ in at + 1..bundles.len() {
            let is_base = |other: &Bundle| bundles[at].bases().iter().any(|base| other.is(base));
            let Some(place) = bundles[at + 1..].iter().position(is_base) else {
                break;
            };
            bundles[at..=at + 1 + place].rotate_right(1);
        }
    }
    bundles
}

/// One line that scripts can wait for. With `--output json` or `markdown` stdout is kept for the
/// document.
fn announce(serving: &ServerInfo, output: OutputMode) {
    let mut holds = serving
        .items
        .iter()
        .map(EntryCount::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if serving.writable {
        holds += ", takes pushes";
    }
    let line = format!("serving on {} ({holds})\n", serving.urls.join(" and "));
    // nobody may be there to read it; that is no reason not to serve
    let _ = match output {
        OutputMode::Text | OutputMode::Github => {
            let mut stdout = std::io::stdout().lock();
            stdout
                .write_all(line.as_bytes())
                .and_then(|()| stdout.flush())
        }
        OutputMode::Json | OutputMode::Markdown => {
            std::io::stderr().lock().write_all(line.as_bytes())
        }
    };
}
