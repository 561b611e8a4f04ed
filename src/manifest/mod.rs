//! WHAT IS WANTED. People write manifests; here they are read, expanded, checked and merged into one
//! list of pinned items.
//!
//! [`load`] is the way in. Each file is read by its schema, its variables are filled in and its lists
//! read (`check`), and what all files want is put together (`merge`).

mod check;
mod draft;
mod items;
mod lists;
mod load;
mod merge;
mod schema;
mod source_text;
mod value;
mod vars;
mod wanted;

#[cfg(test)]
mod tests;

pub use draft::{Wanting, Wish, draft};
pub use load::{Error, load};
pub use schema::Document;
pub use wanted::{Checksum, Endpoint, Location, Wanted, WantedFile, WantedImage};
