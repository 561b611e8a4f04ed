//! Manifests: reads, expands and validates them, and merges them into one list of requests.
//!
//! Start at [`load`]. It parses each file (`schema`), fills in variables and reads `lists`
//! (`check`), and merges the requests of all files (`merge`).

mod catalogue;
mod check;
mod draft;
mod entry_edits;
mod entry_steps;
mod import;
mod list_edits;
mod lists;
mod load;
mod merge;
mod schema;
#[cfg(test)]
mod tests;
mod updatable_versions;

pub use self::catalogue::{CATALOGUE, CatalogueManifest};
pub use self::draft::{
    DraftEntry, DraftItem, DraftManifest, MORE, draft, example_manifest, from_list, platforms_line,
};
pub use self::entry_steps::KeptVersions;
pub use self::import::{
    IMPORT_FORMATS, ImportSource, ImportedItems, import_format_of, manifest_of,
};
pub use self::list_edits::{set_digest, set_version, set_versions};
pub use self::lists::list_format;
pub use self::load::{
    FileOverrides, LoadManifestError, load, load_edited, manifest_files, text_of,
};
pub use self::merge::{
    ItemRequests, ListSource, MergedManifest, RequestSummary, RequestVisitor, TrustRootSource,
};
pub use self::schema::ManifestDocument;
pub use self::updatable_versions::{
    UpdatableVersion, list_sources, trust_root_sources, updatable_versions,
};
