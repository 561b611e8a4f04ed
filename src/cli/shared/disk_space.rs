//! What a dry run says of the room that is needed and is there, and outputs that are found
//! unwritable before anything else is done.

use crate::cli::shared::{CliError, Exit};
use landfall_content::DiskSpace;
use landfall_model::human_size;
use landfall_model::report::{RunReport, TransferSide};
use serde_json::json;
use std::path::Path;

/// The room in `folder`, or where it would be made.
pub(crate) fn disk_space_for(folder: &Path, needed: u64) -> Result<DiskSpace, CliError> {
    DiskSpace::measure(folder, needed).map_err(|error| {
        let message = format!("cannot look at {}: {error}", folder.display());
        CliError::new(Exit::Failed, message).on(TransferSide::Destination)
    })
}

/// Puts the room into the report of a dry run, and gives the line about it.
pub(crate) fn report_disk_space(report: &mut RunReport, room: &DiskSpace) -> String {
    report
        .extra
        .insert("needed_bytes".into(), json!(room.needed));
    report
        .extra
        .insert("available_bytes".into(), json!(room.free));
    let (needed, free) = (human_size(room.needed), human_size(room.free));
    let enough = if room.is_enough() { "" } else { ": not enough" };
    let folder = room.folder.display();
    format!(
        "  needs at most     {needed} ({} bytes); {folder} has {free} free{enough}\n",
        room.needed
    )
}
