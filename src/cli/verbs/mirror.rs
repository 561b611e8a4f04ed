//! `landfall mirror`: copies from upstream to a registry, without a bundle.

use crate::cli::shared::bundle_flags::ManifestArgs;
use crate::cli::shared::delivery_flags::DeliveryFlags;
use crate::cli::shared::image_facts::ImageSignatures;
use crate::cli::shared::open_bundle::SeriesHistory;
use crate::cli::shared::{CliError, Context, VerbOutcome};
use crate::lock::Locked;
use clap::Args;
use landfall_content::store::DiskStore;
use landfall_content::{BlobStore, CachePolicy};
use landfall_item::lockfile::{FILE_NAME, Lock};
use landfall_model::PlatformRequest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copy from upstream to a registry without a bundle
///
/// Upstream and the registry must both be reachable from here. With --store, downloaded content is
/// kept in the store.
#[derive(Args)]
pub(crate) struct MirrorCommand {
    #[command(flatten)]
    manifests: ManifestArgs,
    /// A platform for the images of plain lists, as in linux/amd64 [default: all] (may be repeated;
    /// a lock has its platforms already)
    #[arg(long = "platform", value_name = "OS/ARCH", conflicts_with = "lock")]
    platforms: Vec<PlatformRequest>,
    /// A lock, instead of manifests
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    delivery: DeliveryFlags,
}

impl MirrorCommand {
    pub(crate) fn run(mut self, context: &Context) -> Result<VerbOutcome, CliError> {
        self.delivery.take_registry(&mut self.manifests.arguments);
        if self.lock.is_some() && !self.manifests.is_empty() {
            return Err(CliError::usage("name manifests or a lock, not both"));
        }
        let mapping = self.delivery.mapping(context)?;
        let shard = self.delivery.shard.get()?;
        if self.delivery.shard.is_given() && self.lock.is_none() {
            return Err(
                CliError::usage("--shard needs one lock that all runners share").with_help(
                    "run `landfall lock` once with these manifests, and give its file to every \
                     runner with --lock",
                ),
            );
        }
        // There is no bundle that could be too old, but the receipt keeps the numbers of the
        // series.
        let history = SeriesHistory::load(context, self.delivery.receipt.as_deref(), true)?;
        let given = self
            .lock
            .as_deref()
            .map(|path| context.read_lock(path))
            .transpose()?;
        let wanted = match &given {
            Some(_) => None,
            None => Some(context.read_manifests(&self.manifests.paths()?, &self.platforms)?),
        };
        // A store that is named keeps all downloaded content. Without one, only the content that is
        // downloaded to resolve the items is kept until the end of the run, because the push needs
        // it again. A dry run creates no store.
        let has_store =
            context.global.store.is_some() && (!self.delivery.dry_run || context.has_store());
        let scratch = if has_store {
            None
        } else {
            Some(tempfile::tempdir().map_err(|error| {
                CliError::failed(format!("cannot make a temporary folder: {error}"))
            })?)
        };
        context.run(async {
            let path = self.lock.as_deref().unwrap_or(Path::new(FILE_NAME));
            let client = context.client_for_lock(path, shard, &[])?;
            let ((store, memory), keep) = match &scratch {
                None => (
                    context.store_location()?.open(context, &client)?,
                    CachePolicy::ReadThrough,
                ),
                Some(folder) => {
                    let disk = DiskStore::scratch(folder.path())?;
                    (
                        (Arc::new(disk.clone()) as Arc<dyn BlobStore>, disk),
                        CachePolicy::ReadOnly,
                    )
                }
            };
            let fingerprint;
            let lock = match (given, &wanted) {
                (Some(lock), _) => {
                    let site = context.site.as_ref();
                    ImageSignatures::verify_upstream(site, &lock, &client, &memory).await?;
                    fingerprint = lock.fingerprint();
                    lock
                }
                (None, wanted) => {
                    let wanted = wanted.clone().unwrap_or_default();
                    let locked = client.resolve(&wanted, &memory).await?;
                    // as `landfall lock` would write it, with short reasons
                    fingerprint = locked.lock.fingerprint();
                    with_reasons(locked)
                }
            };
            context.page.set_content(&lock, None);
            let mirroring = client.mirror_with_store(
                &lock,
                store,
                keep,
                &mapping,
                self.delivery.options(context),
            );
            let series = history.after(None);
            let delivering =
                self.delivery
                    .run(context, &client, &fingerprint, &series, &mapping, mirroring);
            let outcome = Box::pin(delivering).await;
            // A failed run has contacted hosts, too.
            client.remember_hosts(&memory, "mirror");
            outcome
        })
    }
}

/// The lock with full reasons for items that could not be resolved. A lock that is written has only
/// short reasons, which do not change from run to run.
fn with_reasons(locked: Locked) -> Lock {
    let mut lock = locked.lock;
    for lost in &mut lock.unresolved {
        let item = locked
            .items
            .iter()
            .find(|item| item.kind == lost.kind && item.name == lost.name);
        if let Some(reason) = item.and_then(|item| item.reason.clone()) {
            lost.cause = reason;
        }
    }
    lock
}
