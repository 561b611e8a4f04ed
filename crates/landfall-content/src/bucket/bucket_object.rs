//! The metadata that an object store reports about an object, and the conditions and results of
//! requests.

use bytes::Bytes;
use std::time::SystemTime;

/// The metadata that an object store reports about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketObject {
    /// The key, relative to the folder.
    pub key: String,
    /// The size of the object in bytes.
    pub size: u64,
    /// The etag, which changes with the content.
    pub etag: Option<String>,
    /// The version or generation. Conditions of Google Cloud Storage use it, those of other stores
    /// use the etag.
    pub version: Option<String>,
    /// When the object was written, by the clock of the store.
    pub modified: SystemTime,
}

/// Identifies one write of an object, as far as the store distinguishes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    pub(super) etag: Option<String>,
    pub(super) version: Option<String>,
}

impl BucketObject {
    /// Returns the version for [`PutCondition::IfSame`].
    pub fn version(&self) -> ObjectVersion {
        ObjectVersion {
            etag: self.etag.clone(),
            version: self.version.clone(),
        }
    }
}

/// The condition under which an object is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutCondition {
    /// No condition: an existing object is replaced.
    Always,
    /// Only if no object has this key.
    IfAbsent,
    /// Only if the object still has this version.
    IfSame(ObjectVersion),
}

/// The result of a conditional write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was written and has this version.
    Written(ObjectVersion),
    /// The condition does not hold.
    Refused,
}

/// The result of a request that reads an object only if it has changed.
#[derive(Debug)]
pub enum ConditionalGet {
    /// The object still has the etag.
    Unchanged,
    /// The object has another etag, or the request named none. With the content of the object.
    Changed(Bytes, BucketObject),
    /// The object does not exist.
    Missing,
}
