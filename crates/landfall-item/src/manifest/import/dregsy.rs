//! `dregsy`: its configuration, as documented in xelalexv/dregsy, README.md.

use super::imported::{ImportPosition, ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{
    NO_VARIANTS, documents, for_each_mapping, list, map, note_other_keys, range_of, text, texts,
    whole_tag_pattern,
};
use landfall_model::VersionSelection;
use landfall_model::document::Diagnostic;
use landfall_model::report::count_of;
use serde_yaml::Mapping;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
    for config in documents(source)? {
        if !config.contains_key("tasks") {
            return Err(source.format_error("a configuration of dregsy", "it needs `tasks:`"));
        }
        note_other_keys(imported, source.at(""), &config, &["relay", "tasks"]);
        let mut renamed = 0;
        let at = source.at("");
        for_each_mapping(imported, at, &config, "tasks", |imported, at, task| {
            let registry = map(task, "source").and_then(|from| text(from, "registry"));
            let registry = registry.unwrap_or_default();
            for_each_mapping(imported, at, task, "mappings", |imported, at, mapping| {
                read_mapping(mapping, &registry, at, imported);
                renamed += usize::from(mapping.contains_key("to"));
                note_other_keys(imported, at, mapping, &["from", "to", "tags", "platform"]);
            });
            let known = ["name", "verbose", "source", "target", "mappings"];
            note_other_keys(imported, at, task, &known);
        });
        if renamed > 0 {
            let note = format!(
                "`to` of {} is not imported: map it under `registry.paths` of the site",
                count_of(renamed, "mapping")
            );
            imported.note(source.at("tasks"), &note);
        }
    }
    Ok(())
}

/// Reads the tags of a repository: listed ones, digests, ranges of versions and expressions.
fn read_mapping(
    mapping: &Mapping,
    registry: &str,
    at: ImportPosition<'_>,
    imported: &mut ImportedItems,
) {
    let from = text(mapping, "from").unwrap_or_default();
    if from.starts_with("regex:") {
        let why = "all repositories that match it: list the repositories that you need";
        return imported.not_imported(at, &from, why);
    }
    let repository = format!("{registry}/{}", from.trim_start_matches('/'));
    let tags = texts(mapping, "tags");
    if tags.len() < list(mapping, "tags").len() {
        return imported.not_imported(at, &repository, "an entry of `tags` is not a text");
    }
    if tags.is_empty() {
        let why = "all its tags: list the tags that you need";
        return imported.not_imported(at, &repository, why);
    }
    let platforms = text(mapping, "platform").filter(|platform| platform != "all");
    let platforms: Vec<String> = platforms.into_iter().collect();
    let selector = |select: String| ImportedSelector {
        repository: repository.clone(),
        select,
        except: Vec::new(),
        newest: None,
    };
    // such a rule removes tags that the others select
    let is_pruned = tags.iter().any(|tag| tag.trim().starts_with("keep:"));
    for tag in tags.iter().map(|tag| tag.trim()) {
        match tag.split_once(':') {
            Some(("semver", range)) if !is_pruned => {
                let ranges: Vec<String> = range
                    .split("||")
                    .map(|range| range_of(range.split_whitespace()))
                    .collect();
                let select = ranges.join(" || ");
                if VersionSelection::new(&select).is_ok() {
                    let why = format!("tags by the rule {select}: {NO_VARIANTS}");
                    imported.not_imported(at, &repository, &why);
                }
                imported.select(at, selector(select), &platforms);
            }
            Some(("regex", rule)) if !is_pruned && !rule.trim().starts_with('!') => {
                // dregsy matches the whole tag
                let select = whole_tag_pattern(&format!("^{}$", rule.trim()));
                imported.select(at, selector(select), &platforms);
            }
            Some(("semver" | "regex" | "keep", _)) => {
                let why = format!("tags by the rule `{tag}`: list the tags that you need");
                imported.not_imported(at, &repository, &why);
            }
            Some(("sha256", _)) => {
                imported.image(at, &format!("{repository}@{tag}"), &platforms);
            }
            _ => imported.image(at, &format!("{repository}:{tag}"), &platforms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::import_format_of;
    use super::super::imported::manifest_of;
    use super::super::testing::import;

    #[test]
    fn tags_digests_and_rules_are_imported() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            "relay: skopeo\nskopeo: {{binary: skopeo}}\ntasks:\n- name: one\n  interval: 60\n  \
             source: &source {{registry: h.test, auth: c2VjcmV0}}\n  target: {{registry: m.test}}\n  \
             mappings:\n  - {{from: a/b, to: x/b, tags: ['0.1.0', 'v2@{digest}', '{digest}']}}\n  \
             - {{from: /a/c, platform: linux/arm64, tags: ['semver: >=1.31.0 <1.32.0', 'regex: 1\\.26-(a|b)']}}\n  \
             - {{from: a/d}}\n  - {{from: 'regex:a/.*', tags: [a]}}\n\
             - {{name: two, source: *source, mappings: [{{from: a/e, platform: all, tags: [v1, 'regex: !x', 'semver: >=1.0.0']}},\n    \
             {{from: a/f, tags: [v1, 'semver: >=1.0.0', 'keep: latest 5']}}]}}\n"
        );
        assert_eq!(import_format_of(&text), Some("dregsy"));
        let imported = import("dregsy", &text).unwrap();
        let made = manifest_of(&imported, "m", "a title");
        for line in [
            "  - h.test/a/b:0.1.0\n".to_owned(),
            format!("  - h.test/a/b:v2@{digest}\n"),
            format!("  - h.test/a/b@{digest}\n"),
            "  - h.test/a/e:v1\n  - h.test/a/f:v1\n".into(),
            r#"{repo: "h.test/a/c", select: ">=1.31.0 <1.32.0", platforms: [linux/arm64]}"#.into(),
            r#"{repo: "h.test/a/c", select: "^(1\\.26-(a|b))$", platforms: [linux/arm64]}"#.into(),
            r#"{repo: "h.test/a/e", select: ">=1.0.0"}"#.into(),
        ] {
            assert!(made.contains(&line), "{line}: {made}");
        }
        // variants of two ranges, two repositories without tags, and three rules
        assert_eq!(imported.not_imported.len(), 7, "{imported:?}");
        assert!(!made.contains("c2VjcmV0"), "{made}");
        for note in ["`skopeo`", "`interval`", "`to` of 1 mapping"] {
            assert!(
                imported.notes.iter().any(|one| one.contains(note)),
                "{note}: {imported:?}"
            );
        }
    }
}
