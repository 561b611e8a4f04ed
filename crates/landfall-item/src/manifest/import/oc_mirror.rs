//! `oc-mirror`: an ImageSetConfiguration, as defined in openshift/oc-mirror,
//! internal/pkg/api/v2alpha1.

use super::imported::{ImportSource, ImportedChart, ImportedItems};
use super::yaml::{documents, list, map, mapping, note_other_keys, scalar, text};
use landfall_model::document::Diagnostic;
use serde_yaml::{Mapping, Value};

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
    for config in documents(source)? {
        let config = with_known_spelling(config);
        if text(&config, "kind").as_deref() != Some("ImageSetConfiguration") {
            return Err(source.format_error(
                "an ImageSetConfiguration",
                "it needs `kind: ImageSetConfiguration`",
            ));
        }
        note_other_keys(
            imported,
            source.at(""),
            &config,
            &["apiVersion", "kind", "mirror", "metadata"],
        );
        let empty = Mapping::new();
        let mirror = map(&config, "mirror").unwrap_or(&empty);
        for (index, image) in list(mirror, "additionalImages").iter().enumerate() {
            let at = format!("mirror.additionalImages[{index}]");
            let Some(image) = mapping(imported, source.at(&at), image) else {
                continue;
            };
            imported.image(
                source.at(&at),
                &text(image, "name").unwrap_or_default(),
                &[],
            );
            note_other_keys(imported, source.at(&at), image, &["name"]);
        }
        unresolved(mirror, source, imported);
        helm(mirror, source, imported);
        let known = ["additionalImages", "platform", "operators", "helm"];
        note_other_keys(imported, source.at("mirror"), mirror, &known);
    }
    Ok(())
}

/// The keys that are accepted in any mix of upper and lower case, as oc-mirror accepts them.
const KEYS: [&str; 19] = [
    "additionalImages",
    "apiVersion",
    "catalog",
    "channels",
    "charts",
    "helm",
    "kind",
    "local",
    "mirror",
    "name",
    "operators",
    "packages",
    "path",
    "platform",
    "release",
    "repositories",
    "url",
    "values",
    "version",
];

/// `map` with its keys spelled as in [`KEYS`], at every level.
fn with_known_spelling(map: Mapping) -> Mapping {
    map.into_iter()
        .map(|(key, value)| {
            let known = key
                .as_str()
                .and_then(|text| KEYS.iter().find(|known| known.eq_ignore_ascii_case(text)));
            let key = match known {
                Some(known) => Value::String((*known).to_owned()),
                None => key,
            };
            let value = match value {
                // the keys of a chart's values are those of the chart
                value if key == "values" => value,
                Value::Mapping(map) => Value::Mapping(with_known_spelling(map)),
                Value::Sequence(list) => Value::Sequence(
                    list.into_iter()
                        .map(|item| match item {
                            Value::Mapping(map) => Value::Mapping(with_known_spelling(map)),
                            item => item,
                        })
                        .collect(),
                ),
                value => value,
            };
            (key, value)
        })
        .collect()
}

/// Reports the sections that oc-mirror resolves with catalogs and graphs. Only its mapping.txt
/// contains the resulting images.
fn unresolved(mirror: &Mapping, source: &ImportSource, imported: &mut ImportedItems) {
    let why = "only oc-mirror can resolve it: import the mapping.txt of `oc-mirror --dry-run`";
    for (index, operator) in list(mirror, "operators").iter().enumerate() {
        let at = format!("mirror.operators[{index}]");
        let Some(operator) = mapping(imported, source.at(&at), operator) else {
            continue;
        };
        let packages: Vec<String> = list(operator, "packages")
            .iter()
            .filter_map(|package| text(package.as_mapping()?, "name"))
            .collect();
        let catalog = text(operator, "catalog").unwrap_or_default();
        let what = if packages.is_empty() {
            catalog
        } else {
            format!("{catalog} ({})", packages.join(", "))
        };
        imported.not_imported(source.at(&at), &what, why);
    }
    let Some(platform) = map(mirror, "platform") else {
        return;
    };
    for (index, channel) in list(platform, "channels").iter().enumerate() {
        let name = channel
            .as_mapping()
            .and_then(|channel| text(channel, "name"))
            .unwrap_or_default();
        imported.not_imported(
            source.at(&format!("mirror.platform.channels[{index}]")),
            &name,
            why,
        );
    }
    if let Some(release) = text(platform, "release") {
        imported.not_imported(source.at("mirror.platform.release"), &release, why);
    }
    note_other_keys(
        imported,
        source.at("mirror.platform"),
        platform,
        &["channels", "release"],
    );
}

