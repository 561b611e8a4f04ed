//! The list of all kinds of items.
//!
//! To add a kind, add a row to [`KIND_ROWS`], a variant to `EntryKind`, and a field to `Lock`,
//! `ManifestDocument`, `ExpandedManifest` and `ItemRequests`. Search for the field `providers` to
//! find the functions that list the fields: the compiler reports only some of them.

use crate::chart::LockedChart;
use crate::file::LockedFile;
use crate::git::LockedGitRepository;
use crate::image::LockedImage;
use crate::item_kind::{ItemKind, ManifestResult};
use crate::packages::LockedPackageSet;
use crate::provider::LockedProvider;
use crate::text::Exclusion;
use landfall_model::document::SourceSpan;
use landfall_model::report::EntryKind;

/// The constants and functions of a kind, so that code can choose the kind at run time.
struct KindRow {
    kind: EntryKind,
    has_files: bool,
    is_name: fn(&str) -> bool,
    parse_name: fn(&str, &SourceSpan) -> ManifestResult<String>,
    parse_exclusion: fn(&str, &SourceSpan) -> ManifestResult<Exclusion>,
}

/// All kinds, in the order of the lock.
const KIND_ROWS: &[KindRow] = &[
    row::<LockedImage>(),
    row::<LockedFile>(),
    row::<LockedChart>(),
    row::<LockedPackageSet>(),
    row::<LockedGitRepository>(),
    row::<LockedProvider>(),
];

const fn row<K: ItemKind>() -> KindRow {
    KindRow {
        kind: K::KIND,
        has_files: K::HAS_FILES,
        is_name: K::is_name,
        parse_name: K::parse_name,
        parse_exclusion: K::parse_exclusion,
    }
}

/// All kinds of items, in the order of the lock.
pub fn item_kinds() -> impl Iterator<Item = EntryKind> {
    KIND_ROWS.iter().map(|row| row.kind)
}

/// Whether items of this kind have files that can be exported.
pub fn has_files(kind: EntryKind) -> bool {
    KIND_ROWS
        .iter()
        .any(|row| row.kind == kind && row.has_files)
}

/// The kind of the item that `name`, as people write it, refers to.
pub fn kind_named(name: &str) -> EntryKind {
    row_for_name(name).kind
}

fn row_for_name(name: &str) -> &'static KindRow {
    // More specific kinds follow more general ones: the URL of a chart (`oci://…`) is a URL of a
    // file, too.
    KIND_ROWS
        .iter()
        .rfind(|row| (row.is_name)(name))
        .unwrap_or(&KIND_ROWS[0])
}

/// The kind of the item that `text` refers to, and its name as the lock writes it.
///
/// # Errors
/// If `text` is not a valid name.
pub fn locked_name(text: &str, span: &SourceSpan) -> ManifestResult<(EntryKind, String)> {
    let row = row_for_name(text);
    Ok((row.kind, (row.parse_name)(text, span)?))
}

/// Parses `text` as an entry of `exclude:`.
///
/// # Errors
/// If `text` is not a valid name.
pub fn parse_exclusion(text: &str, span: &SourceSpan) -> ManifestResult<Exclusion> {
    (row_for_name(text).parse_exclusion)(text, span)
}
