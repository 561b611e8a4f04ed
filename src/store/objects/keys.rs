//! Keys of the store in a bucket.

use crate::model::Digest;

/// Lists of content that is there.
pub(super) const INDEX: &str = "index";
/// Locks of runs.
pub(super) const CLAIMS: &str = "claims";
/// Lists of content that is to be deleted.
pub(super) const CONDEMNED: &str = "condemned";

/// Where content stands.
pub(super) fn blob(digest: &Digest) -> String {
    digest.layout_path()
}

/// Where the record of its upload stands.
pub(super) fn upload(digest: &Digest) -> String {
    format!("uploads/{}/{}", digest.algorithm().as_str(), digest.hex())
}

/// An object of `folder` that is called by a digest.
pub(super) fn named(folder: &str, digest: &Digest) -> String {
    format!("{folder}/{}", digest.hex())
}

/// The content whose blob has this key.
pub(super) fn content_of(key: &str) -> Option<Digest> {
    let (algorithm, hex) = key.strip_prefix("blobs/")?.split_once('/')?;
    format!("{algorithm}:{hex}").parse().ok()
}
