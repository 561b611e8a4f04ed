//! `landfall serve`: bundles as a registry and a file server; with `--writable`, a registry for pushes.

use crate::bundle::Bundle;
use crate::cli::shared::bases::{Given, refused, store, unreadable};
use crate::cli::shared::open_bundle::{self, Demands};
use crate::cli::shared::taken::Taken;
use crate::cli::shared::{Context, Exit, Failure, Outcome, OutputMode};
use crate::content::{BlobChain, BlobRead, missing_blobs};
use crate::model::Digest;
use crate::model::Target;
use crate::report::{Kind, Report};
use crate::serve::{Options, ServedBundle, Serving, Users, serve};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Serve bundles as a registry and file server, until SIGINT or SIGTERM
#[derive(Args)]
pub(crate) struct Serve {
    /// Bundles to serve straight from their files; where two hold one name, the later one counts. A delta
    /// counts after its bases
    #[arg(value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5000")]
    listen: String,
    /// The registry that references were rewritten to [default: the site's registry.address, else here]
    #[arg(long, value_name = "REGISTRY[/PREFIX]")]
    to: Option<Target>,
    /// Take pushes too, and keep them in this folder
    #[arg(long, value_name = "DIR")]
    writable: Option<PathBuf>,
    /// Users, as `htpasswd -B` writes them: all of the registry then needs a login
    #[arg(long, value_name = "FILE")]
    htpasswd: Option<PathBuf>,
    /// Let everybody push who reaches it
    #[arg(long, requires = "writable", conflicts_with = "htpasswd")]
    anonymous_push: bool,
    /// What deltas were packed against: read, and not served by name (may be repeated)
    #[arg(long, value_name = "BUNDLE")]
    base: Vec<PathBuf>,
    /// Take what deltas leave out from the store too
    #[arg(long)]
    with_store: bool,
    /// The bundle digest or the lock fingerprint that a bundle must have (may be repeated: one of them)
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
    /// Certificate chain in PEM form: speak https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        if self.bundles.is_empty() && self.writable.is_none() {
            return Err(Failure::usage(
                "there is nothing to serve: name a bundle, or a folder with --writable DIR",
            ));
        }
        let target = match self.to {
            Some(target) => Some(target),
            None => context.site_target()?,
        };
        let lock = open_bundle::lock_fingerprints(self.lock.as_deref())?;
        let (expect, lock, allow_partial) = (&self.expect[..], &lock[..], self.allow_partial);
        let taken = Taken::load(context, None, self.allow_older)?;
        let taken = Some(&taken);
        let demands = Demands { expect, lock, allow_partial, taken, ..Demands::default() };
        let bundles = self.bundles.iter().map(|path| Ok(open_bundle::open(context, path, &demands)?.bundle));
        let bundles = bases_first(bundles.collect::<Result<_, Failure>>()?);
        let served = served(&bundles, &self.base, store(context, self.with_store)?)?;
        let options = Options {
            listen: self.listen,
            bundles: served,
            target,
            site: context.site.as_ref(),
            writable: self.writable,
            users: self.htpasswd.as_deref().map(Users::load).transpose()?,
            anonymous_push: self.anonymous_push,
            tls: self.tls_cert.zip(self.tls_key),
            limits: context.limits,
            progress: Arc::clone(&context.progress),
        };
        let runtime = context.runtime()?;
        // responses in progress end first
        let _taken_over = context.interrupts.take_over(Duration::from_secs(20));
        let result = runtime.block_on(async {
            let mut ended = Exit::Done;
            let mut terminate = signal(SignalKind::terminate())
                .map_err(|error| Failure::new(Exit::Failed, format!("cannot wait for signals: {error}")))?;
            let stop = async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = tokio::signal::ctrl_c() => ended = Exit::Interrupted,
                }
            };
            serve(options, |serving| announce(serving, context.global.output), stop).await?;
            Ok(Outcome { report: Report::default(), text: String::new(), exit: ended })
        });
        runtime.shutdown_background();
        result
    }
}

/// What is served: a delta takes what it leaves out from all bundles, the bases and the store.
fn served(
    bundles: &[Bundle],
    bases: &[PathBuf],
    store: Option<Arc<dyn BlobRead>>,
) -> Result<Vec<ServedBundle>, Failure> {
    let mut given = bundles.to_vec();
    for path in bases {
        given.push(Given::open(path)?.bundle(path)?);
    }
    let source = |bundle: &Bundle| {
        let lock = bundle.held()?;
        let mut blobs: Arc<dyn BlobRead> = Arc::new(bundle.clone());
        if !bundle.omitted().is_empty() {
            let all = given.iter().map(|bundle| Arc::new(bundle.clone()) as Arc<dyn BlobRead>);
            blobs = Arc::new(BlobChain(std::iter::once(blobs).chain(all).chain(store.clone()).collect()));
            let lacking = missing_blobs(&lock.entries(), &*blobs).map_err(unreadable)?;
            if !lacking.is_empty() {
                return Err(refused(bundle, &lacking, &given));
            }
        }
        let path = bundle.path();
        Ok(ServedBundle {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            digest: Some(bundle.digest().clone()),
            missing: open_bundle::lacks(bundle),
            lock,
            blobs,
        })
    };
    bundles.iter().map(source).collect()
}

/// The bundles in their order, but each base before the first delta that is based on it.
fn bases_first(mut bundles: Vec<Bundle>) -> Vec<Bundle> {
    for at in 0..bundles.len() {
        // as often as there are others: by their locks, two bundles may call each other a base
        for _ in at + 1..bundles.len() {
            let is_base = |other: &Bundle| bundles[at].bases().iter().any(|base| other.is(base));
            let Some(place) = bundles[at + 1..].iter().position(is_base) else { break };
            bundles[at..=at + 1 + place].rotate_right(1);
        }
    }
    bundles
}

/// One line that scripts can wait for. With `--output json` stdout is kept for the document.
fn announce(serving: &Serving, output: OutputMode) {
    let count =
        |(kind, count): &(Kind, usize)| format!("{count} {kind}{}", if *count == 1 { "" } else { "s" });
    let mut holds = serving.items.iter().map(count).collect::<Vec<_>>().join(", ");
    if serving.writable {
        holds += ", takes pushes";
    }
    let line = format!("serving on {} ({holds})\n", serving.url);
    // nobody may be there to read it; that is no reason not to serve
    let _ = match output {
        OutputMode::Text => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush())
        }
        OutputMode::Json => std::io::stderr().lock().write_all(line.as_bytes()),
    };
}
