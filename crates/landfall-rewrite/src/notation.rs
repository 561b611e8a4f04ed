//! Splits references into name and pin, and writes replacements.

use super::index::ReferenceReplacement;

/// The reference `text` with `replacement` applied. A tag, and a digest unless it is replaced, are
/// kept as written.
pub(crate) fn replaced(text: &str, replacement: &ReferenceReplacement) -> String {
    let pin = pin(text);
    let name = match &replacement.to {
        Some(to) => to.to_string(),
        None => text[..text.len() - pin.len()].to_owned(),
    };
    let Some(digest) = &replacement.digest else {
        return format!("{name}{pin}");
    };
    let tag = &pin[..pin.find('@').unwrap_or(pin.len())];
    format!("{name}{tag}@{digest}")
}

/// The part of a reference after its repository: `:tag`, `@digest`, both or nothing.
pub(crate) fn pin(text: &str) -> &str {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let at = text[last..]
        .find([':', '@'])
        .map_or(text.len(), |at| last + at);
    &text[at..]
}
