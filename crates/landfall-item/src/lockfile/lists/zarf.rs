//! `zarf`: a package with one component. A Zarf package has one architecture.

use super::{ExportInput, ExportedList};
use crate::lockfile::Lock;
use crate::text::{in_quotes, quoted};
use landfall_model::without_scheme;
use std::fmt::Write as _;

pub(super) fn write(input: &ExportInput<'_>) -> ExportedList {
    let mut left = input.left(true);
    let name = quoted(&package_name(input.lock));
    let mut text = format!("kind: ZarfPackageConfig\nmetadata:\n  name: {name}\n");
    match linux_architecture(input.lock) {
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
    if input.images().next().is_some() {
        text += "    images:\n";
    }
    for image in input.images() {
        let _ = writeln!(
            text,
            "      - {}",
            in_quotes(&input.reference(image).to_string())
        );
    }
    let files = input.files();
    if !files.is_empty() {
        text += "    files:\n";
    }
    for file in files {
        let target = without_scheme(&file.name);
        let target = target.split(['?', '#']).next().unwrap_or_default();
        let hex = file.digest.to_string();
        let hex = hex.strip_prefix("sha256:").unwrap_or(&hex);
        let _ = writeln!(
            text,
            "      - source: {}\n        shasum: {hex}",
            in_quotes(&file.name)
        );
        let _ = writeln!(text, "        target: {}", in_quotes(target));
        // Zarf knows only one flag for the mode
        if file.mode.as_deref().is_some_and(is_executable) {
            text += "        executable: true\n";
        }
    }
    ExportedList { text, left }
}

/// The name of the lock in the form that Zarf requires: lower-case letters, digits and dashes.
fn package_name(lock: &Lock) -> String {
    let name = lock.name.as_deref().unwrap_or_default();
    let name = name
        .to_ascii_lowercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    match name.trim_matches('-') {
        "" => "landfall".into(),
        name => name.to_owned(),
    }
}

/// The architecture of the images, if each has exactly one platform, and all are for Linux on the
/// same architecture. Zarf does not distinguish variants.
fn linux_architecture(lock: &Lock) -> Option<&str> {
    let mut all = lock.images.iter().map(|image| match &image.platforms[..] {
        [one] if one.os == "linux" => Some(one.architecture.as_str()),
        _ => None,
    });
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Whether an octal mode has an execute bit.
fn is_executable(mode: &str) -> bool {
    u32::from_str_radix(mode, 8).is_ok_and(|bits| bits & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockedImage;
    use landfall_model::{Descriptor, Digest, media_type};

    #[test]
    fn a_package_has_a_name_that_zarf_accepts() {
        for (name, expected) in [
            (None, "landfall"),
            (Some("Cluster_1.2"), "cluster-1-2"),
            (Some("x\nkind: other"), "x-kind--other"),
            (Some("\u{e9}"), "landfall"),
        ] {
            let lock = Lock {
                name: name.map(str::to_owned),
                ..Lock::default()
            };
            assert_eq!(package_name(&lock), expected);
        }
    }

    #[test]
    fn all_images_must_share_one_architecture_and_variants_are_ignored() {
        // the platforms of each image
        let architecture = |images: &[&str]| {
            let images = images.iter().map(|platforms| {
                let top = Descriptor::new(Digest::sha256(b"a"), 1, media_type::OCI_INDEX);
                let mut image = LockedImage::new("h.test/a:1".parse().unwrap(), top);
                let platforms = platforms.split_whitespace();
                image.platforms = platforms.map(|one| one.parse().unwrap()).collect();
                image
            });
            let lock = Lock {
                images: images.collect(),
                ..Lock::default()
            };
            linux_architecture(&lock).map(str::to_owned)
        };
        let arm64 = Some("arm64".to_owned());
        assert_eq!(architecture(&["linux/arm64/v8"]), arm64);
        assert_eq!(architecture(&["linux/arm64/v8", "linux/arm64"]), arm64);
        for other in [
            &[][..],
            &["linux/arm64", "linux/amd64"],
            &["linux/arm64 linux/amd64"],
            &["linux/arm64", ""],
            &["windows/amd64"],
        ] {
            assert_eq!(architecture(other), None, "{other:?}");
        }
    }

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
