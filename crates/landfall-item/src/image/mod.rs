//! A container image: index, manifests, configs and layers of one repository, and what refers to
//! them.

mod kind;
mod locked;
mod manifests;
mod parts;
mod platforms;
mod referrers;
mod resolve;
mod selection;
#[cfg(test)]
mod testing;
mod text;
mod verify;
mod wish;
mod written;

pub use locked::Referrer;
pub(crate) use locked::read_blobs;
pub use locked::{Image, LockedManifest, Trimmed};
pub use manifests::ReadError;
pub(crate) use manifests::read_manifest;
pub use selection::{OneManifest, Selection, SelectionError};
pub(crate) use text::write_blobs;
pub(crate) use wish::WantedImage;
pub use written::{listed, platforms, tag_of};
