//! The objects of the repositories that were requested most recently.

use crate::response::RequestError;
use landfall_git::ObjectDatabase;
use landfall_model::Digest;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of open repositories. Each needs about 100 bytes per object, and a cache.
const MAX_OPEN: usize = 8;

/// The objects of the repositories that were requested most recently, by the digests of the
/// repositories. They stay open, because opening a repository reads and hashes all its objects.
#[derive(Clone, Default)]
pub(crate) struct GitDatabases {
    known: Arc<Mutex<Vec<OpenRepository>>>,
    /// Locked while a repository is opened: opening a second repository at the same time would
    /// compete for disk and processors.
    opening: Arc<tokio::sync::Mutex<()>>,
}

struct OpenRepository {
    digest: Digest,
    database: Arc<ObjectDatabase>,
}

impl GitDatabases {
    /// The objects of the repository `digest`. If the repository is not open yet, `open` reads
    /// them, in a task of its own: a client that disconnects again and again would otherwise start
    /// the work anew each time.
    pub(super) async fn get_or_open<F>(
        &self,
        digest: &Digest,
        open: impl FnOnce() -> F,
    ) -> Result<Arc<ObjectDatabase>, RequestError>
    where
        F: Future<Output = Result<ObjectDatabase, RequestError>> + Send + 'static,
    {
        if let Some(database) = self.known(digest) {
            return Ok(database);
        }
        let turn = self.opening.clone().lock_owned().await;
        // another request may have opened it meanwhile
        if let Some(database) = self.known(digest) {
            return Ok(database);
        }
        let databases = self.clone();
        let digest = digest.clone();
        let opened = open();
        let task = tokio::spawn(async move {
            let database = Arc::new(opened.await?);
            databases.remember(digest, database.clone());
            drop(turn);
            Ok(database)
        });
        task.await
            .unwrap_or_else(|error| Err(RequestError::internal(error.to_string())))
    }

    /// The objects of `digest` if the repository is open. It then counts as the last one requested.
    fn known(&self, digest: &Digest) -> Option<Arc<ObjectDatabase>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|open| open.digest == *digest)?;
        known[..=at].rotate_right(1);
        Some(known[0].database.clone())
    }

    fn remember(&self, digest: Digest, database: Arc<ObjectDatabase>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(MAX_OPEN - 1);
        known.insert(0, OpenRepository { digest, database });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Limits;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    #[tokio::test]
    async fn a_repository_whose_clients_disconnect_is_opened_once_and_delays_no_open_one() {
        let databases = GitDatabases::default();
        let open_one = Digest::sha256(b"open");
        let slow = Digest::sha256(b"slow");
        let opened = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let at_once = || std::future::ready(Ok(ObjectDatabase::new(Limits::default())));
        databases.get_or_open(&open_one, at_once).await.unwrap();

        let slowly = || {
            let opened = opened.clone();
            let gate = gate.clone();
            async move {
                opened.fetch_add(1, Ordering::Relaxed);
                gate.acquire().await.unwrap().forget();
                Ok(ObjectDatabase::new(Limits::default()))
            }
        };
        for _ in 0..3 {
            let request = databases.get_or_open(&slow, slowly);
            tokio::select! {
                biased;
                _ = request => panic!("the repository cannot be open yet"),
                () = tokio::task::yield_now() => {}
            }
            // an open repository does not wait for the one that is being opened
            databases.get_or_open(&open_one, at_once).await.unwrap();
        }
        gate.add_permits(1);
        databases.get_or_open(&slow, slowly).await.unwrap();
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }
}
