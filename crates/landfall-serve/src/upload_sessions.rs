//! Uploads in progress, by id.

use crate::response::RequestError;
use crate::writable::IncomingBlob;
use http::StatusCode;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// The chunked uploads that clients have begun and not finished.
#[derive(Default)]
pub(crate) struct UploadSessions(Mutex<HashMap<String, Arc<PushedUpload>>>);

/// An upload that may span several requests.
pub(crate) struct PushedUpload {
    repository: String,
    last_used: Mutex<Instant>,
    /// The content; `None` once the upload is complete.
    pub(crate) incoming: Arc<tokio::sync::Mutex<Option<IncomingBlob>>>,
}

/// The content of an upload while a request changes it.
pub(crate) type LockedUpload = OwnedMutexGuard<Option<IncomingBlob>>;

/// The content of a new upload.
pub(crate) fn shared_upload(
    incoming: IncomingBlob,
) -> Arc<tokio::sync::Mutex<Option<IncomingBlob>>> {
    Arc::new(tokio::sync::Mutex::new(Some(incoming)))
}

impl UploadSessions {
    /// Adds an upload to `repository` and returns its id. Fails if `max` uploads are in progress.
    pub(crate) fn add(
        &self,
        repository: &str,
        incoming: IncomingBlob,
        max: usize,
    ) -> Result<String, RequestError> {
        let id = incoming.id.clone();
        let session = PushedUpload {
            repository: repository.into(),
            last_used: Mutex::new(Instant::now()),
            incoming: shared_upload(incoming),
        };
        let mut sessions = self.sessions();
        if sessions.len() >= max {
            return Err(RequestError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "TOOMANYREQUESTS",
                format!("{max} uploads are in progress; finish or cancel some of them first"),
            ));
        }
        sessions.insert(id.clone(), Arc::new(session));
        Ok(id)
    }

    /// The upload to `repository` with this id.
    pub(crate) fn get(
        &self,
        repository: &str,
        id: &str,
    ) -> Result<Arc<PushedUpload>, RequestError> {
        let sessions = self.sessions();
        let session = sessions
            .get(id)
            // an upload belongs to one repository: its id is not valid in another one
            .filter(|session| session.repository == repository)
            .ok_or_else(unknown_upload)?;
        session.touch();
        Ok(session.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.sessions().len()
    }

    /// Removes uploads that were not used for `age`, with the content that they received.
    pub(crate) fn remove_expired(&self, age: Duration) {
        // a locked upload is in use by a request, which may take longer than `age`
        self.sessions().retain(|_, session| {
            session.incoming.try_lock().is_err() || session.unused_for() < age
        });
    }

    pub(crate) fn remove(&self, id: &str) {
        self.sessions().remove(id);
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<PushedUpload>>> {
        locked(&self.0)
    }
}

impl PushedUpload {
    /// Restarts the expiry of the upload.
    pub(crate) fn touch(&self) {
        *self.last_used() = Instant::now();
    }

    fn unused_for(&self) -> Duration {
        self.last_used().elapsed()
    }

    fn last_used(&self) -> MutexGuard<'_, Instant> {
        locked(&self.last_used)
    }
}

/// The error for an upload that does not exist or is complete.
pub(crate) fn unknown_upload() -> RequestError {
    RequestError::not_found(
        "BLOB_UPLOAD_UNKNOWN",
        "there is no such upload; start a new one",
    )
}
