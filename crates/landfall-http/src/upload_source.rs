//! Marks requests whose answers become the body of an upload.
//!
//! The upload holds a slot of its host while it waits for these bytes, and its host may be theirs
//! too. So all requests that are made on its behalf (those for tokens and redirects included) take
//! slots of their own. The mark is local to a task, since a source does not know what its bytes are
//! for; [`inherit_upload_mark`] hands it on to a task that is spawned.

use super::body::ByteStream;
use futures_util::StreamExt;
use futures_util::future::Either;

tokio::task_local! {
    static FEEDS_UPLOAD: ();
}

/// Whether this task reads for an upload.
pub(super) fn is_reading_for_upload() -> bool {
    FEEDS_UPLOAD.try_with(|()| ()).is_ok()
}

/// Marks the requests of `opening`.
pub async fn read_for_upload<T>(opening: impl Future<Output = T>) -> T {
    FEEDS_UPLOAD.scope((), opening).await
}

/// Marks the requests that `stream` makes when its source breaks off and is opened again.
pub fn stream_for_upload(mut stream: ByteStream) -> ByteStream {
    futures_util::stream::poll_fn(move |context| {
        FEEDS_UPLOAD.sync_scope((), || stream.poll_next_unpin(context))
    })
    .boxed()
}

/// `task` with the mark of the task that spawns it.
pub fn inherit_upload_mark<T>(
    task: impl Future<Output = T> + Send,
) -> impl Future<Output = T> + Send {
    if is_reading_for_upload() {
        Either::Left(FEEDS_UPLOAD.scope((), task))
    } else {
        Either::Right(task)
    }
}
