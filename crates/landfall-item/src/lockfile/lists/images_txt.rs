//! `images-txt`: one reference a line.

use super::form::{Asked, Listed};

pub(super) fn write(asked: &Asked<'_>) -> Listed {
    let lines = asked
        .lock
        .images
        .iter()
        .map(|image| format!("{}\n", asked.reference(image)));
    Listed {
        text: lines.collect(),
        left: asked.left(false),
    }
}
