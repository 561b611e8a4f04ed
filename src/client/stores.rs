//! Object stores, through a client's transport.

use super::{Client, ClientError};
use landfall_content::bucket::{Bucket, Location};

impl Client {
    /// The folder of an object store at `location`. No request is sent.
    ///
    /// # Errors
    /// A setting of the environment that cannot be used.
    pub(crate) fn bucket(&self, location: &Location) -> Result<Bucket, ClientError> {
        Ok(Bucket::open(location, self.sessions().transport())?)
    }
}
