//! The notation of a reference: where its tag and digest begin, and how a replacement is written.

use super::index::Replacement;
use landfall_model::Destination;

/// The reference `text` with `replacement` applied. Its tag and digest stay as they are written.
pub(crate) fn replaced(text: &str, replacement: &Replacement) -> String {
    let pin = pin(text);
    let name = replacement.to.as_ref().map_or_else(
        || text[..text.len() - pin.len()].to_owned(),
        Destination::to_string,
    );
    match (&replacement.digest, pin.find('@')) {
        (None, _) => format!("{name}{pin}"),
        (Some(digest), at) => format!("{name}{}@{digest}", &pin[..at.unwrap_or(pin.len())]),
    }
}

/// What follows the repository in a reference: `:tag`, `@digest`, both or nothing.
pub(crate) fn pin(text: &str) -> &str {
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    let at = text[last..]
        .find([':', '@'])
        .map_or(text.len(), |at| last + at);
    &text[at..]
}
