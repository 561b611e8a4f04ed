//! `landfall serve`: serves bundles as a registry and file server; with `--writable`, a registry
//! that accepts pushes.

mod node_guides;
mod served_bundles;

use self::node_guides::node_guides;
use self::served_bundles::{
    ServeSources, add_changes, bases_first, check_expected, published, served,
};
use crate::cli::shared::bundle_with_bases::KEPT_BYTES;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::input_file::OpenedFile;
use crate::cli::shared::open_bundle::{self, BundleRequirements, SeriesHistory};
use crate::cli::shared::package_changes::PackagesKey;
use crate::cli::shared::store_location::StoreLocation;
use crate::cli::shared::{
    CliError, Context, Exit, OutputMode, VerbOutcome, VerbReport, nonzero_count, nonzero_seconds,
};
use crate::client::Client;
use clap::Args;
use landfall_bundle::{Bundle, RebuiltBlobs, RecipeBlobs, scratch_folder, volume_locations};
use landfall_content::{BlobChain, BlobRead, VerifiedRead};
use landfall_model::report::EntryCount;
use landfall_model::{Digest, Failure, Limits, TargetRegistry, parse_size};
use landfall_os::signals::{Reloads, Terminations};
use landfall_serve::{
    AccessLog, AccessRight, HtpasswdUsers, LogTarget, ServeOptions, ServedBundle, ServedContent,
    ServerInfo, find_delivered, serve,
};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// Serve bundles as a registry and file server
///
/// Runs until SIGINT or SIGTERM; SIGHUP reloads. Without a bundle, --from or --writable, it serves
/// the lock that `landfall publish` selected in the store (--store).
#[derive(Args)]
pub(crate) struct ServeCommand {
    /// The bundles to serve. If two contain the same name, the later one wins; a delta wins over
    /// its bases. If the volumes of a bundle are in several folders, name one volume in each
    /// folder, or the folders
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// A bundle, instead of an argument (may be repeated)
    #[arg(long = "bundle", value_name = "BUNDLE")]
    named: Vec<PathBuf>,
    /// The address to listen on, or a host name for all of its addresses; port 0 chooses a free
    /// port. A prefix http:// or https:// accepts only that protocol (may be repeated)
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5000")]
    listen: Vec<String>,
    /// Serve the content that `landfall push` uploaded to this registry, except images. SIGHUP
    /// reads its content again
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    from: Option<TargetRegistry>,
    /// The registry whose image names are served, as in rewritten references [default:
    /// registry.address of the site, else this server]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<TargetRegistry>,
    /// Redirect requests for large blobs to the object store, so that their bytes do not pass
    /// through this server
    #[arg(long)]
    redirect: bool,
    /// Also accept pushes, and store them in this folder
    #[arg(long, value_name = "DIR")]
    writable: Option<PathBuf>,
    /// The maximum size of pushed content, as in 500GB
    #[arg(long, value_name = "SIZE", requires = "writable", value_parser = parse_size)]
    max_bytes: Option<u64>,
    /// A password file, as written by `htpasswd -B`: requests to the registry (/v2/) then need a
    /// login
    #[arg(long, value_name = "FILE")]
    htpasswd: Option<PathBuf>,
    /// A password file of users who may only read
    #[arg(long, value_name = "FILE", requires = "htpasswd")]
    htpasswd_read: Option<PathBuf>,
    /// Allow everybody to read; only pushing then needs a login
    #[arg(long, requires = "htpasswd")]
    anonymous_read: bool,
    /// Allow everybody who can connect to push
    #[arg(long, requires = "writable", conflicts_with = "htpasswd")]
    anonymous_push: bool,
    /// A base of a delta: its content is used, but its names are not served (may be repeated)
    #[arg(long, value_name = "BUNDLE")]
    base: Vec<PathBuf>,
    /// Also use the store for content that deltas omit
    #[arg(long)]
    with_store: bool,
    /// A bundle digest or lock fingerprint that is accepted (may be repeated)
    #[arg(long, value_name = "sha256:…")]
    expect: Vec<Digest>,
    /// The lock that the bundles must have
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Accept a partial bundle
    #[arg(long)]
    allow_partial: bool,
    /// Accept a bundle that is older than the last one of its series in the receipt of the site
    #[arg(long)]
    allow_older: bool,
    /// A certificate chain in PEM format: use HTTPS. If repeated, each is used for the names that
    /// it covers, and the first one for all other names
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Vec<PathBuf>,
    /// The private key of a certificate in PEM format; one for each --tls-cert, in the same order
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Vec<PathBuf>,
    /// Append a line for each request to this file, or - for stderr
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    #[command(flatten)]
    packages: PackagesKey,
    #[command(flatten)]
    bounds: LimitFlags,
}

