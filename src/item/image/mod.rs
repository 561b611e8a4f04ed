//! A container image: index, manifests, configs and layers of one repository, and what refers to them.

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
pub(in crate::item) use locked::read_blobs;
pub use locked::{Image, LockedManifest, Trimmed};
pub(crate) use manifests::ReadError;
pub(in crate::item) use manifests::read_manifest;
pub(crate) use selection::{OneManifest, Selection, SelectionError};
pub(in crate::item) use text::write_blobs;
pub(in crate::item) use wish::WantedImage;
pub(crate) use written::{listed, platforms, tag_of};
