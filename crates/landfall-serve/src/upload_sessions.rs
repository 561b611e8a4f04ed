//! Uploads in progress, by id.

use crate::response::RequestError;
use crate::router::overloaded;
use crate::writable::IncomingBlob;
use http::StatusCode;
use landfall_model::locked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// How long an upload without bytes must be unused before another one may take its place.
const MIN_UNUSED: Duration = Duration::from_secs(2);
/// The same for an upload with bytes, whose client may be busy between two chunks.
const MIN_UNUSED_PARTIAL: Duration = Duration::from_mins(5);

/// The chunked uploads that clients have begun and not finished.
#[derive(Default)]
pub(crate) struct UploadSessions(Mutex<SessionsById>);

type SessionsById = HashMap<String, Arc<PushedUpload>>;

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
    /// Adds an upload to `repository` and returns its id. If `max` uploads are in progress, it
    /// takes the place of an abandoned one, or fails.
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
        let mut sessions = locked(&self.0);
        if sessions.len() >= max
            && let Some(id) = abandoned(&sessions)
        {
            sessions.remove(&id);
        }
        if sessions.len() >= max {
            return Err(overloaded(
                StatusCode::TOO_MANY_REQUESTS,
                &format!("{max} uploads are in progress"),
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
        let sessions = locked(&self.0);
        let session = sessions
            .get(id)
            // an upload belongs to one repository: its id is not valid in another one
            .filter(|session| session.repository == repository)
            .ok_or_else(unknown_upload)?;
        session.touch();
        Ok(session.clone())
    }

    pub(crate) fn count(&self) -> usize {
        locked(&self.0).len()
    }

    /// Removes uploads that were not used for `age`, with the content that they received.
    pub(crate) fn remove_expired(&self, age: Duration) {
        // a locked upload is in use by a request, which may take longer than `age`
        locked(&self.0).retain(|_, session| {
            session.incoming.try_lock().is_err() || session.unused_for() < age
        });
    }

    pub(crate) fn remove(&self, id: &str) {
        locked(&self.0).remove(id);
    }
}

/// The upload that was unused for longest, one without bytes if possible. Clients begin uploads
/// only to find out whether they may push, and do not always cancel them. Those whose connection
/// broke often begin a new upload.
fn abandoned(sessions: &SessionsById) -> Option<String> {
    let unused = sessions.iter().filter_map(|(id, session)| {
        let is_empty = session.size()? == 0;
        let unused = session.unused_for();
        let min = if is_empty {
            MIN_UNUSED
        } else {
            MIN_UNUSED_PARTIAL
        };
        (unused >= min).then_some((is_empty, unused, id))
    });
    unused.max().map(|(_, _, id)| id.clone())
}

impl PushedUpload {
    /// Restarts the expiry of the upload.
    pub(crate) fn touch(&self) {
        *locked(&self.last_used) = Instant::now();
    }

    /// The number of bytes received; `None` while a request uses the upload.
    pub(crate) fn size(&self) -> Option<u64> {
        let slot = self.incoming.try_lock().ok()?;
        slot.as_ref().map(|incoming| incoming.size)
    }

    fn unused_for(&self) -> Duration {
        locked(&self.last_used).elapsed()
    }
}

/// The error for an upload that does not exist or is complete.
pub(crate) fn unknown_upload() -> RequestError {
    RequestError::not_found(
        "BLOB_UPLOAD_UNKNOWN",
        "there is no such upload; start a new one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writable::WritableStore;
    use landfall_model::Algorithm;

    #[test]
    fn an_abandoned_upload_gives_its_place_to_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = WritableStore::open(dir.path(), None).unwrap();
        let sessions = UploadSessions::default();
        let begin = |bytes: &[u8]| {
            let mut incoming = store.blobs.begin(Algorithm::Sha256).unwrap();
            incoming.write(bytes).unwrap();
            sessions.add("a", incoming, 3)
        };
        let set_unused = |id: &str, time: Duration| {
            let session = sessions.get("a", id).unwrap();
            *locked(&session.last_used) = Instant::now().checked_sub(time).unwrap();
        };
        let partial = begin(b"abc").unwrap();
        let empty = begin(b"").unwrap();
        let used = begin(b"").unwrap();
        for id in [&partial, &empty, &used] {
            set_unused(id, MIN_UNUSED);
        }
        let session = sessions.get("a", &used).unwrap();
        let slot = session.incoming.try_lock().unwrap();
        let third = begin(b"").unwrap();
        let refused = begin(b"").unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(sessions.get("a", &empty).is_err());
        for id in [&partial, &used, &third] {
            assert!(sessions.get("a", id).is_ok());
        }
        // only uploads with bytes, or in use, are left
        set_unused(&partial, MIN_UNUSED_PARTIAL);
        let fourth = begin(b"").unwrap();
        drop(slot);
        assert!(sessions.get("a", &partial).is_err());
        for id in [&used, &third, &fourth] {
            assert!(sessions.get("a", id).is_ok());
        }
    }
}
