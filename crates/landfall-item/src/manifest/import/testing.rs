//! Helpers for the tests of the formats.

use super::imported::{ImportSource, ImportedItems};
use super::table::IMPORTS;

/// Imports `text` in the format `name`, as the content of a file called `f`.
pub(super) fn import(name: &str, text: &str) -> Result<ImportedItems, String> {
    let format = IMPORTS.iter().find(|format| format.name == name).unwrap();
    let source = ImportSource {
        file: "f".into(),
        text: text.into(),
    };
    let mut imported = ImportedItems::default();
    (format.read)(&source, &mut imported).map_err(|error| error.to_string())?;
    Ok(imported)
}
