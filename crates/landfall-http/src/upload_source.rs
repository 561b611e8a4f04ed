//! Marks requests whose response becomes the body of an upload.
//!
//! An upload holds a slot of its host while it waits for the bytes of its source, which may have
//! the same host. If the source needed slots of the same class, uploads could hold all of them and
//! wait for each other's sources. So the ordinary requests on behalf of an upload's source,
//! including redirects, take slots of [`SlotClass::UploadSource`](crate::SlotClass).
//!
//! The mark is local to a task, because a source does not know what its bytes are used for. A
//! spawned task gets it by [`inherit_upload_mark`].

use super::body::ByteStream;
use futures_util::StreamExt;
use futures_util::future::Either;

tokio::task_local! {
    static READS_FOR_UPLOAD: ();
}

/// Whether this task reads for an upload.
pub(super) fn is_reading_for_upload() -> bool {
    READS_FOR_UPLOAD.try_with(|()| ()).is_ok()
}

/// Marks the requests that `opening` sends to open the source of an upload.
pub async fn read_for_upload<T>(opening: impl Future<Output = T>) -> T {
    READS_FOR_UPLOAD.scope((), opening).await
}

/// Marks the requests that `stream` sends, for example to resume a response that broke off.
pub fn stream_for_upload(mut stream: ByteStream) -> ByteStream {
    // a stream is polled by reqwest, outside of any scope, so each poll sets the mark itself
    futures_util::stream::poll_fn(move |context| {
        READS_FOR_UPLOAD.sync_scope((), || stream.poll_next_unpin(context))
    })
    .boxed()
}

/// Copies the mark of the current task to `task`, which is going to be spawned.
pub fn inherit_upload_mark<T>(
    task: impl Future<Output = T> + Send,
) -> impl Future<Output = T> + Send {
    if is_reading_for_upload() {
        Either::Left(READS_FOR_UPLOAD.scope((), task))
    } else {
        Either::Right(task)
    }
}
