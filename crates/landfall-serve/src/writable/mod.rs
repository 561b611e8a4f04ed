//! The folder of `--writable`: what was pushed, on disk.
//!
//! ```text
//! blobs/<algorithm>/<hex>                          content, manifests too, as in an OCI layout
//! frames/<algorithm>/<hex>                         checksums of content larger than a frame, see `frame_sums`
//! repositories/<name>/_tags/<tag>                  a digest
//! repositories/<name>/_manifests/<algorithm>/<hex> a media type
//! repositories/<name>/_referrers/<hex of the subject>/<hex>   an entry of the response to a referrers request
//! incoming/                                        uploads in progress; emptied at start
//! ```
//!
//! A file gets its final name by a rename, after its bytes are on disk. Names follow the grammar of
//! repositories and tags, in which no component begins with `_` or is `..`, so that they are safe
//! paths.

mod blobs;
mod disk;
mod error;
mod frame_sums;
mod links;
mod remove;
mod room;
mod store;

pub(super) use blobs::IncomingBlob;
pub(super) use error::KeepError;
pub(super) use store::WritableStore;
