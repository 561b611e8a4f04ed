//! `regsync`: the configuration of regsync, with an entry for each image and destination.

use super::table::{ExportInput, ExportedList, quoted};
use crate::text::platform_text;
use landfall_model::ImageRef;
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut text = "version: 1\nsync:\n".to_owned();
    for image in &input.lock.images {
        let from = input.reference(image);
        let tag = image.destination_tag();
        let destinations = input
            .mapping
            .map(|mapping| mapping.destinations(&image.name))
            .unwrap_or_default();
        for destination in destinations {
            let to = ImageRef {
                registry: destination.registry,
                repository: destination.repository,
                tag: Some(tag.clone()),
                digest: None,
            };
            let _ = writeln!(text, "  - source: {}", quoted(&from.to_string()));
            let _ = writeln!(
                text,
                "    target: {}\n    type: image",
                quoted(&to.to_string())
            );
            if let [one] = &image.platforms[..] {
                let _ = writeln!(text, "    platform: {}", platform_text(one));
            } else if !image.platforms.is_empty() {
                let all: Vec<String> = image.platforms.iter().map(platform_text).collect();
                let _ = writeln!(text, "    platforms: [{}]", all.join(", "));
            }
        }
    }
    ExportedList {
        text,
        left: input.left(false),
    }
}
