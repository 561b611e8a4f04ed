//! `landfall pack --like BUNDLE --only-volume N`: packs one lost volume again.

use crate::cli::shared::context::run_blocking;
use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome, open_bundle};
use clap::Args;
use landfall_bundle as bundle;
use landfall_content::store::DiskStore;
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::human_size;
use landfall_model::report::RunReport;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The flags that name a volume to pack again.
#[derive(Args)]
pub(crate) struct RepackFlags {
    /// A split bundle with a lost or damaged volume. If its volumes are in several folders, repeat
    /// the flag with each folder, or with one volume of each
    #[arg(long, value_name = "BUNDLE", requires = "only_volume",
          conflicts_with_all = ["volume_size", "include_self", "level", "allow_partial",
            "dry_run", "sign", "serial"])]
    pub(crate) like: Vec<PathBuf>,
    /// The number of the volume of --like to pack again; it is written next to the other volumes,
    /// or next to --out
    #[arg(long, value_name = "N", requires = "like",
        value_parser = clap::value_parser!(u16).range(1..=999))]
    only_volume: Option<u16>,
}

impl RepackFlags {
    pub(crate) async fn run(
        self,
        out: Option<PathBuf>,
        lock: Option<PathBuf>,
        store: DiskStore,
        context: &Context,
    ) -> Result<VerbOutcome, CliError> {
        let Some(number) = self.only_volume.filter(|_| !self.like.is_empty()) else {
            return Err(CliError::usage(
                "--like and --only-volume must be used together",
            ));
        };
        let like = self.like;
        if context.has_signers() {
            let requirements = BundleRequirements {
                allow_partial: true,
                takes_rest: true,
                ..BundleRequirements::default()
            };
            open_bundle::open(context, &like, &requirements)?;
        }
        let progress = Arc::clone(&context.progress);
        let (path, bytes) = run_blocking("packing", move || {
            let lock = || {
                let path = lock.as_deref().unwrap_or(Path::new(FILE_NAME));
                Lock::load(path)
            };
            bundle::write_volume(
                &like,
                number.into(),
                out.as_deref(),
                lock,
                &store,
                &*progress,
            )
        })
        .await??;
        let mut report = RunReport::default();
        report.extra.insert(
            "volume".into(),
            json!({"path": path.display().to_string(), "bytes": bytes}),
        );
        let text = format!(
            "packed {} again, {} ({bytes} bytes)\n",
            path.display(),
            human_size(bytes)
        );
        Ok(VerbOutcome::new(report, text, Exit::Done))
    }
}
