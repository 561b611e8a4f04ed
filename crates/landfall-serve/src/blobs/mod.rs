//! Blobs and manifests as responses: the requested range, the body, and the headers around it.

mod body;
mod range;
mod response;

pub(crate) use body::BODY_PIECE;
pub(crate) use response::blob_response;