impl ServeCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.bundles.append(&mut self.named);
        let is_named = !self.bundles.is_empty() || self.writable.is_some() || self.from.is_some();
        if !is_named && context.global.store.is_none() {
            return Err(CliError::usage("there is nothing to serve").with_help(
                "name a bundle, a registry with --from, a folder with --writable, or a store with \
                 --store",
            ));
        }
        let is_in_bucket =
            !is_named && matches!(context.store_location()?, StoreLocation::Bucket(_));
        if self.redirect && !is_in_bucket {
            return Err(
                CliError::usage("--redirect needs a store in an object store")
                    .with_help("add --store s3://BUCKET/PREFIX, and name no bundle"),
            );
        }
        if self.tls_cert.len() != self.tls_key.len() {
            return Err(CliError::usage(
                "give one --tls-key for each --tls-cert, in their order",
            ));
        }
        let site = context.site.as_ref();
        let demands_signatures = site.filter(|site| !site.verify.is_empty());
        let has_rules = demands_signatures.is_some();
        if let Some(site) = demands_signatures
            && self.writable.is_some()
            && self.htpasswd.is_none()
            && !self.anonymous_push
        {
            let rules = site.key("verify");
            let why = format!(
                "everybody could push to --writable, and {rules} demands signatures, which are not \
                 verified when clients push"
            );
            return Err(CliError::usage(why).with_help(
                "add --htpasswd FILE with the users whom the site trusts, or --anonymous-push to \
                 trust everybody",
            ));
        }
        let target = match &self.to {
            Some(target) => Some(target.clone()),
            None => context.site_target()?,
        };
        let lock = open_bundle::lock_fingerprints(self.lock.as_deref())?;
        let history = SeriesHistory::load(context, None, self.allow_older)?;
        let history = Some(&history);
        let requirements = BundleRequirements {
            expect: &self.expect,
            lock: &lock,
            allow_partial: self.allow_partial,
            takes_rest: self.allow_partial,
            history,
            ..BundleRequirements::default()
        };
        let requests = self.bounds.max_requests;
        // Each response in progress may need a connection to the registry or object store.
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
        let published_store = (!is_named)
            .then(|| context.published_store(limits))
            .transpose()?;
        let load = || {
            let found = match &published_store {
                Some(published_store) => published(context, published_store, &requirements),
                None => self.found(context, &requirements, client.as_ref()),
            };
            self.load(context, found?, target_of_guides.as_ref())
        };
        if self.writable.is_some() && has_rules {
            context.progress.note(
                "note: the rules of `verify` are not applied to what clients push to --writable",
            );
        }
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
        // After a signal, the server has this time to end, so that responses in progress can
        // finish.
        let grace = Duration::from_secs(20 + self.bounds.drain.unwrap_or_default());
        let _taken_over = context.interrupts.take_over(grace);
        let result = runtime.block_on(async {
            let cannot = |error| CliError::failed(format!("cannot handle signals: {error}"));
            let terminate = Terminations::watch().map_err(cannot)?;
            let mut hang_up = Reloads::watch().map_err(cannot)?;
            let reload = async || {
                hang_up.recv().await;
            };
            let phase = Arc::new(ServerPhase::default());
            let stop = stop_signal(terminate, grace, phase.clone());
            let ready = |serving: &ServerInfo| {
                phase.is_serving.store(true, Ordering::Relaxed);
                announce(serving, context.global.output);
            };
            serve(options, load, ready, reload, stop).await?;
            let ended = if phase.is_interrupted.load(Ordering::Relaxed) {
                Exit::Interrupted
            } else {
                Exit::Done
            };
            Ok(VerbOutcome::new(VerbReport::default(), "", ended))
        });
        runtime.shutdown_background();
        result
    }

    /// Opens the bundles, and lists the content of the registry of `--from`.
    fn found(
        &self,
        context: &Context,
        requirements: &BundleRequirements<'_>,
        client: Option<&Client>,
    ) -> Result<ServeSources, CliError> {
        let mut bundles = Vec::new();
        let mut paths = self.bundles.clone();
        while !paths.is_empty() {
            let locations = volume_locations(paths.remove(0), &mut paths);
            bundles.push(open_bundle::open(context, &locations, requirements)?.bundle);
        }
        let bundles = bases_first(bundles);
        let mut given = bundles.clone();
        for path in &self.base {
            given.push(OpenedFile::open_base(context, path)?.into_bundle(path)?);
        }
        let content = given
            .iter()
            .map(|bundle| Arc::new(bundle.clone()) as Arc<dyn VerifiedRead>);
        let mut content: Vec<Arc<dyn VerifiedRead>> = content.collect();
        if self.with_store {
            content.push(context.served_store()?);
        }
        let with_recipes: Vec<Bundle> = given
            .iter()
            .filter(|bundle| bundle.has_recipes())
            .cloned()
            .collect();
        if !with_recipes.is_empty() {
            let sources = content
                .iter()
                .map(|blobs| Arc::clone(blobs) as Arc<dyn BlobRead>);
            let sources = Arc::new(BlobChain(sources.collect()));
            let folder = scratch_folder();
            let rebuilt = RebuiltBlobs::new(sources, &with_recipes, folder, KEPT_BYTES);
            content.push(Arc::new(RecipeBlobs(rebuilt)));
        }
        let mut all: Vec<ServedBundle> = bundles
            .iter()
            .map(|bundle| served(bundle, &given, &content))
            .collect::<Result<_, _>>()?;
        for bundle in &all {
            ImageSignatures::verify(context.site.as_ref(), &bundle.lock, bundle.blobs.clone())?;
        }
        if let (Some(from), Some(client)) = (&self.from, client) {
            let finding = async {
                find_delivered(client.sessions(), &context.mapping(Some(from))?)
                    .await
                    .map_err(CliError::from)
            };
            // `serve` runs this in `block_in_place`, where waiting is allowed.
            let mut found = Handle::current().block_on(finding)?;
            for delivered in &found.bundles {
                let fingerprint = delivered.lock.fingerprint();
                let origin = format!("was delivered to {from}");
                check_expected(requirements, &fingerprint, &origin)?;
                // nodes pull the other items from the registry itself
                let mut lock = delivered.lock.clone();
                #[expect(
                    clippy::redundant_closure_for_method_calls,
                    reason = "the method itself is not general over the lifetime of the item"
                )]
                lock.retain(|item| item.is_served_from_registry());
                ImageSignatures::verify(context.site.as_ref(), &lock, delivered.blobs.clone())?;
            }
            content.push(found.content);
            // A bundle that is named wins over content that was pushed earlier.
            found.bundles.append(&mut all);
            all = found.bundles;
        }
        add_changes(&mut all, &bundles, &given);
        Ok(ServeSources {
            all,
            content,
            earlier: Vec::new(),
            is_outdated: None,
        })
    }

    /// Prepares the served content, with signed package metadata and the users. Called at the
    /// start, at each SIGHUP, and when another lock was published.
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
        let made = self
            .packages
            .sign_metadata(sets, context)?
            .unwrap_or_else(|| {
                context.progress.note(
                    "warning: packages with `index: trimmed` are served without metadata, so no \
                 machine finds them; name the OpenPGP key of the site with --packages-key FILE",
                );
                Vec::new()
            });
        Ok(ServedContent {
            guides: Some(node_guides(context, &all, target)),
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

    /// The users, if a password file is named.
    fn users(&self) -> Result<Option<HtpasswdUsers>, Failure> {
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

/// Opens the access log for appending; `-` is stderr.
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

/// How far a server has come.
#[derive(Default)]
struct ServerPhase {
    /// Whether clients can connect.
    is_serving: AtomicBool,
    /// Whether Ctrl-C stopped it.
    is_interrupted: AtomicBool,
}

/// Waits for SIGTERM or Ctrl-C. After SIGTERM, the process ends when `grace` has passed, or at once
/// if no client can connect yet: reading the content may wait for a registry that does not answer.
/// After Ctrl-C, `Interrupts` ends it.
async fn stop_signal(mut terminate: Terminations, grace: Duration, phase: Arc<ServerPhase>) {
    tokio::select! {
        () = terminate.recv() => {
            let is_serving = phase.is_serving.load(Ordering::Relaxed);
            tokio::spawn(end_after(if is_serving { grace } else { Duration::ZERO }));
        }
        _ = tokio::signal::ctrl_c() => phase.is_interrupted.store(true, Ordering::Relaxed),
    }
}

async fn end_after(grace: Duration) {
    tokio::time::sleep(grace).await;
    std::process::exit(Exit::Done as i32)
}

/// Prints one line that scripts can wait for. With `--output json` or `markdown`, stdout is
/// reserved for the document, so the line goes to stderr.
fn announce(serving: &ServerInfo, output: OutputMode) {
    let mut content = serving
        .items
        .iter()
        .map(EntryCount::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if serving.writable {
        content += ", accepts pushes";
    }
    let line = format!("serving on {} ({content})\n", serving.urls.join(" and "));
    // The server starts even if stdout is closed.
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

/// The flags that limit clients.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Maximum number of connections; a further connection replaces the one that is idle longest
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections,
        value_parser = nonzero_count)]
    max_connections: usize,
    /// Maximum number of concurrent requests; further requests wait up to 30 s
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests,
        value_parser = nonzero_count)]
    max_requests: usize,
    /// Maximum number of concurrent uploads
    #[arg(long, value_name = "N", default_value_t = Limits::default().uploads,
        value_parser = nonzero_count)]
    max_uploads: usize,
    /// Timeout for idle connections
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = nonzero_seconds)]
    keep_alive: u64,
    /// Timeout for a client that stalls during a response or an upload
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = nonzero_seconds)]
    stall: u64,
    /// How long to serve after SIGTERM, while /readyz returns 503 and each connection is closed
    /// after its response
    #[arg(long, value_name = "TIME", value_parser = nonzero_seconds)]
    drain: Option<u64>,
    /// Timeout for unfinished uploads, which are then deleted
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = nonzero_seconds)]
    upload_expiry: u64,
}

impl LimitFlags {
    /// Returns `limits` with the values of the flags.
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
