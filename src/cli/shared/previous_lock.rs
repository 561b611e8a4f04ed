//! The lock that a verb is about to replace.

use crate::cli::shared::{CliError, Context};
use crate::client::PreviousLock;
use landfall_model::document::read_input;
use std::path::Path;

/// Reads the lock at `path`; `None` if there is none yet.
pub(crate) fn load_previous_lock(
    context: &Context,
    path: &Path,
) -> Result<Option<PreviousLock>, CliError> {
    if !path.exists() {
        return Ok(None);
    }
    // Read before the lock is parsed: an edit in between is then noticed when the file is written.
    let bytes = read_input(path).unwrap_or_default();
    Ok(Some(PreviousLock::new(context.read_lock(path)?, &bytes)))
}
