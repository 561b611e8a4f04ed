//! Keys of the store in a bucket.

use landfall_model::Digest;
use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// Lists of content that is there.
pub(super) const INDEX: &str = "index";
/// Locks of runs.
pub(super) const CLAIMS: &str = "claims";
/// Lists of content that is to be deleted.
pub(super) const CONDEMNED: &str = "condemned";
/// Lists of content that a `gc` is deleting.
pub(super) const DELETING: &str = "deleting";
/// Records of uploads under way.
pub(super) const UPLOADS: &str = "uploads";

/// Where content stands.
pub(super) fn blob(digest: &Digest) -> String {
    digest.layout_path()
}

/// Where the record of its upload stands.
pub(super) fn upload(digest: &Digest) -> String {
    format!("{UPLOADS}/{}/{}", digest.algorithm().as_str(), digest.hex())
}

/// An object of `folder` that is called by a digest.
pub(super) fn named(folder: &str, digest: &Digest) -> String {
    format!("{folder}/{}", digest.hex())
}

/// As [`named`], of a process alone.
pub(super) fn named_apart(folder: &str, digest: &Digest) -> String {
    format!("{}-{}", named(folder, digest), unique())
}

/// The claim of the runs of an hour that want the lock with this fingerprint. One of an hour that
/// is over is never written again, so that a `gc` which deletes it cannot delete that of a run
/// which begins meanwhile.
pub(super) fn claim(fingerprint: &Digest, now: SystemTime) -> String {
    let hour = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 3600;
    format!("{}-{hour}", named(CLAIMS, fingerprint))
}

/// The digest in hex by which an object of a folder is called; `None` where its key is none that
/// landfall writes.
pub(super) fn hex_of(key: &str) -> Option<&str> {
    let (_, name) = key.split_once('/')?;
    let hex = name.split_once('-').map_or(name, |(hex, _)| hex);
    (hex.len() == 64 && hex.bytes().all(|c| c.is_ascii_hexdigit())).then_some(hex)
}

/// The content whose blob, or record of an upload, has this key in `folder`.
pub(super) fn content_of(folder: &str, key: &str) -> Option<Digest> {
    let (algorithm, hex) = key
        .strip_prefix(folder)?
        .strip_prefix('/')?
        .split_once('/')?;
    format!("{algorithm}:{hex}").parse().ok()
}

/// Text that no other process has.
pub(super) fn unique() -> String {
    format!("{:016x}", RandomState::new().hash_one(0))
}
