//! `ocync`: its configuration, as documented in clowdhaus/ocync, docs/src/content/configuration.md.

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, list, map, mapping as mapping_of, note_other_keys, text, texts};
use landfall_model::after_web_scheme;
use landfall_model::document::Diagnostic;
use serde_yaml::Mapping;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
    for config in documents(source)? {
        if !config.contains_key("mappings") || !config.contains_key("registries") {
            return Err(source.format_error(
                "a configuration of ocync",
                "it needs `registries:` and `mappings:`",
            ));
        }
        let empty = Mapping::new();
        let defaults = map(&config, "defaults").unwrap_or(&empty);
        note_other_keys(
            imported,
            source.at(""),
            &config,
            &["registries", "defaults", "mappings"],
        );
        for (index, mapping) in list(&config, "mappings").iter().enumerate() {
            let at = format!("mappings[{index}]");
            let Some(mapping) = mapping_of(imported, source.at(&at), mapping) else {
                continue;
            };
            read_mapping(mapping, defaults, &config, &at, source, imported);
            let known = ["from", "to", "source", "targets", "tags", "platforms"];
            note_other_keys(imported, source.at(&at), mapping, &known);
        }
    }
    Ok(())
}

fn read_mapping(
    mapping: &Mapping,
    defaults: &Mapping,
    config: &Mapping,
    at: &str,
    source: &ImportSource,
    imported: &mut ImportedItems,
) {
    let from = text(mapping, "from").unwrap_or_default();
    let registry = text(mapping, "source")
        .or(text(defaults, "source"))
        .unwrap_or_default();
    let url = map(config, "registries")
        .and_then(|all| map(all, &registry))
        .and_then(|one| text(one, "url"));
    let Some(url) = url else {
        return imported.not_imported(
            source.at(at),
            &from,
            &format!("the registry `{registry}` has no `url`"),
        );
    };
    let name = format!(
        "{}/{from}",
        after_web_scheme(&url).unwrap_or(&url).trim_end_matches('/')
    );
    let platforms = if mapping.contains_key("platforms") {
        texts(mapping, "platforms")
    } else {
        texts(defaults, "platforms")
    };
    let tags = |key| match map(mapping, "tags").filter(|tags| tags.contains_key(key)) {
        Some(tags) => texts(tags, key),
        None => map(defaults, "tags")
            .map(|tags| texts(tags, key))
            .unwrap_or_default(),
    };
    // `semver`, `exclude`, `sort` and `latest` restrict `glob`, so ocync may skip a literal tag in
    // it. `include` adds tags regardless of these rules.
    let globs = tags("glob");
    let included = tags("include");
    let is_restricted = ["semver", "exclude", "sort", "latest"]
        .iter()
        .any(|key| !tags(key).is_empty());
    let (literal, mut rules): (Vec<String>, Vec<String>) = globs
        .into_iter()
        .partition(|tag| is_literal(tag) && !is_restricted);
    let (included, included_rules): (Vec<String>, Vec<String>) =
        included.into_iter().partition(|tag| is_literal(tag));
    rules.extend(included_rules);
    for tag in literal.iter().chain(&included) {
        imported.image(source.at(at), &format!("{name}:{tag}"), &platforms);
    }
    // without `glob`, ocync copies all tags
    if !rules.is_empty() || is_restricted || literal.is_empty() {
        let rules = if rules.is_empty() {
            "all".into()
        } else {
            rules.join(", ")
        };
        imported.not_imported(
            source.at(at),
            &name,
            &format!("tags by rules ({rules}): list the tags that you need"),
        );
    }
}

/// Whether `tag` is a tag rather than a glob.
fn is_literal(tag: &str) -> bool {
    !tag.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    #[test]
    fn literal_tags_are_imported_and_rules_are_reported() {
        let text = "registries: {src: {url: cgr.dev}, dst: {url: ghcr.io/example}}\ndefaults: {source: src, targets: [dst], \
                    platforms: [linux/amd64]}\nmappings:\n- {from: chainguard/a, tags: {glob: ['1.2', '1.3']}}\n- {from: \
                    chainguard/b, tags: {glob: '1.*', include: ['2.0']}}\n- {from: chainguard/c}\n- {from: d, source: none}\n";
        let imported = import("ocync", text).unwrap();
        let names = [
            "cgr.dev/chainguard/a:1.2",
            "cgr.dev/chainguard/a:1.3",
            "cgr.dev/chainguard/b:2.0",
        ];
        assert_eq!(imported.images(), names);
        assert_eq!(imported.not_imported.len(), 3, "{imported:?}");
    }
}
