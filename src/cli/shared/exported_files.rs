//! How files that were exported to a folder are told.

use super::room::{room_of, tell_room};
use super::summary::item_line;
use super::{Failure, Outcome};
use crate::model::human_size;
use crate::report::{Item, Report, Status};
use std::fmt::Write as _;
use std::path::Path;

/// The outcome of an export to `out`, with what is `lost`; `dry` where nothing was written.
///
/// # Errors
/// When the room of the folder cannot be told.
pub(crate) fn told(
    mut report: Report,
    lost: impl Iterator<Item = Item>,
    out: &Path,
    dry: bool,
) -> Result<Outcome, Failure> {
    report.items.extend(lost);
    let mut text = String::new();
    for item in report.items.iter().filter(|item| item.reason.is_some()) {
        let _ = match item.status {
            Status::Skipped if item.digest.is_some() => writeln!(text, "{} would be written", item.name),
            _ => writeln!(text, "{}", item_line(item)),
        };
    }
    let totals = report.totals();
    let written = if dry { totals.skipped } else { totals.done };
    let _ = writeln!(
        text,
        "{}: {written} files {}written ({}), {} there already",
        out.display(),
        if dry { "to be " } else { "" },
        human_size(report.bytes_transferred),
        totals.present
    );
    if dry {
        let planned = report.items.iter().filter(|item| item.status == Status::Skipped);
        let needed = planned.filter_map(|item| item.bytes).sum();
        text += &tell_room(&mut report, &room_of(out, needed)?);
    }
    Ok(Outcome::of(report, text))
}
