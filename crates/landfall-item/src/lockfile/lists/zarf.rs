//! `zarf`: a package with one component. A Zarf package has one architecture.

use super::export_format::{ExportInput, ExportedList, one_platform, quoted};
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut left = input.left(true);
    // Zarf allows lower-case letters, digits and dashes in names
    let name = input
        .lock
        .name
        .as_deref()
        .unwrap_or("landfall")
        .to_ascii_lowercase()
        .replace(['_', '.'], "-");
    let mut text = format!("kind: ZarfPackageConfig\nmetadata:\n  name: {name}\n");
    let platform = one_platform(input.lock);
    match platform
        .as_deref()
        .and_then(|platform| platform.strip_prefix("linux/"))
    {
        Some(architecture) => {
            let _ = writeln!(text, "  architecture: {architecture}");
        }
        None => {
            left.push(
                "platforms: Zarf carries one architecture; set it in metadata.architecture".into(),
            );
        }
    }
    let _ = writeln!(text, "components:\n  - name: {name}\n    required: true");
    if !input.lock.images.is_empty() {
        text += "    images:\n";
    }
    for image in &input.lock.images {
        let _ = writeln!(
            text,
            "      - {}",
            quoted(&input.reference(image).to_string())
        );
    }
    if !input.lock.files.is_empty() {
        text += "    files:\n";
    }
    for file in &input.lock.files {
        let target = file
            .name
            .split_once("://")
            .map_or(file.name.as_str(), |(_, path)| path);
        let target = target.split(['?', '#']).next().unwrap_or_default();
        let hex = file.digest.to_string();
        let hex = hex.strip_prefix("sha256:").unwrap_or(&hex);
        let _ = writeln!(
            text,
            "      - source: {}\n        shasum: {hex}",
            quoted(&file.name)
        );
        let _ = writeln!(text, "        target: {}", quoted(target));
        // Zarf knows only one flag for the mode
        if file.mode.as_deref().is_some_and(is_executable) {
            text += "        executable: true\n";
        }
    }
    ExportedList { text, left }
}

/// Whether an octal mode has an execute bit.
fn is_executable(mode: &str) -> bool {
    u32::from_str_radix(mode, 8).is_ok_and(|bits| bits & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_execute_bit_makes_a_file_executable() {
        for mode in ["0755", "0555", "0500", "4711", "0001"] {
            assert!(is_executable(mode), "{mode}");
        }
        for mode in ["0644", "0444", "7000", "0600"] {
            assert!(!is_executable(mode), "{mode}");
        }
    }
}
