//! What a dry run says of the room that is needed and is there, and outputs that are found
//! unwritable before anything else is done.

use super::{Exit, Failure};
use landfall_content::{Room, folder_of};
use landfall_model::human_size;
use landfall_model::report::{RunReport, TransferSide};
use serde_json::json;
use std::path::Path;

/// The room in `folder`, or where it would be made.
pub(crate) fn room_of(folder: &Path, needed: u64) -> Result<Room, Failure> {
    Room::of(folder, needed).map_err(|error| {
        let message = format!("cannot look at {}: {error}", folder.display());
        Failure::new(Exit::Failed, message).on(TransferSide::Destination)
    })
}

/// Puts the room into the report of a dry run, and gives the line about it.
pub(crate) fn tell_room(report: &mut RunReport, room: &Room) -> String {
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

/// Refuses a file that could not be written when everything else is done.
///
/// # Errors
/// What is in the way, and what to do.
pub(crate) fn check_output(what: &str, file: &Path) -> Result<(), Failure> {
    let folder = folder_of(file);
    // a link or a device is written to as it stands
    let is_there = file.exists();
    let place = if is_there && !file.is_file() {
        file
    } else {
        folder
    };
    let fault = if file.is_dir() {
        Some("it is a folder; name a file in it".to_owned())
    } else if !folder.exists() {
        Some(format!(
            "there is no folder {}; make it first",
            folder.display()
        ))
    } else if !folder.is_dir() {
        Some(format!("{} is no folder", folder.display()))
    } else {
        rustix::fs::access(place, rustix::fs::Access::WRITE_OK)
            .err()
            .map(|error| error.to_string())
    };
    let Some(fault) = fault else { return Ok(()) };
    let message = format!("cannot write {what} {}: {fault}", file.display());
    Err(Failure::new(Exit::Failed, message).on(TransferSide::Destination))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_found_first() {
        let dir = tempfile::tempdir().unwrap();
        let message = |file: &Path| check_output("the report", file).unwrap_err().message;
        check_output("the report", &dir.path().join("new.json")).unwrap();
        check_output("the report", Path::new("/dev/null")).unwrap();
        assert!(message(dir.path()).ends_with("it is a folder; name a file in it"));
        let nowhere = message(&dir.path().join("none/new.json"));
        assert!(
            nowhere.contains("there is no folder") && nowhere.ends_with("make it first"),
            "{nowhere}"
        );
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(message(&dir.path().join("file/new.json")).contains("file"));
    }
}
