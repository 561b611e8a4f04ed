//! `hauler`: the documents Images and Files. Hauler stores one platform of an image, or all.

use super::export_format::{ExportInput, ExportedList, quoted};
use std::fmt::Write as _;

pub(super) fn write(asked: &ExportInput<'_>) -> ExportedList {
    let (mut text, mut left) = (String::new(), asked.left(true));
    let begin = |kind: &str, name: &str| {
        format!(
            "apiVersion: content.hauler.cattle.io/v1\nkind: {kind}\nmetadata: \
             {{name: {name}}}\nspec:\n"
        )
    };
    if !asked.lock.images.is_empty() {
        text += &(begin("Images", "images") + "  images:\n");
    }
    for image in &asked.lock.images {
        let _ = writeln!(
            text,
            "    - name: {}",
            quoted(&asked.reference(image).to_string())
        );
        match &image.platforms[..] {
            [] => {}
            [one] => {
                let _ = writeln!(text, "      platform: {one}");
            }
            more => {
                let more: Vec<String> = more.iter().map(ToString::to_string).collect();
                left.push(format!(
                    "platforms {} of {}: all of it is listed",
                    more.join(", "),
                    image.name
                ));
            }
        }
    }
    if !asked.lock.files.is_empty() {
        let line = if text.is_empty() { "" } else { "---\n" };
        text += &(line.to_owned() + &begin("Files", "files") + "  files:\n");
    }
    for file in &asked.lock.files {
        let _ = writeln!(text, "    - path: {}", quoted(&file.name));
        left.push(format!("checksum of {}: Hauler checks none", file.name));
    }
    ExportedList { text, left }
}
