//! `images-txt`: one image reference on each line.

use super::table::{ExportInput, ExportedList};

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let lines = input
        .lock
        .images
        .iter()
        .map(|image| format!("{}\n", input.reference(image)));
    ExportedList {
        text: lines.collect(),
        left: input.left_with_platforms(),
    }
}
