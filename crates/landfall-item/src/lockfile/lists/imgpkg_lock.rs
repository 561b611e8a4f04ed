//! `imgpkg-lock`: an ImagesLock of imgpkg, with the tag of each digest in the annotation of kbld.

use super::table::{ExportInput, ExportedList, quoted};
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut text = "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n".to_owned();
    for image in &input.lock.images {
        let _ = writeln!(
            text,
            "- image: {}",
            quoted(&image.name.at_digest(&image.digest).to_string())
        );
        if image.name.tag.is_some() {
            let name = quoted(&image.name.to_string());
            let _ = writeln!(text, "  annotations:\n    kbld.carvel.dev/id: {name}");
        }
    }
    ExportedList {
        text,
        left: input.left_with_platforms(),
    }
}
