//! Writes a result to the file of `--out`, or to stdout.

use crate::cli::shared::{Context, Exit, Failure};
use crate::report::{Side, escape};
use std::path::Path;

/// Writes `made` to `out`, and returns the text for stdout: `lines`, or `made` itself where there is no `out`.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_result(
    made: String,
    out: Option<&Path>,
    lines: &[String],
    context: &Context,
) -> Result<String, Failure> {
    let Some(path) = out else {
        lines.iter().for_each(|line| context.progress.note(line));
        return Ok(made);
    };
    std::fs::write(path, made).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Failed, message).on(Side::Destination)
    })?;
    Ok(lines.iter().map(|line| escape(line) + "\n").collect())
}
