//! Blobs and manifests as responses: the requested range, the body, and the headers around it.

mod response;

pub(crate) use self::response::{BODY_PIECE, blob_response};
