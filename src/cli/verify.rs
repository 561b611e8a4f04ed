//! `landfall verify`: whether a bundle is as it was packed, and is the one that was approved.

use super::listing::{count, item, unique_bytes};
use super::{Context, Exit, Failure, Outcome, carried};
use crate::bundle::{self, Bundle};
use crate::lock::Lock;
use crate::model::{Digest, human_size};
use crate::report::{Report, Status, escape};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Check every byte of a bundle
#[derive(Args)]
pub(super) struct Verify {
    /// The bundle
    bundle: PathBuf,
    /// The bundle digest or the lock fingerprint that it must have
    #[arg(long, value_name = "sha256:…")]
    expect: Option<Digest>,
    /// The lock that it must be packed from
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Take a bundle that says of itself that items are missing
    #[arg(long)]
    allow_partial: bool,
}

impl Verify {
    pub(super) fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let lock = self.lock.as_deref().map(Lock::load).transpose()?;
        let progress = Arc::clone(&context.progress);
        context.run(async move {
            let work = tokio::task::spawn_blocking(move || {
                let explain = |error| bundle::explain(error, &self.bundle, &*progress);
                let bundle = Bundle::open(&self.bundle).map_err(explain)?;
                self.identity(&bundle, lock.as_ref())?;
                bundle::verify(&bundle, &*progress)?;
                self.outcome(&bundle)
            });
            work.await.map_err(|error| Failure::new(Exit::Failed, format!("checking stopped: {error}")))?
        })
    }

    /// Whether it is the bundle that was asked for. What it says of itself here is checked afterwards.
    fn identity(&self, bundle: &Bundle, lock: Option<&Lock>) -> Result<(), Failure> {
        let (path, digest, fingerprint) = (self.bundle.display(), bundle.digest(), bundle.fingerprint());
        if let Some(expect) = self.expect.as_ref().filter(|expect| ![digest, fingerprint].contains(expect)) {
            return Err(Failure::refused(format!(
                "{path} is not what was expected\n  expected          {expect}\n  bundle digest     {digest}\n  \
                 lock fingerprint  {fingerprint}"
            )));
        }
        if let Some(wanted) = lock.map(Lock::fingerprint).filter(|wanted| wanted != fingerprint) {
            return Err(Failure::refused(format!(
                "{path} was packed from another lock\n  --lock            {wanted}\n  lock fingerprint  {fingerprint}"
            )));
        }
        carried::refuse_partial(bundle, &self.bundle, self.allow_partial)
    }

    fn outcome(&self, bundle: &Bundle) -> Result<Outcome, Failure> {
        let entries = bundle.entries()?;
        let (path, digest, fingerprint) = (self.bundle.display(), bundle.digest(), bundle.fingerprint());
        let mut report = Report {
            items: entries.iter().map(|entry| item(entry, Status::Present)).collect(),
            ..Report::default()
        };
        report.extra.insert(
            "bundle".into(),
            json!({
                "path": path.to_string(), "digest": digest, "lock": fingerprint, "bytes": bundle.bytes(),
                "partial": bundle.partial(), "signed": false,
            }),
        );
        let partial = match bundle.partial().len() {
            0 => String::new(),
            lost => format!(", partial: it lacks {lost} of the lock's items"),
        };
        let text = format!(
            "{path}: consistent, origin not proven (it is not signed){partial}\n  bundle digest     {digest}\n  \
             lock fingerprint  {fingerprint}\n  {}, {}\n",
            count(&entries),
            human_size(unique_bytes(&entries)),
        );
        Ok(Outcome { report, text: escape(&text), exit: Exit::Done })
    }
}
