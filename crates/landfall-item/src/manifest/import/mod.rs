//! Converts lists and configurations of other tools to a manifest. Each format is a file here and a
//! row of `table`.

mod dregsy;
mod dt_lock;
mod hauler;
mod image_syncer;
mod imgpkg_lock;
mod imported;
mod mapping_txt;
mod oc_mirror;
mod ocync;
mod plain;
mod regsync;
mod skopeo_sync;
mod table;
#[cfg(test)]
mod testing;
mod tkg_bom;
mod yaml;
mod zarf;

pub use imported::{ImportSource, ImportedItems, manifest_of};
pub use table::{IMPORT_FORMATS, import_format_of};
