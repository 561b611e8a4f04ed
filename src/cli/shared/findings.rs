//! How what was found in people's files is shown, and what is made of it handed over.

use crate::cli::shared::{Context, Exit, Failure};
use crate::manifest::{Wanting, Wish};
use crate::report::{Side, escape};
use crate::rewrite::audit::{Coverage, FileFinding, dotted};
use std::path::Path;

/// Writes `made` to `out`, and gives what is then told on stdout: `lines`, or where there is no such file, what was
/// made itself.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn hand_over(
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

/// One line: place, word, reference, why.
pub(crate) fn shown(word: &str, placed: &FileFinding) -> String {
    let finding = &placed.finding;
    let why = match &finding.coverage {
        Coverage::Missing { why, .. } | Coverage::Undecided { why } => why,
        Coverage::Held { item } => item,
    };
    let path = match finding.path.is_empty() {
        true => String::new(),
        false => format!("{}: ", dotted(&finding.path)),
    };
    let (file, line, column) = (&placed.file, finding.line, finding.column);
    format!("{file}:{line}:{column}: {word} {path}{}: {why}", finding.reference)
}

/// What a draft is to hold of what was found: everything that is missing.
pub(crate) fn wishes<'p>(found: impl Iterator<Item = &'p FileFinding>) -> Vec<Wish> {
    found.filter_map(wish).collect()
}

fn wish(placed: &FileFinding) -> Option<Wish> {
    let finding = &placed.finding;
    let at = format!("{}:{}", placed.file, finding.line);
    let written = || finding.reference.clone();
    let what = match &finding.coverage {
        Coverage::Held { .. } => return None,
        Coverage::Missing { name: Some(name), .. } => Wanting::Image(name.clone()),
        Coverage::Missing { url: Some(url), .. } => Wanting::Url(url.clone()),
        Coverage::Missing { why, .. } => {
            Wanting::Unclear(written(), format!("{why}; write its name upstream"))
        }
        Coverage::Undecided { why } => Wanting::Unclear(written(), why.clone()),
    };
    Some(Wish { what, at })
}
