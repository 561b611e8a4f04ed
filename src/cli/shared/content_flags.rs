//! What is exported from: a bundle with what belongs to it, or the store and a lock.

use crate::cli::shared::bundle_with_bases::{BundleWithBases, store};
use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::{CliError, Context, input_file, open_bundle};
use clap::Args;
use landfall_content::{BlobRead, LockEntry};
use landfall_item::lockfile::{FILE_NAME, Lock};
use std::path::PathBuf;
use std::sync::Arc;

/// Flags that name a bundle, or a lock whose content the store has.
#[derive(Args)]
pub(crate) struct ContentFlags {
    /// The bundle that they come from; without it, or with a lock, they come from the store
    #[arg(value_name = "BUNDLE|LOCK", group = "carried")]
    bundle: Option<PathBuf>,
    /// The same by a flag
    #[arg(long = "bundle", value_name = "BUNDLE", group = "carried")]
    flag: Option<PathBuf>,
    /// The lock, where they come from the store
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, conflicts_with = "carried")]
    lock: PathBuf,
    /// What a delta was packed against (may be repeated)
    #[arg(long, value_name = "BUNDLE", requires = "carried")]
    base: Vec<PathBuf>,
    /// Take what a delta leaves out from the store too
    #[arg(long, requires = "carried")]
    with_store: bool,
    /// Take what is there where items are missing
    #[arg(long)]
    pub(crate) allow_partial: bool,
}

impl ContentFlags {
    /// The lock and the content. Of a delta and its bases, that of the entries that are `wanted`
    /// must be whole.
    ///
    /// # Errors
    /// When one of the files cannot be read, or the bundle is refused.
    pub(crate) fn open(
        &self,
        context: &Context,
        wanted: impl Fn(&LockEntry) -> bool,
    ) -> Result<(Lock, Arc<dyn BlobRead>), CliError> {
        let Some(path) = self.bundle.as_ref().or(self.flag.as_ref()) else {
            return Ok((input_file::lock(&self.lock)?, context.store()?));
        };
        if input_file::is_lock(path) {
            return Ok((input_file::lock(path)?, context.store()?));
        }
        let demands = BundleRequirements {
            allow_partial: self.allow_partial,
            ..BundleRequirements::default()
        };
        let bundle = open_bundle::open(context, std::slice::from_ref(path), &demands)?.bundle;
        let together = BundleWithBases::new(
            context,
            bundle,
            &self.base,
            store(context, self.with_store)?,
            false,
        )?;
        let lock = together.bundle.held()?;
        together.whole(lock.entries().iter().filter(|entry| wanted(entry)))?;
        Ok((lock, together.blobs))
    }
}
