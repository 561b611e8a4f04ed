//! The git repositories that were requested most recently, with their objects and refs.

use crate::response::RequestError;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use landfall_git::{GitContentCache, OfferedRepository};
use landfall_model::{Digest, locked};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// The maximum number of objects of all open repositories, unless one alone has more. Each needs
/// about 100 bytes.
const MAX_OBJECTS: usize = 4_000_000;
/// The maximum number of repositories that are opened at once. Each may hold a few large objects
/// meanwhile; further repositories wait, but open ones never do.
const MAX_OPENING: usize = 4;

/// The repositories that were requested most recently, by their digests. They stay open, because
/// opening a repository reads and hashes all its objects.
#[derive(Clone)]
pub(crate) struct GitDatabases {
    /// The repositories that are open or being opened, the last one requested first.
    known: Arc<Mutex<Vec<(Digest, OpeningRepository)>>>,
    opening: Arc<Semaphore>,
    /// The contents of objects. All repositories share its limit.
    pub(super) contents: GitContentCache,
}

/// Becomes the repository when it is open. All requests for it wait for the same task.
type OpeningRepository = Shared<BoxFuture<'static, Result<Arc<OfferedRepository>, RequestError>>>;

impl Default for GitDatabases {
    fn default() -> GitDatabases {
        GitDatabases {
            known: Arc::default(),
            opening: Arc::new(Semaphore::new(MAX_OPENING)),
            contents: GitContentCache::default(),
        }
    }
}

impl GitDatabases {
    /// The repository `digest`. If it is not open yet, `open` reads its objects, in a task of its
    /// own: a client that disconnects again and again would otherwise start the work anew each
    /// time.
    pub(super) async fn get_or_open<F>(
        &self,
        digest: &Digest,
        open: impl FnOnce() -> F,
    ) -> Result<Arc<OfferedRepository>, RequestError>
    where
        F: Future<Output = Result<OfferedRepository, RequestError>> + Send + 'static,
    {
        let opening = self.known_or_started(digest, open);
        let opened = opening.await;
        self.forget_oldest();
        opened
    }

    /// The repository `digest`, which then counts as the last one requested.
    fn known_or_started<F>(&self, digest: &Digest, open: impl FnOnce() -> F) -> OpeningRepository
    where
        F: Future<Output = Result<OfferedRepository, RequestError>> + Send + 'static,
    {
        let mut known = locked(&self.known);
        if let Some(at) = known.iter().position(|(known, _)| known == digest) {
            known[..=at].rotate_right(1);
            return known[0].1.clone();
        }
        let permit = self.opening.clone().acquire_owned();
        let open = open();
        let task = tokio::spawn(async move {
            let _permit = permit.await;
            open.await.map(Arc::new)
        });
        let opening = async { task.await.unwrap_or_else(|stopped| Err(stopped.into())) };
        let opening = opening.boxed().shared();
        known.insert(0, (digest.clone(), opening.clone()));
        // the clients may all disconnect before the repository is open: without this task, nothing
        // would take its result, and it would stay open beyond the limit, or failed
        let (ending, databases) = (opening.clone(), self.clone());
        tokio::spawn(async move {
            drop(ending.await);
            databases.forget_oldest();
        });
        opening
    }

    /// Closes the repositories that were not requested for longest, down to the limit of objects,
    /// and forgets those that could not be opened.
    fn forget_oldest(&self) {
        let mut objects = 0;
        locked(&self.known).retain(|(_, opening)| match opening.peek() {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(repository)) => {
                let is_first = objects == 0;
                objects += repository.database.len();
                is_first || objects <= MAX_OBJECTS
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_git::ObjectDatabase;
    use landfall_model::Limits;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn empty() -> OfferedRepository {
        let database = ObjectDatabase::new(Limits::default());
        OfferedRepository::new(database, Vec::new(), Vec::new())
    }

    #[tokio::test]
    async fn a_repository_whose_clients_disconnect_is_opened_once_and_delays_no_other() {
        let databases = GitDatabases::default();
        let slow = Digest::sha256(b"slow");
        let opened = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(Semaphore::new(0));
        let slowly = || {
            let opened = opened.clone();
            let gate = gate.clone();
            async move {
                opened.fetch_add(1, Ordering::Relaxed);
                gate.acquire().await.unwrap().forget();
                Ok(empty())
            }
        };
        for number in 0..3_u8 {
            let request = databases.get_or_open(&slow, slowly);
            tokio::select! {
                biased;
                _ = request => panic!("the repository cannot be open yet"),
                () = tokio::task::yield_now() => {}
            }
            // another repository does not wait for the one that is being opened
            let other = Digest::sha256(&[number]);
            let at_once = || std::future::ready(Ok(empty()));
            databases.get_or_open(&other, at_once).await.unwrap();
        }
        gate.add_permits(1);
        databases.get_or_open(&slow, slowly).await.unwrap();
        assert_eq!(opened.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_repository_that_failed_after_its_client_disconnected_is_opened_again() {
        let databases = GitDatabases::default();
        let failing = Digest::sha256(b"failing");
        let fail = || std::future::ready(Err(RequestError::internal("damaged")));
        tokio::select! {
            biased;
            _ = databases.get_or_open(&failing, fail) => panic!("the task cannot have run yet"),
            () = std::future::ready(()) => {}
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let succeed = || std::future::ready(Ok(empty()));
        assert!(databases.get_or_open(&failing, succeed).await.is_ok());
    }

    #[tokio::test]
    async fn many_small_repositories_stay_open_and_one_that_failed_is_opened_again() {
        let databases = GitDatabases::default();
        let opened = AtomicUsize::new(0);
        for _ in 0..2 {
            for number in 0..100_u8 {
                let open = || {
                    opened.fetch_add(1, Ordering::Relaxed);
                    std::future::ready(Ok(empty()))
                };
                let digest = Digest::sha256(&[number]);
                databases.get_or_open(&digest, open).await.unwrap();
            }
        }
        assert_eq!(opened.load(Ordering::Relaxed), 100);
        let failing = Digest::sha256(b"failing");
        let fail = || std::future::ready(Err(RequestError::internal("damaged")));
        assert!(databases.get_or_open(&failing, fail).await.is_err());
        let succeed = || std::future::ready(Ok(empty()));
        assert!(databases.get_or_open(&failing, succeed).await.is_ok());
    }
}