fn helm(mirror: &Mapping, source: &ImportSource, imported: &mut ImportedItems) {
    let Some(helm) = map(mirror, "helm") else {
        return;
    };
    for repository in list(helm, "repositories")
        .iter()
        .filter_map(|one| one.as_mapping())
    {
        let url = text(repository, "url").unwrap_or_default();
        let at = source.at("mirror.helm.repositories");
        note_other_keys(imported, at, repository, &["name", "url", "charts"]);
        for chart in list(repository, "charts")
            .iter()
            .filter_map(|one| one.as_mapping())
        {
            note_other_keys(imported, at, chart, &["name", "version", "values"]);
            let values = map(chart, "values");
            imported.chart(
                at,
                ImportedChart {
                    repository: &url,
                    name: &text(chart, "name").unwrap_or_default(),
                    version: &text(chart, "version").unwrap_or_default(),
                    // oc-mirror mirrors the images that it finds in the chart
                    has_images: true,
                    values,
                },
            );
        }
    }
    note_other_keys(
        imported,
        source.at("mirror.helm"),
        helm,
        &["repositories", "local"],
    );
    for (index, local) in list(helm, "local").iter().enumerate() {
        let path = local
            .as_mapping()
            .and_then(|local| text(local, "path"))
            .or(scalar(local));
        imported.chart(
            source.at(&format!("mirror.helm.local[{index}]")),
            ImportedChart {
                repository: &path.unwrap_or_default(),
                name: "",
                version: "",
                has_images: false,
                values: None,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    #[test]
    fn additional_images_are_imported_and_catalogs_are_reported() {
        let text = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\narchiveSize: 8\nmirror:\n  \
                    platform: {graph: true, channels: [{name: stable-4.18}]}\n  operators:\n  - catalog: \
                    registry.redhat.io/o/c:v4.18\n    packages: [{name: foo}]\n  additionalImages: [{name: 'h.test/x:1', \
                    targetTag: '2'}]\n  helm: {repositories: [{url: 'https://c.test', charts: [{name: n, version: 1.0.0, imagePaths: [a]}]}]}\n";
        let imported = import("oc-mirror", text).unwrap();
        assert_eq!(imported.images(), ["h.test/x:1"]);
        assert_eq!(imported.entries(), 2);
        assert_eq!(
            imported.not_imported.len(),
            2,
            "{:?}",
            imported.not_imported
        );
        assert!(
            imported.not_imported[0].contains("registry.redhat.io/o/c:v4.18 (foo): only oc-mirror"),
            "{:?}",
            imported.not_imported
        );
        assert_eq!(imported.notes.len(), 4, "{:?}", imported.notes);
    }

    #[test]
    fn images_of_charts_are_discovered_with_their_values() {
        let text = "kind: ImageSetConfiguration\nmirror:\n  helm:\n    repositories:\n    - url: https://c.test\n      \
                    charts:\n      - {name: n, version: 1.0.0}\n      - {name: o, version: 1.0.0, values: {a: {Name: ubi}}}\n      \
                    - {name: p, version: 1.0.0, values: {a: '${b}'}}\n";
        let imported = import("oc-mirror", text).unwrap();
        let made = super::super::manifest_of(&imported, "n", "t");
        for line in [
            r#"{repo: "https://c.test", name: "n", version: "1.0.0", images: discover}"#,
            r#"{repo: "https://c.test", name: "o", version: "1.0.0", images: discover, values: [{"a":{"Name":"ubi"}}]}"#,
            r#"{repo: "https://c.test", name: "p", version: "1.0.0", images: discover}"#,
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
        let notes = imported.notes.join("\n");
        assert!(
            notes.contains("p: its `values` are not imported"),
            "{notes}"
        );
        assert_eq!(imported.notes.len(), 1, "{notes}");
    }

    #[test]
    fn keys_are_accepted_in_any_case_as_by_oc_mirror() {
        let text = "kind: ImageSetConfiguration\nmirror:\n  additionalimages: [{Name: 'h.test/x:1'}]\n  \
             Helm: {Repositories: [{URL: 'https://c.test', Charts: [{Name: n, Version: 1.0.0}]}]}\n";
        let imported = import("oc-mirror", text).unwrap();
        assert_eq!(
            (imported.images(), imported.notes.len()),
            (vec!["h.test/x:1".to_owned()], 0)
        );
        assert_eq!((imported.entries(), imported.not_imported.len()), (2, 0));
    }
}
