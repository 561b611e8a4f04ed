//! Uploads in progress, by id: how many may be open, and which broke off for good.

use super::response::ApiError;
use super::writable::IncomingBlob;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Uploads in progress, by id.
#[derive(Default)]
pub(super) struct Uploads(Mutex<HashMap<String, Arc<Session>>>);

pub(super) struct Session {
    repository: String,
    used: Mutex<Instant>,
    /// `None` after the upload is kept.
    pub(super) incoming: tokio::sync::Mutex<Option<IncomingBlob>>,
}

impl Uploads {
    pub(super) fn add(
        &self,
        repository: &str,
        incoming: IncomingBlob,
        most: usize,
    ) -> Result<String, ApiError> {
        let id = incoming.id();
        let session = Session {
            repository: repository.into(),
            used: Mutex::new(Instant::now()),
            incoming: tokio::sync::Mutex::new(Some(incoming)),
        };
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= most {
            let message = format!("{most} uploads are open already; end or cancel some");
            return Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "TOOMANYREQUESTS",
                message,
            ));
        }
        sessions.insert(id.clone(), Arc::new(session));
        Ok(id)
    }

    pub(super) fn get(&self, repository: &str, id: &str) -> Result<Arc<Session>, ApiError> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions
            .get(id)
            .filter(|session| session.repository == repository);
        let session = session.ok_or_else(unknown)?;
        session.touch();
        Ok(session.clone())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Removes those that nobody has used for `age`, and what came in of them.
    pub(super) fn reap(&self, age: Duration) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // one that a request has in hand is in use, however long
        sessions
            .retain(|_, session| session.incoming.try_lock().is_err() || session.unused() < age);
    }

    pub(super) fn remove(&self, id: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }
}

impl Session {
    /// It is used now.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn unused(&self) -> Duration {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }
}

pub(super) fn unknown() -> ApiError {
    ApiError::not_found(
        "BLOB_UPLOAD_UNKNOWN",
        "there is no such upload; begin a new one",
    )
}
