//! A container image: index, manifests, configs and layers of one repository, and the manifests
//! that refer to them.

mod kind;
mod locked;
mod manifest_entry;
mod manifests;
mod parts;
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
mod text;
mod verify;

pub use locked::LockedReferrer;
pub(crate) use locked::read_blobs;
pub use locked::{LockedImage, LockedManifest, LockedTrimmedIndex};
pub(crate) use manifest_entry::ImageEntry;
pub use manifest_entry::{listed, platforms, tag_of};
pub use manifests::ReadError;
pub(crate) use manifests::read_manifest;
pub(crate) use parts::{blobs_of_referrers, referrers_of};
pub use request::ImageRequest;
pub(crate) use resolvable::{check_equal_platforms, check_equal_referrers};
pub use selection::{OneManifest, Selection, SelectionError};
pub use signatures::ImageSignatureError;
pub(crate) use signatures::{download_locked, find_signatures, logged_since, verified_signatures};
pub(crate) use text::{write_blobs, write_referrers, write_verified};
pub(crate) use verify::contradictions;
