//! The store as the place that a pull brings content to.

use super::sink::ObjectSink;
use super::state::{Objects, refused};
use crate::bucket::wait;
use crate::{BlobRead, Entry, IdleSlots, Sink, Store, WriteError};
use bytes::Bytes;
use landfall_model::{Descriptor, Digest, Limits};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Content after which a list of it is written.
const LIST_EVERY: usize = 1000;

impl Store for Objects {
    fn holds(&self, descriptor: &Descriptor, rehash: bool) -> Result<bool, WriteError> {
        let (this, digest) = (self.clone(), descriptor.digest.clone());
        if rehash {
            self.forget(&digest);
        }
        let size = wait(async move { this.look(&digest).await }).map_err(refused)?;
        if size != Some(descriptor.size) || !rehash {
            return Ok(size == Some(descriptor.size));
        }
        let sound = self.is_sound(&descriptor.digest);
        let is_good = match sound {
            Ok(is_sound) => is_sound,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => false,
            Err(error) => return Err(WriteError::Refused(error.to_string())),
        };
        if !is_good {
            // to be written anew, over what stands there
            self.distrust(&descriptor.digest);
        }
        Ok(is_good)
    }

    fn must_hash(&self, _: &Descriptor, rehash: bool) -> bool {
        rehash
    }

    fn held(&self, wanted: Vec<Descriptor>) -> Result<HashSet<Digest>, WriteError> {
        let this = self.clone();
        wait(async move { this.find(wanted).await }).map_err(refused)
    }

    fn take(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), WriteError> {
        let (this, descriptor, bytes) = (
            self.clone(),
            descriptor.clone(),
            Bytes::copy_from_slice(bytes),
        );
        let taking = async move {
            Ok(
                match this.look(&descriptor.digest).await? == Some(descriptor.size) {
                    true => Ok(()),
                    false => this.put(&descriptor, bytes).await,
                },
            )
        };
        wait(taking).map_err(refused)?
    }

    fn sink(self: Arc<Self>, _: Limits, _: Option<IdleSlots>) -> Arc<dyn Sink> {
        Arc::new(ObjectSink((*self).clone()))
    }

    fn settled(&self, descriptor: &Descriptor) {
        self.note(&descriptor.digest, descriptor.size);
        if self.unlisted() < LIST_EVERY {
            return;
        }
        let this = self.clone();
        // a list that cannot be written now is written at the end, or not: then each is looked for
        drop(wait(async move {
            tokio::spawn(async move { this.list(LIST_EVERY).await });
            Ok(())
        }));
    }

    fn doubt_lists(&self) {
        Objects::doubt_lists(self);
    }

    fn claim(
        &self,
        fingerprint: &Digest,
        lock: &str,
        wanted: BTreeSet<Digest>,
    ) -> Result<(), WriteError> {
        let (this, fingerprint) = (self.clone(), fingerprint.clone());
        let lock = Bytes::copy_from_slice(lock.as_bytes());
        wait(async move { this.claim((&fingerprint, lock), &wanted).await }).map_err(refused)
    }

    fn name(&self, _: &mut dyn Iterator<Item = Entry>) -> Result<(), WriteError> {
        // names are in locks: one object that all shards write would be what they wait for
        let this = self.clone();
        wait(async move { this.list(1).await }).map_err(refused)
    }
}
