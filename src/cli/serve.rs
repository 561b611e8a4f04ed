//! `landfall serve`: bundles as a registry and a file server; with `--writable`, a registry for pushes.

use super::carried::{self, Demands};
use super::{Context, Exit, Failure, Outcome, OutputMode};
use crate::lock::Lock;
use crate::model::Digest;
use crate::report::Report;
use crate::rewrite::Target;
use crate::serve::{Options, Serving, Source, Users, serve};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Serve bundles as a registry and file server, until SIGINT or SIGTERM
#[derive(Args)]
pub(super) struct Serve {
    /// Bundles to serve straight from their files; where two hold one name, the later one counts
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
    /// The bundle digest or the lock fingerprint that a bundle must have (may be repeated: one of them)
    #[arg(long, value_name = "sha256:…")]
    expect: Vec<Digest>,
    /// The lock that the bundles must be packed from
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Serve a bundle that says of itself that items are missing
    #[arg(long)]
    allow_partial: bool,
    /// Certificate chain in PEM form: speak https
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Serve {
    pub(super) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        if self.bundles.is_empty() && self.writable.is_none() {
            return Err(Failure::usage(
                "there is nothing to serve: name a bundle, or a folder with --writable DIR",
            ));
        }
        let target = match self.to {
            Some(target) => Some(target),
            None => context.site_target()?,
        };
        let lock = self.lock.as_deref().map(Lock::load).transpose()?;
        let (expect, lock, allow_partial) = (&self.expect[..], lock.as_ref(), self.allow_partial);
        let demands = Demands { expect, lock, allow_partial, ..Demands::default() };
        let source = |path: &PathBuf| source(context, path, &demands);
        let options = Options {
            listen: self.listen,
            sources: self.bundles.iter().map(source).collect::<Result<_, _>>()?,
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

fn source(context: &Context, path: &Path, demands: &Demands<'_>) -> Result<Source, Failure> {
    let bundle = carried::open(context, path, demands)?.bundle;
    Ok(Source {
        name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
        digest: Some(bundle.digest().clone()),
        lacks: carried::lacks(&bundle),
        lock: bundle.held()?,
        blobs: Arc::new(bundle),
    })
}

/// One line that scripts can wait for. With `--output json` stdout is kept for the document.
fn announce(serving: &Serving, output: OutputMode) {
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut holds = format!("{}, {}", count(serving.images, "image"), count(serving.files, "file"));
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
