//! A bundle that a verb of the far side reads, and when it is refused.

use super::listing::lines;
use super::{Context, Failure};
use crate::bundle::Bundle;
use std::path::Path;

/// Opens the bundle at `path`.
///
/// # Errors
/// When it cannot be read; when it is partial and that is not allowed; when the site wants it signed.
pub(super) fn open(context: &Context, path: &Path, allow_partial: bool) -> Result<Bundle, Failure> {
    let bundle = Bundle::open(path)?;
    if context.site.as_ref().is_some_and(|site| site.signers.is_some()) {
        return Err(Failure::refused(format!(
            "{}: the site takes only bundles that one of its signers signed, and this one is not signed",
            path.display()
        )));
    }
    refuse_partial(&bundle, path, allow_partial)?;
    Ok(bundle)
}

/// Refuses a bundle that says of itself that items are missing, unless that is allowed.
pub(super) fn refuse_partial(bundle: &Bundle, path: &Path, allow_partial: bool) -> Result<(), Failure> {
    if bundle.partial().is_empty() || allow_partial {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{} is partial; take it with --allow-partial, or pack it again. It lacks\n{}",
        path.display(),
        lines(&lacks(bundle)).trim_end()
    )))
}

/// What the bundle says of itself that it lacks.
pub(super) fn lacks(bundle: &Bundle) -> Vec<String> {
    bundle.partial().iter().map(|lost| format!("{} {}", lost.kind, lost.name)).collect()
}
