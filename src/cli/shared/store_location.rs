//! The store that `--store` names: a folder on disk or in an object store.

use crate::cli::shared::{CliError, Context};
use crate::client::Client;
use landfall_content::bucket::BucketLocation;
use landfall_content::store::{DiskStore, ServedStore};
use landfall_content::{BlobStore, VerifiedRead};
use landfall_model::{LAYOUT_FILE, Limits};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The location of a store.
#[derive(derive_more::Display)]
pub(crate) enum StoreLocation {
    #[display("{}", _0.display())]
    Folder(PathBuf),
    /// A folder in an object store.
    Bucket(BucketLocation),
}

impl StoreLocation {
    /// Opens the store for `client`, and the store on disk that remembers facts between runs.
    pub(crate) fn open(
        &self,
        context: &Context,
        client: &Client,
    ) -> Result<(Arc<dyn BlobStore>, DiskStore), CliError> {
        match self {
            StoreLocation::Folder(dir) => {
                let disk = DiskStore::open(dir)?;
                Ok((Arc::new(disk.clone()), disk))
            }
            StoreLocation::Bucket(location) => Ok((
                client.open_objects(location)?,
                DiskStore::open(&context.memory_dir()?)?,
            )),
        }
    }
}

impl Context {
    /// The location of the store: `--store`, `LANDFALL_STORE`, or the user's cache folder.
    pub(crate) fn store_location(&self) -> Result<StoreLocation, CliError> {
        let Some(named) = &self.global.store else {
            return Ok(StoreLocation::Folder(cache_dir()?));
        };
        match named
            .to_str()
            .filter(|text| BucketLocation::has_scheme(text))
        {
            Some(text) => {
                let location = text
                    .parse()
                    .map_err(|error| CliError::usage(format!("--store: {error}")))?;
                Ok(StoreLocation::Bucket(location))
            }
            None => Ok(StoreLocation::Folder(named.clone())),
        }
    }

    /// The folder of the store, for verbs that need a store on disk.
    pub(crate) fn store_dir(&self) -> Result<PathBuf, CliError> {
        match self.store_location()? {
            StoreLocation::Folder(dir) => Ok(dir),
            StoreLocation::Bucket(location) => Err(CliError::usage(format!(
                "this needs a store on disk, but --store names {location}"
            ))
            .with_help("name a folder with --store DIR")),
        }
    }

    /// The folder for facts that verbs remember between runs: that of the store, or the user's
    /// cache folder if the store is in an object store.
    pub(crate) fn memory_dir(&self) -> Result<PathBuf, CliError> {
        match self.store_location()? {
            StoreLocation::Folder(dir) => Ok(dir),
            StoreLocation::Bucket(_) => cache_dir(),
        }
    }

    /// Whether the store exists. If it is in an object store, it is assumed to exist, since
    /// checking needs a request.
    pub(crate) fn has_store(&self) -> bool {
        self.store_location().is_ok_and(|place| match place {
            StoreLocation::Folder(dir) => is_store(&dir),
            StoreLocation::Bucket(_) => true,
        })
    }

    /// Opens the store, which must exist. For an object store, creates a separate client.
    pub(crate) fn store(&self) -> Result<Arc<dyn BlobStore>, CliError> {
        match self.store_location()? {
            StoreLocation::Folder(dir) => Ok(Arc::new(open_existing(&dir)?)),
            StoreLocation::Bucket(location) => Ok(self
                .additional_client(self.limits)?
                .open_objects(&location)?),
        }
    }

    /// Like [`Context::store`], for callers that need [`VerifiedRead`], such as a server.
    pub(crate) fn served_store(&self) -> Result<Arc<dyn VerifiedRead>, CliError> {
        match self.store_location()? {
            StoreLocation::Folder(dir) => Ok(Arc::new(open_existing(&dir)?)),
            StoreLocation::Bucket(location) => Ok(self
                .additional_client(self.limits)?
                .open_objects(&location)?),
        }
    }

    /// Opens the part of the store that records the published lock. `limits` bounds the concurrent
    /// requests to an object store.
    pub(crate) fn published_store(&self, limits: Limits) -> Result<ServedStore, CliError> {
        match self.store_location()? {
            StoreLocation::Folder(dir) => Ok(ServedStore::Disk(open_existing(&dir)?)),
            StoreLocation::Bucket(location) => Ok(ServedStore::Bucket(
                self.additional_client(limits)?.bucket(&location)?,
            )),
        }
    }
}

/// Whether there is a store at `dir`.
pub(crate) fn is_store(dir: &Path) -> bool {
    dir.join(LAYOUT_FILE).exists()
}

/// Opens the store at `dir`, for verbs that only read it. Fails if there is none: if the path is
/// mistyped, an empty store would be created, and everything would be reported as missing.
pub(crate) fn open_existing(dir: &Path) -> Result<DiskStore, CliError> {
    check_is_store(dir)?;
    Ok(DiskStore::open(dir)?)
}

/// Fails if `dir` is not a store. Opening the folder would create an empty store in it.
pub(crate) fn check_is_store(dir: &Path) -> Result<(), CliError> {
    if is_store(dir) {
        return Ok(());
    }
    Err(CliError::usage(format!("{} is not a store", dir.display()))
        .with_help("run `landfall pull` first, or name the folder of the store with --store DIR"))
}

/// The default store in the user's cache folder.
fn cache_dir() -> Result<PathBuf, CliError> {
    match landfall_os::cache_folder(|name| std::env::var_os(name)) {
        Some(cache) => Ok(cache.join("landfall/store")),
        None => Err(CliError::usage(
            "there is no cache folder, because HOME is not set; name a store with --store DIR",
        )),
    }
}
