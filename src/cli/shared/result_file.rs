//! Writes a result to the file of `--out`, or to stdout.

use crate::cli::shared::{Context, Exit, Failure, Outcome};
use landfall_content::write_whole;
use landfall_model::report::{TransferSide, one_line};
use std::path::Path;

/// Writes `made` to the file `out`: whole, or not at all.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_to(out: &Path, made: &str) -> Result<(), Failure> {
    write_whole(out, made.as_bytes()).map_err(|error| {
        let message = format!("cannot write {}: {error}", out.display());
        Failure::new(Exit::Failed, message).on(TransferSide::Destination)
    })
}

/// Writes the text of `made` to `out`, and returns the outcome with `lines` in its place; without
/// `out` the outcome itself, whose text is a document.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write_result(
    made: Outcome,
    out: Option<&Path>,
    lines: &[String],
    context: &Context,
) -> Result<Outcome, Failure> {
    let Some(path) = out else {
        lines.iter().for_each(|line| context.progress.note(line));
        return Ok(made.document());
    };
    write_to(path, &made.text)?;
    Ok(Outcome {
        text: lines.iter().map(|line| one_line(line) + "\n").collect(),
        ..made
    })
}
