//! The store that `--store` names: a folder, or a folder of an object store.

use crate::cli::shared::{Context, Failure};
use crate::client::{Client, ClientError};
use landfall_content::Store;
use landfall_content::bucket::{Location, wait};
use landfall_content::store::{Disk, Objects, Patience};
use landfall_model::LAYOUT_FILE;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the store is.
pub(crate) enum StorePlace {
    /// A folder on disk.
    Folder(PathBuf),
    /// A folder of an object store.
    Bucket(Location),
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::Folder(dir) => dir.display().fmt(f),
            StorePlace::Bucket(location) => location.fmt(f),
        }
    }
}

impl StorePlace {
    /// Opens the store for `client`, and the store on disk that keeps what a verb remembers between
    /// runs.
    ///
    /// # Errors
    /// When one of them cannot be opened.
    pub(crate) fn open(
        &self,
        context: &Context,
        client: &Client,
    ) -> Result<(Arc<dyn Store>, Disk), Failure> {
        match self {
            StorePlace::Folder(dir) => {
                let disk = Disk::open(dir)?;
                Ok((Arc::new(disk.clone()), disk))
            }
            StorePlace::Bucket(location) => Ok((
                open_objects(client, location)?,
                Disk::open(&context.memory_dir()?)?,
            )),
        }
    }
}

impl Context {
    /// Where the store is: `--store`, `LANDFALL_STORE`, or the user's cache folder.
    ///
    /// # Errors
    /// When none of them is known, or it is no place in an object store though it is meant as one
    /// (exit 2).
    pub(crate) fn store_place(&self) -> Result<StorePlace, Failure> {
        let Some(named) = &self.global.store else {
            return Ok(StorePlace::Folder(cache_dir()?));
        };
        match named.to_str().filter(|text| Location::is_meant(text)) {
            Some(text) => {
                let location = text
                    .parse()
                    .map_err(|error| Failure::usage(format!("--store: {error}")))?;
                Ok(StorePlace::Bucket(location))
            }
            None => Ok(StorePlace::Folder(named.clone())),
        }
    }

    /// The folder of the store, for what needs one on disk.
    ///
    /// # Errors
    /// As [`Context::store_place`]; and when the store is in an object store (exit 2).
    pub(crate) fn store_dir(&self) -> Result<PathBuf, Failure> {
        match self.store_place()? {
            StorePlace::Folder(dir) => Ok(dir),
            StorePlace::Bucket(location) => Err(Failure::usage(format!(
                "this needs a store on disk, and --store names {location}; name a folder with --store DIR"
            ))),
        }
    }

    /// The folder for what a verb remembers between runs: the store's, or the user's cache folder
    /// where the store is in an object store.
    ///
    /// # Errors
    /// As [`Context::store_place`].
    pub(crate) fn memory_dir(&self) -> Result<PathBuf, Failure> {
        match self.store_place()? {
            StorePlace::Folder(dir) => Ok(dir),
            StorePlace::Bucket(_) => cache_dir(),
        }
    }

    /// Whether the store has been made. One in an object store is, as far as nobody looks.
    pub(crate) fn has_store(&self) -> bool {
        self.store_place().is_ok_and(|place| match place {
            StorePlace::Folder(dir) => dir.join(LAYOUT_FILE).exists(),
            StorePlace::Bucket(_) => true,
        })
    }

    /// Opens the store.
    ///
    /// # Errors
    /// As [`Context::store_place`]; and when it cannot be opened.
    pub(crate) fn store(&self) -> Result<Arc<dyn Store>, Failure> {
        match self.store_place()? {
            StorePlace::Folder(dir) => Ok(Arc::new(Disk::open(&dir)?)),
            StorePlace::Bucket(location) => {
                open_objects(&self.client_beside(self.limits)?, &location)
            }
        }
    }
}

/// Opens the store at `location` in an object store.
///
/// # Errors
/// When it cannot be opened.
pub(crate) fn open_objects(
    client: &Client,
    location: &Location,
) -> Result<Arc<dyn Store>, Failure> {
    let (bucket, patience) = (client.bucket(location)?, Patience::new(client.max_wait()));
    let objects = wait(async move { Objects::open(bucket, patience).await });
    Ok(Arc::new(objects.map_err(ClientError::from)?))
}

/// The user's cache folder for a store.
fn cache_dir() -> Result<PathBuf, Failure> {
    let env = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = env("XDG_CACHE_HOME").or_else(|| env("HOME").map(|home| home.join(".cache")));
    let missing = || {
        Failure::usage("there is no cache folder (HOME is not set); name a store with --store DIR")
    };
    Ok(cache.ok_or_else(missing)?.join("landfall/store"))
}
