//! `skopeo-sync`: the YAML source of `skopeo sync --src yaml`.

use super::imported::{ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{documents, map, mapping, note_other_keys, scalar};
use landfall_model::document::Diagnostic;
use serde_yaml::Value;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
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
            for (repository, tags) in map(registry, "images").into_iter().flatten() {
                let name = format!("{host}/{}", scalar(repository).unwrap_or_default());
                let tags = tags.as_sequence().map_or(&[][..], Vec::as_slice);
                if tags.is_empty() {
                    imported.not_imported(
                        source.at(&host),
                        &name,
                        "all its tags: list the tags that you need",
                    );
                }
                for tag in tags.iter().filter_map(scalar) {
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
                for (repository, rule) in registry
                    .get(key)
                    .and_then(Value::as_mapping)
                    .into_iter()
                    .flatten()
                {
                    let name = format!("{host}/{}", scalar(repository).unwrap_or_default());
                    let mut rule = scalar(rule).unwrap_or_default();
                    if key == "images-by-tag-regex" {
                        // an expression may match any part of a tag
                        let before = if rule.starts_with('^') { "" } else { ".*" };
                        let after = if rule.ends_with('$') { "" } else { ".*" };
                        let inner = rule.trim_start_matches('^').trim_end_matches('$');
                        rule = format!("^({before}(?:{inner}){after})$");
                    }
                    let at = format!("{host}, {key}");
                    let selector = ImportedSelector {
                        repository: name,
                        select: rule,
                        except: Vec::new(),
                        newest: None,
                    };
                    imported.select(source.at(&at), selector, &[]);
                }
            }
            let known = ["images", "images-by-tag-regex", "images-by-semver"];
            note_other_keys(imported, source.at(&host), registry, &known);
        }
    }
    Ok(())
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
}
