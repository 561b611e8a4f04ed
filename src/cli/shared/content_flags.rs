//! The flags that name content: a bundle and its bases, or a lock whose content is in the store.

use crate::cli::shared::bundle_with_bases::{BundleWithBases, optional_store};
use crate::cli::shared::image_signatures::ImageSignatures;
use crate::cli::shared::open_bundle::BundleRequirements;
use crate::cli::shared::{CliError, Context, input_file, open_bundle};
use clap::Args;
use landfall_content::{BlobRead, LockEntry};
use landfall_item::lockfile::{FILE_NAME, Lock};
use std::path::PathBuf;
use std::sync::Arc;

/// The flags that name a bundle, or a lock whose content is in the store.
#[derive(Args)]
pub(crate) struct ContentFlags {
    /// The bundle to read, or a lock whose content is in the store
    #[arg(value_name = "BUNDLE|LOCK", group = "carried")]
    bundle: Option<PathBuf>,
    /// The bundle, instead of the argument
    #[arg(long = "bundle", value_name = "BUNDLE", group = "carried")]
    flag: Option<PathBuf>,
    /// The lock whose content is in the store
    #[arg(long, value_name = "FILE", default_value = FILE_NAME, conflicts_with = "carried")]
    lock: PathBuf,
    /// A base that the delta was packed against (may be repeated)
    #[arg(long, value_name = "BUNDLE", requires = "carried")]
    base: Vec<PathBuf>,
    /// Also use the store for content that a delta omits
    #[arg(long, requires = "carried")]
    with_store: bool,
    /// Continue without the items that are missing
    #[arg(long)]
    pub(crate) allow_partial: bool,
}

impl ContentFlags {
    /// Opens the lock and the content. A delta, its bases and the store of `--with-store` must
    /// together have all content of the entries that are `wanted`, and these entries must be signed
    /// as the site demands.
    pub(crate) fn open(
        &self,
        context: &Context,
        wanted: impl Fn(&LockEntry) -> bool,
    ) -> Result<(Lock, Arc<dyn BlobRead>), CliError> {
        let (lock, blobs) = self.open_content(context, &wanted)?;
        let site = context.site.as_ref();
        if let Some(site) = site.filter(|site| !site.verify.is_empty()) {
            let mut delivered = lock.clone();
            delivered.retain(|item| wanted(&item.entry()));
            ImageSignatures::verify(Some(site), &delivered, blobs.clone())?;
        }
        Ok((lock, blobs))
    }

    fn open_content(
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
        let requirements = BundleRequirements {
            allow_partial: self.allow_partial,
            ..BundleRequirements::default()
        };
        let bundle = open_bundle::open(context, std::slice::from_ref(path), &requirements)?.bundle;
        let chain = BundleWithBases::new(
            context,
            bundle,
            &self.base,
            optional_store(context, self.with_store)?,
            false,
        )?;
        let lock = chain.bundle.available_lock()?;
        chain.check_complete(lock.entries().iter().filter(|entry| wanted(entry)))?;
        Ok((lock, chain.blobs))
    }
}
