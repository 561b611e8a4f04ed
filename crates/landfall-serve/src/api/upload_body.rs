//! Writes the body of a request into an upload.

use crate::response::RequestError;
use crate::upload_sessions::LockedUpload;
use crate::writable::WritableStoreError;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::StatusCode;
use futures_util::StreamExt;
use http_body_util::LengthLimitError;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The number of bytes of a body that are collected before they are hashed and written.
const BATCH: usize = 1 << 20;
/// The maximum number of pieces that are collected: each uses memory, however small it is.
const MAX_PIECES: usize = 1024;
/// How long a client may pause before its received bytes are written, which frees their memory.
const PAUSE: Duration = Duration::from_millis(250);

/// The pieces of a body that arrived together; if the body has ended, also whether it is complete.
type BodyPieces = (Vec<Bytes>, Option<Result<(), RequestError>>);

/// Writes `body` to the upload in `slot`, and returns the slot. If the body ends early, the bytes
/// that arrived are kept. A write in progress owns the slot, so the upload survives if this future
/// is dropped because the server closes the connection.
pub(super) async fn write_body(
    mut slot: LockedUpload,
    body: Body,
) -> Result<LockedUpload, RequestError> {
    let mut stream = body.into_data_stream();
    let mut received = collect_pieces(&mut stream).await;
    loop {
        let (pieces, end) = received;
        let write = spawn_blocking(move || {
            let mut pieces = pieces.iter();
            let result: Result<(), WritableStoreError> = match slot.as_mut() {
                Some(incoming) => pieces.try_for_each(|piece| incoming.write(piece)),
                None => Ok(()),
            };
            (slot, result)
        });
        received = match &end {
            // the next pieces arrive while the previous ones are written
            None => collect_pieces(&mut stream).await,
            Some(_) => Default::default(),
        };
        let (written, result) = write
            .await
            .map_err(|stopped| RequestError::internal(stopped.to_string()))?;
        slot = written;
        result?;
        if let Some(end) = end {
            return end.map(|()| slot);
        }
    }
}

/// The next pieces of a body. The connection table ends the body of a client that stalls.
async fn collect_pieces(stream: &mut BodyDataStream) -> BodyPieces {
    let mut pieces = Vec::new();
    let mut length = 0;
    while length < BATCH && pieces.len() < MAX_PIECES {
        let next = if pieces.is_empty() {
            Ok(stream.next().await)
        } else {
            timeout(PAUSE, stream.next()).await
        };
        match next {
            Ok(Some(Ok(piece))) => {
                length += piece.len();
                pieces.push(piece);
            }
            Ok(None) => return (pieces, Some(Ok(()))),
            Ok(Some(Err(error))) => return (pieces, Some(Err(body_error(error)))),
            // the client pauses: its bytes are written, which frees their memory
            Err(_) => return (pieces, None),
        }
    }
    (pieces, None)
}

fn body_error(error: axum::Error) -> RequestError {
    let error = error.into_inner();
    if error.is::<LengthLimitError>() {
        let message = "the body is larger than the limit";
        return RequestError::new(StatusCode::PAYLOAD_TOO_LARGE, "SIZE_INVALID", message);
    }
    incomplete(format!("the body ended early: {error}"))
}

fn incomplete(message: String) -> RequestError {
    RequestError::bad_request("BLOB_UPLOAD_INVALID", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload_sessions::shared_upload;
    use crate::writable::WritableStore;
    use futures_util::stream;
    use http_body_util::Limited;
    use landfall_model::Algorithm;
    use std::io;
    use std::sync::Arc;
    use std::task::Poll;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_chunked_upload_survives_the_end_of_its_connection() {
        let dir = tempfile::tempdir().unwrap();
        let store = WritableStore::open(dir.path(), None).unwrap();
        let upload = shared_upload(store.blobs.begin(Algorithm::Sha256).unwrap());
        let is_waiting = Arc::new(Notify::new());
        let waiting = is_waiting.clone();
        let mut first = Some(Bytes::from(vec![1; BATCH]));
        let body = stream::poll_fn(move |_| match first.take() {
            Some(piece) => Poll::Ready(Some(Ok::<_, io::Error>(piece))),
            None => {
                waiting.notify_one();
                Poll::Pending
            }
        });
        let slot = upload.clone().lock_owned().await;
        let received = write_body(slot, Body::from_stream(body));
        tokio::select! {
            _ = received => panic!("the body has not ended"),
            () = is_waiting.notified() => {}
        }
        let size = upload.lock().await.as_ref().map(|incoming| incoming.size);
        assert_eq!(size, Some(BATCH as u64));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_and_an_incomplete_body_have_different_statuses() {
        let dir = tempfile::tempdir().unwrap();
        let store = WritableStore::open(dir.path(), None).unwrap();
        let broken = stream::iter([Ok(Bytes::from("abc")), Err(io::Error::other("reset"))]);
        for (body, status) in [
            (Body::from_stream(broken), StatusCode::BAD_REQUEST),
            (
                Body::new(Limited::new(Body::from("abcd"), 3)),
                StatusCode::PAYLOAD_TOO_LARGE,
            ),
        ] {
            let upload = shared_upload(store.blobs.begin(Algorithm::Sha256).unwrap());
            let slot = upload.lock_owned().await;
            let result = write_body(slot, body).await;
            assert_eq!(result.map(drop).unwrap_err().status, status);
        }
    }
}
