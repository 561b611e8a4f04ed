//! What the tests of the formats share.

use super::imported::{Imported, Source};
use super::table::IMPORTS;

/// What the format of this name makes of `text`, in a file called `f`.
pub(super) fn import(name: &str, text: &str) -> Result<Imported, String> {
    let format = IMPORTS.iter().find(|format| format.name == name).unwrap();
    let (source, mut imported) = (
        Source {
            file: "f".into(),
            text: text.into(),
        },
        Imported::default(),
    );
    (format.read)(&source, &mut imported).map_err(|error| error.to_string())?;
    Ok(imported)
}
