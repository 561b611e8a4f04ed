//! What a lock names, as the lists of other tools. Each form is a file here and a row of `table`.

mod form;
mod hauler;
mod images_txt;
mod imgpkg_lock;
mod regsync;
mod skopeo_sync;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod zarf;

pub use form::Asked;
#[cfg(test)]
use form::Listed;
pub use table::FORMS;
