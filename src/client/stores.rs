//! Object stores, through a client's transport.

use super::{Client, ClientError};
use landfall_content::Store;
use landfall_content::bucket::{Bucket, Location, wait};
use landfall_content::store::{Objects, Patience};
use std::sync::Arc;

impl Client {
    /// The folder of an object store at `location`. No request is sent.
    pub(crate) fn bucket(&self, location: &Location) -> Result<Bucket, ClientError> {
        Ok(Bucket::open(location, self.sessions().transport())?)
    }

    /// Opens the store at `location` in an object store.
    pub(crate) fn open_objects(&self, location: &Location) -> Result<Arc<dyn Store>, ClientError> {
        let bucket = self.bucket(location)?;
        let patience = Patience::new(self.max_wait());
        let objects = wait(async move { Objects::open(bucket, patience).await })?;
        Ok(Arc::new(objects))
    }
}
