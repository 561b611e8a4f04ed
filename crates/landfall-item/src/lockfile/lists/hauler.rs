//! `hauler`: the documents Images and Files. Hauler stores one platform of an image, or all.

use super::{ExportInput, ExportedList};
use crate::text::{in_quotes, platform_text};
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut text = String::new();
    let mut left = input.left(true);
    if input.images().next().is_some() {
        text += &(head("Images", "images") + "  images:\n");
    }
    for image in input.images() {
        let _ = writeln!(
            text,
            "    - name: {}",
            in_quotes(&input.reference(image).to_string())
        );
        match &image.platforms[..] {
            [] => {}
            [one] => {
                let _ = writeln!(text, "      platform: {}", platform_text(one));
            }
            more => {
                let more: Vec<String> = more.iter().map(ToString::to_string).collect();
                left.push(format!(
                    "platforms {} of {}: Hauler stores all platforms",
                    more.join(", "),
                    image.name
                ));
            }
        }
    }
    let files = input.files();
    if !files.is_empty() {
        let separator = if text.is_empty() { "" } else { "---\n" };
        text += &(separator.to_owned() + &head("Files", "files") + "  files:\n");
    }
    for file in files {
        let _ = writeln!(text, "    - path: {}", in_quotes(&file.name));
        left.push(format!(
            "checksum of {}: Hauler does not verify files",
            file.name
        ));
    }
    ExportedList { text, left }
}

/// The first lines of a document.
fn head(kind: &str, name: &str) -> String {
    format!(
        "apiVersion: content.hauler.cattle.io/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"
    )
}
