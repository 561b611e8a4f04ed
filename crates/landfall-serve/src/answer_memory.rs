//! Limits the memory of all answers in progress.
//!
//! Blobs, lists of refs and packs are sent in pieces, but the lists of the distribution API are
//! documents that are built in memory, and a pack needs a list of its objects. Without a limit,
//! clients that request them and read nothing would fill the memory.

use crate::connections::RequestPermit;
use crate::response::{RequestError, ServerResponse};
use crate::router::overloaded;
use crate::state::ServerState;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use futures_util::stream;
use std::convert::Infallible;

/// The limit in KiB.
pub(crate) const ANSWER_MEMORY: usize = 512 << 10;
/// The number of documents that are built, or wait for memory, at once.
pub(crate) const DOCUMENTS: usize = 16;
/// The size in bytes up to which a document does not count: a connection has buffers of this size
/// anyway. It is also the size of the pieces in which a document is sent.
const PIECE: usize = 64 << 10;

/// Waits until the answers in progress leave room for one that needs `bytes` of memory. Meanwhile,
/// closes connections whose clients are stalled.
pub(crate) async fn answer_permit(
    state: &ServerState,
    bytes: u64,
) -> Result<RequestPermit, RequestError> {
    let permit = state
        .answer_memory
        .enter(&state.connections, bytes.div_ceil(1024))
        .await;
    permit.ok_or_else(|| {
        overloaded(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many large answers are in progress",
        )
    })
}

/// Returns `response`, whose body is a document in memory, when there is room for it.
pub(crate) async fn within_answer_memory(
    state: &ServerState,
    response: ServerResponse,
) -> Result<ServerResponse, RequestError> {
    let size = response.body().size_hint().exact().unwrap_or_default();
    if size <= PIECE as u64 {
        return Ok(response);
    }
    let permit = answer_permit(state, size).await?;
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await;
    let bytes = bytes.map_err(|error| RequestError::internal(error.to_string()))?;
    Ok(ServerResponse::from_parts(parts, held_body(bytes, permit)))
}

/// A body of `bytes` that holds `permit` until its last piece.
fn held_body(bytes: Bytes, permit: RequestPermit) -> Body {
    let pieces = stream::unfold((bytes, permit), async |(mut bytes, permit)| {
        if bytes.is_empty() {
            return None;
        }
        let piece = bytes.split_to(bytes.len().min(PIECE));
        Some((Ok::<_, Infallible>(piece), (bytes, permit)))
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::{ConnectionTable, RequestLimiter};
    use futures_util::StreamExt;
    use std::time::Duration;

    #[tokio::test]
    async fn a_document_counts_until_its_last_piece_is_sent_or_its_client_is_gone() {
        let connections = ConnectionTable::new(1, Duration::from_secs(9), Duration::from_secs(9));
        let memory = RequestLimiter::new(ANSWER_MEMORY);
        let bytes = Bytes::from(vec![7; 3 * PIECE + 1]);
        let body = async || {
            let size = bytes.len().div_ceil(1024) as u64;
            let permit = memory.enter(&connections, size).await.unwrap();
            held_body(bytes.clone(), permit).into_data_stream()
        };
        let mut sent = body().await;
        let mut received = Vec::new();
        while received.len() < bytes.len() {
            received.extend(sent.next().await.unwrap().unwrap());
            assert_eq!(memory.count(), 193);
        }
        assert_eq!(received, bytes);
        assert!(sent.next().await.is_none());
        assert_eq!(memory.count(), 0);
        let mut broken = body().await;
        broken.next().await.unwrap().unwrap();
        drop(broken);
        assert_eq!(memory.count(), 0);
    }
}
