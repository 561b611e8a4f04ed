//! WHAT IS WANTED. People write manifests; this folder reads, expands and checks them, and merges them into one list of
//! pinned items.
//!
//! Start at [`load`]. It reads each file by its `schema`, fills in variables and reads `lists` (`check`), and joins the
//! items of all files (`merge`).

mod catalogue;
mod check;
mod draft;
mod faults;
mod first;
mod import;
mod items;
mod lists;
mod load;
mod merge;
mod schema;
mod slots;
mod wanted;

#[cfg(test)]
mod tests;

pub(crate) use catalogue::{CATALOGUE, Shipped};
pub(crate) use draft::{Draft, DraftEntry, DraftItem, draft, platforms_line};
pub(crate) use first::{MORE, from_list, of_nothing};
pub(crate) use import::{IMPORTS, Imported, Source, manifest_of};
pub(crate) use lists::list_format;
pub(crate) use load::{Edited, load_edited, load_for, manifest_files};
pub use load::{Error, load};
pub(crate) use schema::Document;
pub(crate) use slots::{
    PackageVersions, Slot, Versions, list_sources, set_digest, set_version, slots, text_of,
};
pub use wanted::Wanted;
