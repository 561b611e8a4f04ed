//! `oc-mirror`: an ImageSetConfiguration, as defined in openshift/oc-mirror,
//! internal/pkg/api/v2alpha1.

use super::imported::{ImportSource, ImportedChart, ImportedItems};
use super::yaml::{
    documents, for_each_mapping, list, mapping, mapping_at, note_other_keys, scalar, text,
};
use crate::ManifestResult;
use serde_yaml::{Mapping, Value};

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
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
        let mirror = mapping_at(imported, source.at(""), &config, "mirror").unwrap_or(&empty);
        let (at, images) = (source.at("mirror"), "additionalImages");
        for_each_mapping(imported, at, mirror, images, |imported, at, image| {
            let mut platforms = Vec::new();
            for platform in list(image, "platforms") {
                let Some(platform) = mapping(imported, at, platform) else {
                    continue;
                };
                let part = |key| text(platform, key).unwrap_or_default();
                platforms.push(format!("{}/{}", part("os"), part("architecture")));
            }
            let name = text(image, "name").unwrap_or_default();
            imported.image(at, &name, &platforms);
            note_other_keys(imported, at, image, &["name", "platforms"]);
        });
        unresolved(mirror, source, imported);
        helm(mirror, source, imported);
        let known = ["additionalImages", "platform", "operators", "helm"];
        note_other_keys(imported, at, mirror, &known);
    }
    Ok(())
}

/// The keys that are accepted in any mix of upper and lower case, as oc-mirror accepts them.
const KEYS: [&str; 22] = [
    "additionalImages",
    "apiVersion",
    "architecture",
    "catalog",
    "channels",
    "charts",
    "helm",
    "kind",
    "local",
    "mirror",
    "name",
    "operators",
    "os",
    "packages",
    "path",
    "platform",
    "platforms",
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
    let at = source.at("mirror");
    for_each_mapping(imported, at, mirror, "operators", |imported, at, one| {
        let packages: Vec<String> = list(one, "packages")
            .iter()
            .filter_map(|package| text(package.as_mapping()?, "name"))
            .collect();
        let catalog = text(one, "catalog").unwrap_or_default();
        let what = if packages.is_empty() {
            catalog
        } else {
            format!("{catalog} ({})", packages.join(", "))
        };
        imported.not_imported(at, &what, why);
    });
    let Some(platform) = mapping_at(imported, at, mirror, "platform") else {
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
    let at = source.at("mirror");
    let Some(helm) = mapping_at(imported, at, mirror, "helm") else {
        return;
    };
    for repository in list(helm, "repositories") {
        let at = source.at("mirror.helm.repositories");
        let Some(repository) = mapping(imported, at, repository) else {
            continue;
        };
        let url = text(repository, "url").unwrap_or_default();
        note_other_keys(imported, at, repository, &["name", "url", "charts"]);
        let charts = list(repository, "charts");
        if charts.is_empty() {
            imported.not_imported(at, &url, "all its charts: list the charts that you need");
        }
        for chart in charts {
            let Some(chart) = mapping(imported, at, chart) else {
                continue;
            };
            note_other_keys(imported, at, chart, &["name", "version", "values"]);
            let values = mapping_at(imported, at, chart, "values");
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
        let at = format!("mirror.helm.local[{index}]");
        imported.local_chart(source.at(&at), &path.unwrap_or_default(), true);
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
    fn platforms_local_charts_and_whole_repositories_are_imported_or_reported() {
        let text = "kind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: h.test/x:1\n    platforms: \
                    [{os: linux, architecture: arm64}]\n  helm:\n    repositories: [{name: c, url: 'https://c.test'}]\n    \
                    local: [{name: l, path: ./src}, {name: m, path: /absent}]\n";
        let imported = import("oc-mirror", text).unwrap();
        let made = super::super::manifest_of(&imported, "n", "t");
        for words in [
            r#"{ref: "h.test/x:1", platforms: [linux/arm64]}"#,
            r#"  - {path: "src", images: discover}"#,
            "mirror.helm.repositories: https://c.test: all its charts",
            "mirror.helm.local[1]: /absent: it is not a path below",
        ] {
            assert!(made.contains(words), "{words}: {made}");
        }
        assert_eq!(imported.not_imported.len(), 2, "{made}");
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
