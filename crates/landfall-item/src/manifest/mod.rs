//! WHAT IS WANTED. People write manifests; this folder reads, expands and checks them, and merges
//! them into one list of pinned items.
//!
//! Start at [`load`]. It reads each file by its `schema`, fills in variables and reads `lists`
//! (`check`), and joins the items of all files (`merge`).

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

pub use catalogue::{CATALOGUE, Shipped};
pub use draft::{Draft, DraftEntry, DraftItem, draft, platforms_line};
pub use first::{MORE, from_list, of_nothing};
pub use import::{IMPORTS, Imported, Source, manifest_of};
pub use lists::list_format;
pub use load::{Edited, load_edited, load_for, manifest_files};
pub use load::{Error, load};
pub use schema::Document;
pub use slots::{
    PackageVersions, Slot, Versions, list_sources, set_digest, set_version, slots, text_of,
};
pub use wanted::Wanted;
