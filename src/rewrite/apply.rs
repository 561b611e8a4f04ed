//! Edits applied to a text, and the proof that nothing else changed.

use super::{Edit, RewriteError, yaml};

/// `source` with `edits` made; they are in the order of the text and do not overlap. The result is
/// read again: its values must be those of `documents` with the edits made.
///
/// # Errors
/// When the result does not read so.
pub(super) fn apply(
    source: &str,
    documents: &[yaml::Document<'_>],
    edits: &[Edit],
) -> Result<String, RewriteError> {
    let mut text = source.to_owned();
    for edit in edits.iter().rev() {
        text.replace_range(edit.span.clone(), &edit.bytes);
    }
    if edits.is_empty() {
        return Ok(text);
    }
    let again = yaml::parse(&text).map_err(|_| RewriteError::Unsound)?;
    let changed = edits.iter().map(|edit| (edit.scalar, edit.to.as_str())).collect();
    match yaml::is_mapped(documents, &again, &changed) {
        true => Ok(text),
        false => Err(RewriteError::Unsound),
    }
}
