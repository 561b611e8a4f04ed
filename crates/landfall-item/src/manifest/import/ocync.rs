//! `ocync`: its configuration, as documented in clowdhaus/ocync, docs/src/content/configuration.md.

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, list, map, others, text, texts};
use landfall_model::document::Diagnostic;
use serde_yaml::Mapping;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
    for config in documents(source)? {
        if !config.contains_key("mappings") || !config.contains_key("registries") {
            return Err(source.is_no(
                "configuration of ocync",
                "it has `registries:` and `mappings:`",
            ));
        }
        let empty = Mapping::new();
        let defaults = map(&config, "defaults").unwrap_or(&empty);
        others(
            imported,
            source,
            "",
            &config,
            &["registries", "defaults", "mappings"],
        );
        for (index, mapping) in list(&config, "mappings").iter().enumerate() {
            let at = format!("mappings[{index}]");
            let Some(mapping) = mapping.as_mapping() else {
                continue;
            };
            read_mapping(mapping, defaults, &config, &at, source, imported);
            let known = ["from", "to", "source", "targets", "tags", "platforms"];
            others(imported, source, &at, mapping, &known);
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
        return imported.leave(
            source,
            at,
            &from,
            &format!("the registry `{registry}` has no url"),
        );
    };
    let name = format!(
        "{}/{from}",
        url.trim_start_matches("https://").trim_end_matches('/')
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
    // `include` adds tags to those that the other rules select; they further restrict `glob`
    let (globs, included) = (tags("glob"), tags("include"));
    let narrowed = ["semver", "exclude", "sort", "latest"]
        .iter()
        .any(|key| !tags(key).is_empty());
    let is_tag = |tag: &String| !tag.contains(['*', '?', '[']);
    let (literal, rules): (Vec<String>, Vec<String>) =
        globs.into_iter().partition(|tag| is_tag(tag) && !narrowed);
    for tag in literal
        .iter()
        .chain(included.iter().filter(|tag| is_tag(tag)))
    {
        imported.image(source, at, &format!("{name}:{tag}"), &platforms);
    }
    let rules: Vec<String> = rules
        .into_iter()
        .chain(included.into_iter().filter(|tag| !is_tag(tag)))
        .collect();
    if !rules.is_empty() || narrowed || literal.is_empty() {
        let rules = if rules.is_empty() {
            "all".into()
        } else {
            rules.join(", ")
        };
        imported.leave(
            source,
            at,
            &name,
            &format!("tags by rules ({rules}): list those that you want"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    #[test]
    fn literal_tags_are_carried_and_rules_are_told() {
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
        assert_eq!(imported.left.len(), 3, "{imported:?}");
    }
}
