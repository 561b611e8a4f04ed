//! `regsync`: its configuration, as defined in regclient/regclient, cmd/regsync/config.go.

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, list, map, mapping, note_other_keys, text, texts};
use landfall_model::document::Diagnostic;
use serde_yaml::Mapping;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
    for config in documents(source)? {
        if !config.contains_key("sync") {
            return Err(source.format_error(
                "a configuration of regsync",
                "it needs `version: 1` and `sync:`",
            ));
        }
        note_other_keys(imported, source.at(""), &config, &["version", "sync"]);
        for (index, step) in list(&config, "sync").iter().enumerate() {
            let at = format!("sync[{index}]");
            let Some(step) = mapping(imported, source.at(&at), step) else {
                continue;
            };
            read_step(step, &at, source, imported);
            let known = [
                "source",
                "target",
                "type",
                "tags",
                "tagSets",
                "platform",
                "platforms",
            ];
            note_other_keys(imported, source.at(&at), step, &known);
        }
    }
    Ok(())
}

fn read_step(step: &Mapping, at: &str, source: &ImportSource, imported: &mut ImportedItems) {
    let from = text(step, "source").unwrap_or_default();
    let kind = text(step, "type").unwrap_or_default();
    let platforms: Vec<String> = text(step, "platform")
        .into_iter()
        .chain(texts(step, "platforms"))
        .collect();
    if kind == "image" {
        return imported.image(source.at(at), &from, &platforms);
    }
    let tags = map(step, "tags");
    let allowed = tags.map(|tags| texts(tags, "allow")).unwrap_or_default();
    let has_other_rules = step.contains_key("tagSets")
        || tags.is_some_and(|tags| tags.contains_key("deny") || tags.contains_key("semverRange"));
    if kind != "repository" || allowed.is_empty() || has_other_rules {
        return imported.not_imported(
            source.at(at),
            &from,
            &format!("type {kind}: list the tags that you need"),
        );
    }
    for tag in allowed {
        // an entry is a regular expression; it is a tag only if it has no special characters
        if tag
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        {
            imported.image(source.at(at), &format!("{from}:{tag}"), &platforms);
        } else {
            imported.not_imported(
                source.at(at),
                &from,
                &format!("tags by the expression {tag}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::imported::manifest_of;
    use super::super::testing::import;
    use serde_json::{Value, json};

    #[test]
    fn single_images_and_listed_tags_are_imported() {
        let text = "version: 1\ncreds: [{registry: h.test}]\nsync:\n- {source: 'busybox:1.37', target: 'm.test/busybox:1.37', type: \
                    image, platform: linux/amd64}\n- {source: alpine, target: m.test/alpine, type: repository, tags: {allow: \
                    ['3', '3\\.\\d+', edge]}}\n- {source: h.test, target: m.test, type: registry}\n";
        let imported = import("regsync", text).unwrap();
        let names = [
            "docker.io/library/alpine:3",
            "docker.io/library/alpine:edge",
            "docker.io/library/busybox:1.37",
        ];
        assert_eq!(imported.images(), names);
        assert_eq!(imported.not_imported.len(), 2, "{imported:?}");
        assert!(imported.notes[0].contains("`creds`"), "{imported:?}");
    }

    #[test]
    fn the_variant_of_a_platform_cannot_add_entries_to_the_manifest() {
        let platform = "linux/arm64/v8]}\n  - {ref: \"evil:1\", platforms: [linux";
        let text = json!({"version": 1, "sync": [{
            "source": "h.test/a:1", "target": "m.test/a:1", "type": "image", "platform": platform,
        }]});
        let imported = import("regsync", &text.to_string()).unwrap();
        let made = manifest_of(&imported, "m", "a title");
        let made: Value = serde_yaml::from_str(&made).unwrap();
        let images = json!([{"ref": "h.test/a:1", "platforms": [platform]}]);
        assert_eq!(made["images"], images);
    }
}
