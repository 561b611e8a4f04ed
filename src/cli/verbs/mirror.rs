//! `landfall mirror`.

use crate::cli::shared::delivery::Delivery;
use crate::cli::shared::manifest_files::ManifestFiles;
use crate::cli::shared::taken::Taken;
use crate::cli::shared::{Context, Exit, Failure, Outcome, input_file};
use crate::lock::Locked;
use clap::Args;
use landfall_content::store::Disk;
use landfall_content::{Keep, Store};
use landfall_item::lockfile::Lock;
use landfall_model::Platform;
use std::path::PathBuf;
use std::sync::Arc;

/// Mirror from upstream into a registry, both reached from here, without a bundle
#[derive(Args)]
pub(crate) struct Mirror {
    #[command(flatten)]
    manifests: ManifestFiles,
    /// A platform for the images of plain lists, as in linux/amd64; all of them by default (may be
    /// repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<Platform>,
    /// A lock, in place of manifests
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    delivery: Delivery,
}

impl Mirror {
    pub(crate) fn run(mut self, context: &Context) -> Result<Outcome, Failure> {
        self.delivery.take_place(|| {
            self.manifests
                .take_other(|place| input_file::registry(place))
        });
        if self.lock.is_some() && !self.manifests.is_empty() {
            return Err(Failure::usage("name manifests or a lock, not both"));
        }
        let mapping = self.delivery.mapping(context)?;
        let shard = self.delivery.shard.get()?;
        if self.delivery.shard.is_given() && self.lock.is_none() {
            return Err(Failure::usage(
                "--shard needs one lock for all runners: run `landfall lock` with these manifests once, and give \
                 every runner its file with --lock",
            ));
        }
        let taken = Taken::load(context, self.delivery.receipt.as_deref(), true)?;
        let given = self.lock.as_deref().map(input_file::lock).transpose()?;
        let wanted = if given.is_none() {
            Some(input_file::manifests(
                &self.manifests.paths()?,
                &self.platforms,
            )?)
        } else {
            None
        };
        // a store that is asked for keeps what passes; else only manifests are kept, and only for
        // this run
        let scratch = match &context.global.store {
            Some(_) => None,
            None => Some(tempfile::tempdir().map_err(|error| {
                Failure::new(
                    Exit::Failed,
                    format!("cannot make a temporary folder: {error}"),
                )
            })?),
        };
        context.run(async {
            let client = context.client_of(shard, &[])?;
            let ((store, memory), keep) = match &scratch {
                None => (
                    context.store_place()?.open(context, &client)?,
                    Keep::Everything,
                ),
                Some(folder) => {
                    let disk = Disk::scratch(folder.path())?;
                    (
                        (Arc::new(disk.clone()) as Arc<dyn Store>, disk),
                        Keep::Nothing,
                    )
                }
            };
            let lock = match (given, &wanted) {
                (Some(lock), _) => lock,
                (None, wanted) => {
                    let wanted = wanted.clone().unwrap_or_default();
                    told(client.resolve(&wanted, &memory).await?)
                }
            };
            context.shown.lock(&lock, None);
            let mirroring = client.mirror_by(
                &lock,
                (store, keep),
                &mapping,
                self.delivery.options(context),
            );
            let series = taken.after(None);
            let outcome = Box::pin(
                self.delivery
                    .run(context, &client, None, series, &mapping, mirroring),
            )
            .await;
            client.remember_hosts(&memory, "mirror");
            outcome
        })
    }
}

/// The lock with what people are told of its losses in place of what a lock records: it is not
/// written.
fn told(locked: Locked) -> Lock {
    let mut lock = locked.lock;
    for lost in &mut lock.unresolved {
        let item = locked
            .items
            .iter()
            .find(|item| item.kind == lost.kind && item.name == lost.name);
        lost.cause = item
            .and_then(|item| item.reason.clone())
            .unwrap_or_else(|| lost.cause.clone());
    }
    lock
}
