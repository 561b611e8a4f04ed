//! Whether a lock contains what a text names.

use landfall_model::ImageRef;
use serde::Serialize;

/// Whether a lock contains a reference, URL, package or git repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum LockCoverage {
    /// The lock contains the reference.
    Held {
        /// The name of the item in the lock.
        item: String,
    },
    /// The lock does not contain it.
    Missing {
        /// The image to add, with its upstream host. `None` if the reference is not an
        /// image, or is a destination with no upstream repository or with several.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<ImageRef>,
        /// The URL of the file to add.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The reason, as messages show it.
        why: String,
    },
    /// The lock contains the repository, but the reference names neither a host nor a tag: a
    /// rewrite leaves it, and a node pulls the image from its default registry.
    // reports have only three states, so `Ambiguous` is serialized as `undecided`
    #[serde(rename = "undecided")]
    Ambiguous {
        /// The name of the locked item.
        item: String,
        /// The reason, and the fix.
        why: String,
    },
    /// It cannot be decided what the value names or whether the lock contains it, or the manifest
    /// accepts that the image is missing.
    Undecided {
        /// The reason, as messages show it.
        why: String,
    },
}

impl LockCoverage {
    /// Whether a node may pull the image from the internet, although the lock contains the
    /// repository.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, LockCoverage::Ambiguous { .. })
    }
}
