//! `imgpkg-lock`: an ImagesLock of imgpkg or kbld, imgpkg.carvel.dev.

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, for_each_mapping, map, note_other_keys, text};
use crate::ManifestResult;
use landfall_model::ImageRef;

/// The annotation in which kbld stores the unresolved reference.
const BEFORE: &str = "kbld.carvel.dev/id";

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    for lock in documents(source)? {
        if !text(&lock, "apiVersion")
            .is_some_and(|version| version.starts_with("imgpkg.carvel.dev/"))
        {
            let help = "it needs `apiVersion: imgpkg.carvel.dev/v1alpha1`; for the Images.lock of \
                        dt, use the format `dt-lock`";
            return Err(source.format_error("an ImagesLock of imgpkg", help));
        }
        if let Some(bundle) = map(&lock, "bundle") {
            let bundle = text(bundle, "image").unwrap_or_default();
            let why = "list it under `images` with `listed: true`, which carries its images too";
            imported.not_imported(source.at("bundle"), &bundle, why);
        }
        let at = source.at("");
        for_each_mapping(imported, at, &lock, "images", |imported, at, image| {
            let locked = text(image, "image").unwrap_or_default();
            let before = map(image, "annotations").and_then(|map| text(map, BEFORE));
            let tag = before.and_then(|before| with_tag_of(&before, &locked));
            imported.image(at, &tag.unwrap_or(locked), &[]);
            note_other_keys(imported, at, image, &["image", "annotations"]);
        });
    }
    Ok(())
}

/// The `locked` reference with the tag of `before`, if `before` has a tag and both have the same
/// repository.
fn with_tag_of(before: &str, locked: &str) -> Option<String> {
    let (before, locked): (ImageRef, ImageRef) = (before.parse().ok()?, locked.parse().ok()?);
    let is_same = before.name() == locked.name() && before.tag.is_some();
    is_same.then(|| {
        ImageRef {
            tag: before.tag,
            ..locked
        }
        .to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    #[test]
    fn digests_are_imported_with_the_tags_before_resolution() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n- image: index.docker.io/library/nginx@{digest}\n  \
             annotations: {{kbld.carvel.dev/id: 'nginx:1.27'}}\n- image: h.test/x@{digest}\n"
        );
        let imported = import("imgpkg-lock", &text).unwrap();
        let names = [
            format!("docker.io/library/nginx:1.27@{digest}"),
            format!("h.test/x@{digest}"),
        ];
        assert_eq!(imported.images(), names);
        let bundle = format!(
            "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: BundleLock\nbundle: {{image: 'h.test/b@{digest}', tag: v1}}\n"
        );
        let left = import("imgpkg-lock", &bundle).unwrap().not_imported;
        assert!(left[0].contains("`listed: true`"), "{left:?}");
        let refused = import("imgpkg-lock", "apiVersion: v0\nkind: ImagesLock\n").unwrap_err();
        assert!(refused.contains("`dt-lock`"), "{refused}");
    }
}
