//! Opens object stores through a client's transport.

use super::{Client, ClientError};
use landfall_content::bucket::{Bucket, BucketLocation, block_on};
use landfall_content::store::{BucketStore, StoreTimeouts};
use std::sync::Arc;

impl Client {
    /// Returns the folder that `location` names in an object store. Sends no request.
    pub(crate) fn bucket(&self, location: &BucketLocation) -> Result<Bucket, ClientError> {
        Ok(Bucket::open(location, self.sessions().transport())?)
    }

    /// Opens the store at `location` in an object store.
    pub(crate) fn open_objects(
        &self,
        location: &BucketLocation,
    ) -> Result<Arc<BucketStore>, ClientError> {
        let bucket = self.bucket(location)?;
        let timeouts = StoreTimeouts::new(self.max_wait());
        let store = block_on(async move { BucketStore::open(bucket, timeouts).await })?;
        Ok(Arc::new(store))
    }
}
