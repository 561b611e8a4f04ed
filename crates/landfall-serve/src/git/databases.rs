//! The objects of the repositories that were requested most recently.

use crate::response::RequestError;
use landfall_git::ObjectDatabase;
use landfall_model::Digest;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The maximum number of open repositories. Each needs about 100 bytes per object, and a cache.
const MAX_OPEN: usize = 8;

/// The objects of the repositories that were requested most recently, by the digests of the
/// repositories. They stay open, because opening a repository reads and hashes all its objects.
#[derive(Default)]
pub(crate) struct GitDatabases(Mutex<Vec<(Digest, Arc<ObjectDatabase>)>>);

impl GitDatabases {
    /// The objects of the repository `digest`. If the repository is not open yet, `open` reads
    /// them.
    pub(super) async fn get_or_open<F>(
        &self,
        digest: &Digest,
        open: impl FnOnce() -> F,
    ) -> Result<Arc<ObjectDatabase>, RequestError>
    where
        F: Future<Output = Result<ObjectDatabase, RequestError>>,
    {
        // locked while a repository is opened: a second one would compete for disk and processors
        let mut known = self.0.lock().await;
        let database = match known.iter().position(|(other, _)| other == digest) {
            Some(at) => known.remove(at).1,
            None => Arc::new(open().await?),
        };
        known.truncate(MAX_OPEN - 1);
        known.insert(0, (digest.clone(), database.clone()));
        Ok(database)
    }
}
