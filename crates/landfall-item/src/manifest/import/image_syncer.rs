//! `image-syncer`: the sources of image-syncer, as documented in
//! AliyunContainerService/image-syncer, README.md.

use super::imported::{ImportPosition, ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{documents, mapping_at, note_other_keys, scalar, whole_tag_pattern};
use landfall_model::ImageRef;
use landfall_model::document::Diagnostic;
use landfall_model::report::count_of;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
    let mut sources = 0;
    for document in documents(source)? {
        if document.contains_key("apiVersion") || document.contains_key("kind") {
            return Err(source.format_error(
                "a file of image-syncer",
                "the keys of such a file are the sources of images",
            ));
        }
        // a file of a release before 1.2 has the accounts, too
        let (images, at) = if document.contains_key("images") {
            note_other_keys(imported, source.at(""), &document, &["images"]);
            let images = mapping_at(imported, source.at(""), &document, "images");
            (images, source.at("images"))
        } else {
            (Some(&document), source.at(""))
        };
        for (from, to) in images.into_iter().flatten() {
            let from = scalar(from).unwrap_or_default();
            if to.is_string() || to.is_sequence() {
                read_source(&from, at, imported);
                sources += 1;
            } else {
                imported.not_imported(at, &from, "its destination is not a text or a list");
            }
        }
    }
    if sources > 0 {
        let note = format!(
            "the destinations of {} are not imported; set them in `registry.paths` of the site",
            count_of(sources, "source")
        );
        imported.note(source.at(""), &note);
    }
    Ok(())
}

/// Reads a source: a repository with a digest, with tags that commas separate, or with an
/// expression for its tags between slashes.
fn read_source(from: &str, at: ImportPosition<'_>, imported: &mut ImportedItems) {
    let rule = from
        .split_once(":/")
        .and_then(|(repository, rule)| Some((repository, rule.strip_suffix('/')?)));
    if let Some((repository, rule)) = rule {
        let selector = ImportedSelector {
            repository: repository.to_owned(),
            select: whole_tag_pattern(rule),
            except: Vec::new(),
            newest: None,
        };
        return imported.select(at, selector, &[]);
    }
    let mut parts = from.split(',');
    let first = parts.next().unwrap_or_default();
    match first.parse::<ImageRef>() {
        Ok(image) if !image.is_pinned() => {
            imported.not_imported(at, from, "all its tags: list the tags that you need");
        }
        Ok(image) => {
            imported.image(at, first, &[]);
            for tag in parts {
                imported.image(at, &format!("{}:{tag}", image.name()), &[]);
            }
        }
        Err(error) => imported.not_imported(at, from, &error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::imported::manifest_of;
    use super::super::testing::import;

    #[test]
    fn tags_digests_and_expressions_are_imported() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            "alpine:3.18.2: m.test/alpine\nquay.io/a/b:v1,v2: m.test/a/b\n\
             quay.io/a/b@{digest}: [m.test/a/b, 'm.test/a/c:v1']\nquay.io/a/c: m.test/a/c\n\
             quay.io/a/d:/^v1\\.\\d+$/: m.test/a/d\n"
        );
        let imported = import("image-syncer", &text).unwrap();
        let names = imported.images();
        assert_eq!(
            names,
            [
                "docker.io/library/alpine:3.18.2".to_owned(),
                "quay.io/a/b:v1".into(),
                "quay.io/a/b:v2".into(),
                format!("quay.io/a/b@{digest}"),
            ]
        );
        let all = "f: the file: quay.io/a/c: all its tags: list the tags that you need";
        assert_eq!(imported.not_imported, [all]);
        assert_eq!(imported.notes.len(), 1, "{imported:?}");
        let made = manifest_of(&imported, "m", "a title");
        let rule = r#"{repo: "quay.io/a/d", select: "^(v1\\.\\d+)$"}"#;
        assert!(made.contains(rule), "{made}");
    }

    #[test]
    fn a_file_with_the_accounts_is_imported_without_them() {
        let text = r#"{"auth": {"quay.io": {"username": "u", "password": "geheim"}},
            "images": {"quay.io/a/b:v1": "m.test/a/b", "quay.io/a/c:v1": {"a": "b"}}}"#;
        let imported = import("image-syncer", text).unwrap();
        assert_eq!(imported.images(), ["quay.io/a/b:v1"]);
        assert_eq!(imported.not_imported.len(), 1, "{imported:?}");
        assert!(imported.notes[0].contains("`auth`"), "{imported:?}");
        let made = manifest_of(&imported, "m", "a title");
        assert!(!made.contains("geheim"), "{made}");
        let pod = "apiVersion: v1\nkind: Pod\n";
        assert!(import("image-syncer", pod).is_err());
    }
}
