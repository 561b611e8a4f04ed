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
pub use locked::{Image, LockedManifest, Trimmed};
pub(crate) use manifests::ReadError;
pub(crate) use selection::{OneManifest, Selection, SelectionError};
pub(crate) use written::{listed, platforms, tag_of};
