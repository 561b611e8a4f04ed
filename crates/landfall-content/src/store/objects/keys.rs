//! The keys of the store in a bucket.

use landfall_model::Digest;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder of lists of present blobs.
pub(super) const INDEX: &str = "index";
/// The folder of locks that runs use.
pub(super) const CLAIMS: &str = "claims";
/// The folder of lists of blobs that a later `gc` may delete.
pub(super) const CONDEMNED: &str = "condemned";
/// The folder of lists of blobs that a `gc` is deleting.
pub(super) const DELETING: &str = "deleting";
/// The folder of records of uploads in progress.
pub(super) const UPLOADS: &str = "uploads";

/// Returns the key of a blob.
pub(super) fn blob(digest: &Digest) -> String {
    digest.layout_path()
}

/// Returns the key of the record of a blob's upload.
pub(super) fn upload(digest: &Digest) -> String {
    format!("{UPLOADS}/{}/{}", digest.algorithm().as_str(), digest.hex())
}

/// Returns the key of an object in `folder` that is named by a digest.
pub(super) fn named(folder: &str, digest: &Digest) -> String {
    format!("{folder}/{}", digest.hex())
}

/// Like [`named`], with a suffix that no other process uses.
pub(super) fn named_apart(folder: &str, digest: &Digest) -> String {
    format!("{}-{}", named(folder, digest), unique())
}

/// Returns the key of the claim that all runs with this lock write in the hour of `now`.
/// The claim of a past hour is never written again, so a `gc` that deletes it cannot delete the
/// claim of a run that has just begun.
pub(super) fn claim(fingerprint: &Digest, now: SystemTime) -> String {
    let hour = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 3600;
    format!("{}-{hour}", named(CLAIMS, fingerprint))
}

/// Returns the hex digest in the key of a named object, or `None` if landfall does not write such
/// keys.
pub(super) fn hex_of(key: &str) -> Option<&str> {
    let (_, name) = key.split_once('/')?;
    // without the suffix of claims and markers
    let hex = name.split_once('-').map_or(name, |(hex, _)| hex);
    (hex.len() == 64 && hex.bytes().all(|c| c.is_ascii_hexdigit())).then_some(hex)
}

/// Returns the digest in the key of a blob or an upload record in `folder`.
pub(super) fn content_of(folder: &str, key: &str) -> Option<Digest> {
    let (algorithm, hex) = key
        .strip_prefix(folder)?
        .strip_prefix('/')?
        .split_once('/')?;
    format!("{algorithm}:{hex}").parse().ok()
}

/// Returns a string that no other process generates.
pub(super) fn unique() -> String {
    // the standard library seeds `RandomState` from the random numbers of the system
    format!("{:016x}", RandomState::new().hash_one(0))
}
