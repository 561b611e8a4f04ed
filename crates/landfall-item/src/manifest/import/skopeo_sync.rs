//! `skopeo-sync`: the YAML source of `skopeo sync --src yaml`.

use super::imported::{ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{
    documents, elements, mapping, mapping_at, note_other_keys, scalar, whole_tag_pattern,
};
use crate::ManifestResult;
use serde_yaml::Mapping;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    for document in documents(source)? {
        if document.contains_key("apiVersion") || document.contains_key("kind") {
            return Err(source.format_error(
                "a file of skopeo sync",
                "the top-level keys of such a file are registry hosts",
            ));
        }
        for (host, registry) in &document {
            let host = scalar(host).unwrap_or_default();
            let Some(registry) = mapping(imported, source.at(&host), registry) else {
                continue;
            };
            for (name, tags) in repositories(imported, source, &host, registry, "images") {
                if tags.is_empty() {
                    imported.not_imported(
                        source.at(&host),
                        &name,
                        "all its tags: list the tags that you need",
                    );
                }
                for tag in tags {
                    // an entry of the list may be a digest
                    let separator = if tag.starts_with("sha256:") || tag.starts_with("sha512:") {
                        '@'
                    } else {
                        ':'
                    };
                    imported.image(source.at(&host), &format!("{name}{separator}{tag}"), &[]);
                }
            }
            for key in ["images-by-tag-regex", "images-by-semver"] {
                for (repository, rules) in repositories(imported, source, &host, registry, key) {
                    if rules.is_empty() {
                        let why = "it has no rule for its tags";
                        imported.not_imported(source.at(&host), &repository, why);
                    }
                    for rule in rules {
                        let select = if key == "images-by-tag-regex" {
                            whole_tag_pattern(&rule)
                        } else {
                            rule
                        };
                        let selector = ImportedSelector {
                            repository: repository.clone(),
                            select,
                            except: Vec::new(),
                            newest: None,
                        };
                        let at = format!("{host}, {key}");
                        imported.select(source.at(&at), selector, &[]);
                    }
                }
            }
            let known = ["images", "images-by-tag-regex", "images-by-semver"];
            note_other_keys(imported, source.at(&host), registry, &known);
        }
    }
    Ok(())
}

/// The repositories with their host in the mapping `key` of a registry, with their tags or rules.
/// Entries of another form are reported, not imported.
fn repositories(
    imported: &mut ImportedItems,
    source: &ImportSource,
    host: &str,
    registry: &Mapping,
    key: &str,
) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let found = mapping_at(imported, source.at(host), registry, key);
    for (name, values) in found.into_iter().flatten() {
        let Some(name) = scalar(name) else {
            imported.not_imported(
                source.at(host),
                key,
                "a key is not the name of a repository",
            );
            continue;
        };
        let name = format!("{host}/{name}");
        let values = elements(values);
        let texts: Vec<String> = values.iter().filter_map(scalar).collect();
        if texts.len() < values.len() {
            let why = "an entry is not a tag, a digest or a rule";
            imported.not_imported(source.at(host), &name, why);
            if texts.is_empty() {
                continue;
            }
        }
        all.push((name, texts));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::imported::manifest_of;
    use super::super::testing::import;

    #[test]
    fn tags_and_digests_are_imported_and_rules_are_reported() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let text = format!(
            "docker.io:\n  tls-verify: true\n  images:\n    busybox: ['1.37', '{digest}']\n    all: []\n  images-by-semver: \
             {{alpine: '>= 3.12.0'}}\n  images-by-tag-regex: {{busybox: ^1\\.3, nginx: 'x$'}}\nquay.io:\n  images: {{coreos/etcd: [v3.6.6]}}\n"
        );
        let imported = import("skopeo-sync", &text).unwrap();
        let names = imported.images();
        assert_eq!(names[0], "docker.io/library/busybox:1.37");
        assert_eq!(
            names[1..],
            [
                format!("docker.io/library/busybox@{digest}"),
                "quay.io/coreos/etcd:v3.6.6".into()
            ]
        );
        assert_eq!(imported.not_imported.len(), 1, "{imported:?}");
        let made = manifest_of(&imported, "m", "a title");
        for line in [
            r#"{repo: "docker.io/library/alpine", select: ">= 3.12.0"}"#,
            r#"{repo: "docker.io/library/busybox", select: "^((?:1\\.3).*)$"}"#,
            r#"{repo: "docker.io/library/nginx", select: "^(.*(?:x))$"}"#,
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
        assert!(imported.notes[0].contains("`tls-verify`"), "{imported:?}");
    }

    #[test]
    fn a_repository_without_a_rule_is_reported_and_one_may_be_named_by_a_number() {
        let text = "h.test:\n  images: {1: [a]}\n  images-by-semver: {2: '>= 1', b: }\n  \
                    images-by-tag-regex: {c: []}\n";
        let imported = import("skopeo-sync", text).unwrap();
        assert_eq!(imported.images(), ["h.test/1:a"]);
        assert_eq!(imported.not_imported.len(), 2, "{imported:?}");
        let made = manifest_of(&imported, "m", "a title");
        assert!(
            made.contains(r#"{repo: "h.test/2", select: ">= 1"}"#),
            "{made}"
        );
    }

    #[test]
    fn a_range_with_a_build_number_is_imported() {
        let text = "registry.k8s.io:\n  images-by-semver: {etcd: '>= v3.5.4-0', a: '>= 1-x'}\n";
        let imported = import("skopeo-sync", text).unwrap();
        let made = manifest_of(&imported, "m", "a title");
        let line = r#"{repo: "registry.k8s.io/etcd", select: ">= v3.5.4-0"}"#;
        assert!(made.contains(line), "{made}");
        assert_eq!(imported.notes.len(), 1, "{imported:?}");
        assert_eq!(imported.not_imported.len(), 1, "{imported:?}");
    }

    #[test]
    fn rules_in_lists_and_with_alternatives_select_the_same_tags_as_skopeo() {
        let text = "h.test:\n  images-by-semver: {a: ['3.12 - 3.13', '>= 3.17']}\n  images-by-tag-regex: {b: \
                    '^v1|latest$', c: ['^(1|2)$']}\n";
        let imported = import("skopeo-sync", text).unwrap();
        assert_eq!(imported.not_imported.len(), 0, "{imported:?}");
        let made = manifest_of(&imported, "m", "a title");
        for line in [
            r#"{repo: "h.test/a", select: ">=3.12 <=3.13"}"#,
            r#"{repo: "h.test/a", select: ">= 3.17"}"#,
            r#"{repo: "h.test/b", select: "^(.*(?:^v1|latest$).*)$"}"#,
            r#"{repo: "h.test/c", select: "^((1|2))$"}"#,
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
        let pattern = "^(.*(?:^v1|latest$).*)$";
        let selection = landfall_model::VersionSelection::new(pattern).unwrap();
        let found = ["v1.2", "xv1", "my-latest", "latest-1"].map(String::from);
        assert_eq!(selection.newest(found), ["v1.2", "my-latest"]);
    }
}
