//! `hauler`: the documents Images, Files and Charts of content.hauler.cattle.io, as defined in
//! hauler-dev/hauler, pkg/apis/hauler.cattle.io/v1.

use super::imported::{ImportPosition, ImportSource, ImportedChart, ImportedItems, at_host};
use super::yaml::{documents, for_each_mapping, map, mapping_at, note_other_keys, text};
use crate::ManifestResult;
use serde_yaml::Mapping;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    let documents = documents(source)?;
    let is_of_hauler = |document: &Mapping| {
        text(document, "apiVersion").is_some_and(|version| version.contains("hauler.cattle.io/"))
    };
    if !documents.iter().any(is_of_hauler) {
        let help = "its documents need `apiVersion: content.hauler.cattle.io/v1`";
        return Err(source.format_error("a file of Hauler", help));
    }
    for (number, document) in documents.iter().enumerate() {
        let kind = text(document, "kind").unwrap_or_default();
        let at = format!("document {}, {kind}", number + 1);
        let at = source.at(&at);
        // hauler skips other documents with a warning
        if !is_of_hauler(document) {
            imported.not_imported(at, &kind, "its `apiVersion` is not Hauler's");
            continue;
        }
        let empty = Mapping::new();
        let spec = mapping_at(imported, at, document, "spec").unwrap_or(&empty);
        match kind.as_str() {
            "Images" => images(document, spec, imported, at),
            "Files" => files(spec, imported, at),
            "Charts" => charts(spec, imported, at),
            _ => imported.not_imported(at, &kind, "landfall imports only Images, Files and Charts"),
        }
    }
    Ok(())
}

fn images(
    document: &Mapping,
    spec: &Mapping,
    imported: &mut ImportedItems,
    at: ImportPosition<'_>,
) {
    let annotations = map(document, "metadata").and_then(|metadata| map(metadata, "annotations"));
    // annotations of the document are defaults for its images
    let default = |key: &str| annotations.and_then(|map| text(map, &format!("hauler.dev/{key}")));
    let platform = default("platform");
    let host = default("registry").unwrap_or_default();
    if let Some(annotations) = annotations {
        note_other_keys(
            imported,
            at,
            annotations,
            &["hauler.dev/platform", "hauler.dev/registry"],
        );
    }
    for_each_mapping(imported, at, spec, "images", |imported, at, image| {
        let name = at_host(&host, &text(image, "name").unwrap_or_default());
        let platforms: Vec<String> = text(image, "platform")
            .or(platform.clone())
            .into_iter()
            .collect();
        if text(image, "local").as_deref() == Some("true") {
            return imported.not_imported(at, &name, "it is in the local Docker daemon");
        }
        imported.image(at, &name, &platforms);
        note_other_keys(imported, at, image, &["name", "platform"]);
    });
}

fn files(spec: &Mapping, imported: &mut ImportedItems, at: ImportPosition<'_>) {
    for_each_mapping(imported, at, spec, "files", |imported, at, file| {
        let path = text(file, "path").unwrap_or_default();
        imported.file(at, &path, None, false);
        note_other_keys(imported, at, file, &["path"]);
    });
}

fn charts(spec: &Mapping, imported: &mut ImportedItems, at: ImportPosition<'_>) {
    for_each_mapping(imported, at, spec, "charts", |imported, at, chart| {
        let value = |key| text(chart, key).unwrap_or_default();
        let has_images = value("add-images") == "true";
        let repository = value("repoURL");
        if repository.contains("://") {
            let chart = ImportedChart {
                repository: &repository,
                name: &value("name"),
                version: &value("version"),
                has_images,
                values: None,
            };
            imported.chart(at, chart);
        } else {
            // a folder with charts, and a chart folder or archive in it
            let path = format!("{repository}/{}", value("name"));
            let path = path.trim_start_matches('/');
            imported.local_chart(at, path, has_images);
        }
        let known = ["repoURL", "name", "version", "add-images"];
        note_other_keys(imported, at, chart, &known);
    });
}

#[cfg(test)]
mod tests {
    use super::super::imported::manifest_of;
    use super::super::testing::import;

