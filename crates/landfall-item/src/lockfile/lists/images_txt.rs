//! `images-txt`: one image reference on each line.

use super::export_format::{ExportInput, ExportedList};

pub(super) fn write(asked: &ExportInput<'_>) -> ExportedList {
    let lines = asked
        .lock
        .images
        .iter()
        .map(|image| format!("{}\n", asked.reference(image)));
    ExportedList {
        text: lines.collect(),
        left: asked.left(false),
    }
}
