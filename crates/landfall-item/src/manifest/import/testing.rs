//! Helpers for the tests of the formats.

use super::{IMPORT_FORMATS, ImportSource, ImportedItems};

/// Imports `text` in the format `name`, as the content of a file called `f`.
pub(super) fn import(name: &str, text: &str) -> Result<ImportedItems, String> {
    let format = IMPORT_FORMATS
        .iter()
        .find(|format| format.name == name)
        .unwrap();
    let source = ImportSource {
        file: "f".into(),
        text: text.into(),
    };
    let mut imported = ImportedItems::default();
    (format.read)(&source, &mut imported).map_err(|error| error.to_string())?;
    Ok(imported)
}