    const FILE: &str = r"apiVersion: content.hauler.cattle.io/v1
kind: Images
metadata: {name: i, annotations: {hauler.dev/registry: h.test, hauler.dev/retries: 3}}
spec:
  images:
    - name: library/busybox
    - name: ghcr.io/x/y:v1
      platform: linux/amd64
      rewrite: z:v1
    - {name: 'in a box', key: k}
---
apiVersion: content.hauler.cattle.io/v1
kind: Files
spec: {files: [{path: 'https://get.test/i.sh', name: install.sh}, {path: local.txt}, {path: 'https://get.test'}]}
---
apiVersion: content.hauler.cattle.io/v1
kind: Charts
spec:
  charts:
  - {name: c, repoURL: 'oci://h.test/charts', version: 1.2.3, add-images: true}
  - {name: d, repoURL: 'https://h.test/charts'}
---
kind: ConfigMap
";

    #[test]
    fn an_entry_that_a_manifest_rejects_does_not_prevent_the_import_of_others() {
        let imported = import(
            "hauler",
            r"apiVersion: content.hauler.cattle.io/v1
kind: Charts
spec:
  charts:
  - {name: range, repoURL: 'https://h.test/charts', version: '>=1.0 <2'}
  - {name: range, repoURL: 'oci://h.test/charts', version: ^1}
  - {name: c, repoURL: 'https://u:p@h.test/charts', version: 1.2.3}
  - {name: c, repoURL: 'https://h.test/charts', version: 1.2.3}
  - word
---
apiVersion: content.hauler.cattle.io/v1
kind: Files
spec: {files: [{path: 'https://u:p@h.test/f'}, {path: 'https://h.test/f#a'}, {path: 'https://h.test/a b'}, {path: 'https://h.test/f'}]}
---
apiVersion: content.hauler.cattle.io/v1
kind: Images
spec: {images: ['h.test/a:1', {name: 'h.test/b:1'}, null]}
",
        )
        .unwrap();
        let left = imported.not_imported.join("\n");
        assert_eq!(
            (imported.entries(), imported.not_imported.len()),
            (5, 7),
            "{left}"
        );
        for words in [
            "charts[2]: chart https://u:p@h.test/charts c 1.2.3: ",
            "charts[4]: word: it is not a mapping",
            "files[1]: https://h.test/f#a: the URL of a file must not contain a `#`",
            "images[0]: h.test/a:1: it is not a mapping",
        ] {
            assert!(left.contains(words), "{words}: {left}");
        }
        let made = manifest_of(&imported, "m", "a title");
        for line in [
            r#"{repo: "https://h.test/charts", name: "range", select: ">=1.0 <2", newest: 1}"#,
            r#"{repo: "oci://h.test/charts", name: "range", select: "^1", newest: 1}"#,
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
    }

    #[test]
    fn items_are_imported_or_reported() {
        let imported = import("hauler", FILE).unwrap();
        assert_eq!(
            imported.images(),
            ["ghcr.io/x/y:v1", "h.test/library/busybox:latest"]
        );
        assert_eq!(imported.entries(), 4);
        let made = super::super::manifest_of(&imported, "n", "t");
        assert!(
            made.ends_with(
                "\ncharts:\n  - {ref: \"oci://h.test/charts/c:1.2.3\", images: discover}\n"
            ),
            "{made}"
        );
        let left = imported.not_imported.join("\n");
        for words in [
            "images[2]: h.test/in a box: ",
            "files[1]: local.txt: the folder of the manifest does not have it",
            "files[2]: https://get.test: this is the URL of a folder",
            "charts[1]: chart https://h.test/charts d: it has no version",
            "document 4, ConfigMap: ConfigMap: its `apiVersion` is not Hauler's",
        ] {
            assert!(left.contains(words), "{left}");
        }
        let notes = imported.notes.join("\n");
        for words in [
            "`hauler.dev/retries`",
            "images[0]: h.test/library/busybox: no tag, so `latest`",
            "`rewrite`",
            "`name`",
        ] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        assert!(
            import("hauler", "kind: Images\n")
                .unwrap_err()
                .contains("this is not a file of Hauler")
        );
    }
}
