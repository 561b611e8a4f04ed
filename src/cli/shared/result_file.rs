//! Writes a result to the file of `--out`, or to stdout.

use crate::cli::shared::{Context, Exit, Failure};
use crate::content::write_whole;
use crate::report::{Side, escape};
use std::path::Path;

/// Writes `made` to the file `out`: whole, or not at all.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_to(out: &Path, made: &str) -> Result<(), Failure> {
    write_whole(out, made.as_bytes()).map_err(|error| {
        let message = format!("cannot write {}: {error}", out.display());
        Failure::new(Exit::Failed, message).on(Side::Destination)
    })
}

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
    write_to(path, &made)?;
    Ok(lines.iter().map(|line| escape(line) + "\n").collect())
}
