//! `dt-lock`: the Images.lock of dt (Distribution Tooling for Helm).

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, for_each_mapping, list, mapping, text};
use crate::ManifestResult;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    for lock in documents(source)? {
        let is_imgpkg =
            text(&lock, "apiVersion").is_some_and(|version| version.contains("carvel.dev/"));
        if text(&lock, "kind").as_deref() != Some("ImagesLock") || is_imgpkg {
            return Err(source.format_error(
                "an Images.lock of dt",
                "for a lock of imgpkg, use the format `imgpkg-lock`",
            ));
        }
        let at = source.at("");
        for_each_mapping(imported, at, &lock, "images", |imported, at, image| {
            let mut platforms: Vec<String> = Vec::new();
            for digest in list(image, "digests") {
                let digest = mapping(imported, at, digest);
                platforms.extend(digest.and_then(|digest| text(digest, "arch")));
            }
            let name = text(image, "image").unwrap_or_default();
            imported.image(at, &name, &platforms);
            if !platforms.is_empty() {
                let note = "digests of single platforms are not imported: `landfall lock` pins their index";
                imported.note(at, note);
            }
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::manifest_of;
    use super::super::testing::import;

    #[test]
    fn images_are_imported_with_their_platforms() {
        let text = "apiVersion: v0\nkind: ImagesLock\nchart: {name: c, version: 1.0.0}\nimages:\n- name: a\n  image: \
                    h.test/a:1\n  chart: c\n  digests: [{arch: linux/amd64, digest: 'sha256:0'}, {arch: linux/arm64, digest: \
                    'sha256:1'}]\n";
        let imported = import("dt-lock", text).unwrap();
        let made = manifest_of(&imported, "n", "t");
        assert!(
            made.contains("{ref: \"h.test/a:1\", platforms: [linux/amd64, linux/arm64]}"),
            "{made}"
        );
        assert_eq!(imported.notes.len(), 1);
    }
}
