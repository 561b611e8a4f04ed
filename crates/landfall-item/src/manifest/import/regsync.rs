//! `regsync`: its configuration, as defined in regclient/regclient, cmd/regsync/config.go.

use super::imported::{ImportPosition, ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{documents, list, map, mapping, note_other_keys, text, texts};
use landfall_model::document::Diagnostic;
use serde_yaml::{Mapping, Value};

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
    let further = list(step, "tagSets").iter().filter_map(Value::as_mapping);
    let sets: Vec<&Mapping> = map(step, "tags").into_iter().chain(further).collect();
    if kind != "repository" || sets.is_empty() {
        return imported.not_imported(
            source.at(at),
            &from,
            &format!("type {kind}: list the tags that you need"),
        );
    }
    for tags in sets {
        read_tags(tags, &from, source.at(at), &platforms, imported);
    }
}

/// Reads a set of tags: those in a range of versions and those that match an expression, without
/// those that match another one. An expression has to match the whole tag.
fn read_tags(
    tags: &Mapping,
    from: &str,
    at: ImportPosition<'_>,
    platforms: &[String],
    imported: &mut ImportedItems,
) {
    let denied: Vec<String> = texts(tags, "deny").iter().map(|one| whole(one)).collect();
    let selector = |select: String| ImportedSelector {
        repository: from.to_owned(),
        select,
        except: denied.clone(),
        newest: None,
    };
    let ranges = texts(tags, "semverRange");
    let allowed = texts(tags, "allow");
    if allowed.is_empty() && ranges.is_empty() {
        // without a rule, regsync copies all tags
        return imported.select(at, selector("^(.*)$".into()), platforms);
    }
    for range in ranges {
        imported.select(at, selector(range), platforms);
    }
    for tag in allowed {
        // an expression without special characters is a tag
        let is_tag = tag
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        if is_tag && denied.is_empty() {
            imported.image(at, &format!("{from}:{tag}"), platforms);
        } else {
            imported.select(at, selector(whole(&tag)), platforms);
        }
    }
}

/// The expression as a pattern for a whole tag, with a group that orders the tags.
fn whole(expression: &str) -> String {
    let inner = expression.trim_start_matches('^').trim_end_matches('$');
    format!("^({inner})$")
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
        assert_eq!(imported.not_imported.len(), 1, "{imported:?}");
        assert!(imported.notes[0].contains("`creds`"), "{imported:?}");
    }

    #[test]
    fn rules_for_tags_become_selectors() {
        let text = r"version: 1
sync:
- source: quay.io/a/ranges
  type: repository
  tags: {semverRange: ['>=1.2.0 <2'], deny: ['1.3.*', '.*-rc\.\d+']}
  platforms: [linux/amd64]
- {source: alpine, type: repository, tags: {allow: ['3\.\d+', 'edge']}}
- {source: h.test/all, type: repository, tagSets: [{deny: [nightly]}]}
- {source: h.test/bad, type: repository, tags: {semverRange: ['latest'], allow: ['(?P<']}}
";
        let imported = import("regsync", text).unwrap();
        let made = manifest_of(&imported, "m", "a title");
        for line in [
            "  - docker.io/library/alpine:edge
",
            r#"  - {repo: "docker.io/library/alpine", select: "^(3\\.\\d+)$"}"#,
            r#"  - {repo: "h.test/all", select: "^(.*)$", except: ["^(nightly)$"]}"#,
            r#"  - {repo: "quay.io/a/ranges", select: ">=1.2.0 <2", except: ["^(1.3.*)$", "^(.*-rc\\.\\d+)$"], platforms: [linux/amd64]}"#,
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
        assert_eq!(imported.not_imported.len(), 2, "{imported:?}");
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
