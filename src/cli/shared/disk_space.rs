//! The disk space that a command needs, and the free space, for dry runs.

use crate::cli::shared::{CliError, Exit};
use landfall_content::DiskSpace;
use landfall_model::human_size;
use landfall_model::report::{RunReport, TransferSide};
use serde_json::json;
use std::path::Path;

/// The `needed` bytes, and the free space in `folder` or in the folder where it would be created.
pub(crate) fn disk_space_for(folder: &Path, needed: u64) -> Result<DiskSpace, CliError> {
    DiskSpace::measure(folder, needed).map_err(|error| {
        let message = format!(
            "cannot read the free space of {}: {error}",
            folder.display()
        );
        CliError::new(Exit::Failed, message).on(TransferSide::Destination)
    })
}

/// Adds the space to the report of a dry run, and returns the line about it.
pub(crate) fn report_disk_space(report: &mut RunReport, room: &DiskSpace) -> String {
    report
        .extra
        .insert("needed_bytes".into(), json!(room.needed));
    report
        .extra
        .insert("available_bytes".into(), json!(room.free));
    let needed = human_size(room.needed);
    let free = human_size(room.free);
    let enough = if room.is_enough() { "" } else { ": not enough" };
    let folder = room.folder.display();
    format!(
        "  needs at most     {needed} ({} bytes); {folder} has {free} free{enough}\n",
        room.needed
    )
}
