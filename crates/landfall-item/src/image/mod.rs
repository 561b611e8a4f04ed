//! A container image: index, manifests, configs and layers of one repository, and the manifests
//! that refer to them.

mod kind;
mod listed;
mod locked;
mod manifest_entry;
mod manifests;
mod platforms;
mod referrer_search;
mod referrers;
mod request;
mod resolvable;
mod resolve;
mod selection;
mod signatures;
#[cfg(test)]
mod testing;
mod verify;

pub(crate) use self::kind::{blobs_of_referrers, entry, referrers_of};
pub(crate) use self::locked::blob_lines;
pub use self::locked::{LockedImage, LockedManifest, LockedReferrer, LockedTrimmedIndex};
pub(crate) use self::manifest_entry::{ImageEntry, reference_of, undecorated};
pub use self::manifest_entry::{listed, platforms, tag_of};
pub use self::manifests::ReadError;
pub(crate) use self::manifests::{read_manifest, too_large};
pub use self::request::{BundleImages, ImageRequest};
pub(crate) use self::resolvable::{check_equal_platforms, check_equal_referrers};
pub use self::selection::{OneManifest, Selection, SelectionError};
pub use self::signatures::ItemSignatureError;
pub(crate) use self::signatures::{
    download_locked, find_signatures, logged_since, verified_signatures,
};
pub(crate) use self::verify::contradictions;
