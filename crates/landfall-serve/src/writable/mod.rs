//! The folder of `--writable`: pushed content on disk.
//!
//! ```text
//! blobs/<algorithm>/<hex>                          content and manifests, as in an OCI layout
//! frames/<algorithm>/<hex>                         checksums of blobs larger than a frame
//! repositories/<name>/_tags/<tag>                  a digest
//! repositories/<name>/_manifests/<algorithm>/<hex> a media type
//! repositories/<name>/_referrers/<subject hex>/<hex>   an entry of a referrers response
//! incoming/                                        uploads in progress; emptied at start
//! ```
//!
//! A file is renamed to its final name after its bytes are on disk. Repository names and tags are
//! safe paths: by their grammar, no component begins with a dot, and no component of a repository
//! name begins with `_`.

mod blobs;
mod frame_checksums;
mod quota;
mod remove;
mod store;

pub(crate) use self::blobs::IncomingBlob;
pub(crate) use self::quota::WritableStoreError;
pub(crate) use self::remove::SweepResult;
pub(crate) use self::store::{WritableStore, unusable_folder};
