//! `regsync`: its configuration, as defined in regclient/regclient, cmd/regsync/config.go.

use super::imported::{ImportPosition, ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{
    NO_VARIANTS, documents, for_each_mapping, list, mapping, mapping_at, note_other_keys, range_of,
    scalar, text, texts, whole_tag_pattern,
};
use crate::ManifestResult;
use landfall_model::report::count_of;
use landfall_model::{ImageRef, VersionSelection};
use regex_lite::Regex;
use serde_yaml::Mapping;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    for config in documents(source)? {
        if !config.contains_key("sync") {
            return Err(source.format_error(
                "a configuration of regsync",
                "it needs `version: 1` and `sync:`",
            ));
        }
        note_other_keys(imported, source.at(""), &config, &["version", "sync"]);
        let mut renamed = 0;
        let at = source.at("");
        for_each_mapping(imported, at, &config, "sync", |imported, at, step| {
            read_step(step, at, imported);
            renamed += usize::from(has_other_path(step));
            let known = [
                "source",
                "target",
                "type",
                "tags",
                "tagSets",
                "platform",
                "platforms",
            ];
            note_other_keys(imported, at, step, &known);
        });
        if renamed > 0 {
            let note = format!(
                "`target` of {} has another path than `source`, which is not imported: map it \
                 under `registry.paths` of the site",
                count_of(renamed, "step")
            );
            imported.note(source.at("sync"), &note);
        }
    }
    Ok(())
}

/// Whether a step renames its repository: the path of its target, after any prefix, is not that of
/// its source.
fn has_other_path(step: &Mapping) -> bool {
    let part = |key| text(step, key).unwrap_or_default();
    let (source, target) = (part("source"), part("target"));
    // the host may be a template, which may contain slashes
    let target = target.rsplit_once("}}").map_or(&*target, |(_, rest)| rest);
    let path = |text: &str| {
        let text = text.split('@').next().unwrap_or_default();
        let (_, path) = text.split_once('/')?;
        let path = path.rsplit_once(':').map_or(path, |(path, _)| path);
        Some(format!("/{path}"))
    };
    let Ok(reference) = source.parse::<ImageRef>() else {
        return false;
    };
    let is_listed = ["image", "repository"].contains(&&*part("type"));
    is_listed
        && path(target).is_some_and(|path| !path.ends_with(&format!("/{}", reference.repository)))
}

fn read_step(step: &Mapping, at: ImportPosition<'_>, imported: &mut ImportedItems) {
    let from = text(step, "source").unwrap_or_default();
    let kind = text(step, "type").unwrap_or_default();
    let platforms: Vec<String> = text(step, "platform")
        .into_iter()
        .chain(texts(step, "platforms"))
        .collect();
    if kind == "image" {
        return imported.image(at, &from, &platforms);
    }
    let has_tags = ["tags", "tagSets"]
        .iter()
        .any(|key| step.get(key).is_some_and(|value| !value.is_null()));
    if kind != "repository" || !has_tags {
        return imported.not_imported(
            at,
            &from,
            &format!("type {kind}: list the tags that you need"),
        );
    }
    let mut sets: Vec<&Mapping> = mapping_at(imported, at, step, "tags").into_iter().collect();
    for set in list(step, "tagSets") {
        sets.extend(mapping(imported, at, set));
    }
    for tags in sets {
        read_tags(tags, &from, at, &platforms, imported);
    }
}

/// Reads a set of tags: those in a range of versions that also match an expression, without those
/// that match another one.
fn read_tags(
    tags: &Mapping,
    from: &str,
    at: ImportPosition<'_>,
    platforms: &[String],
    imported: &mut ImportedItems,
) {
    note_other_keys(imported, at, tags, &["allow", "deny", "semverRange"]);
    for key in ["allow", "deny", "semverRange"] {
        if list(tags, key).iter().any(|one| scalar(one).is_none()) {
            let why = format!("an entry of `{key}` is not a text");
            return imported.not_imported(at, from, &why);
        }
    }
    let denied: Vec<String> = texts(tags, "deny").iter().map(|one| whole(one)).collect();
    let selector = |select: String| ImportedSelector {
        repository: from.to_owned(),
        select,
        except: denied.clone(),
        newest: None,
    };
    let mut ranges = texts(tags, "semverRange");
    // as regsync does
    ranges.retain(|range| !range.is_empty());
    let allowed = texts(tags, "allow");
    if allowed.is_empty() && ranges.is_empty() {
        // without a rule, regsync copies all tags
        return imported.select(at, selector("^(.*)$".into()), platforms);
    }
    let denials = denied.iter().filter_map(|one| Regex::new(one).ok());
    let denials: Vec<Regex> = denials.collect();
    let is_denied = |tag: &str| denials.iter().any(|one| one.is_match(tag));
    if !ranges.is_empty() && allowed.iter().all(|one| matches_versions_only(one)) {
        // one rule, because a manifest must not have a tag twice
        let ranges: Vec<String> = ranges
            .iter()
            .map(|range| range_of(range.split_whitespace()))
            .collect();
        let select = ranges.join(" || ");
        let has_variants = allowed.is_empty() && !is_denied(VARIANT);
        if has_variants && VersionSelection::new(&select).is_ok() {
            let why = format!("tags by the rule {select}: {NO_VARIANTS}");
            imported.not_imported(at, from, &why);
        }
        return imported.select(at, selector(select), platforms);
    }
    if !ranges.is_empty() {
        // without the range, more tags are selected; without `allow`, it would be even more
        let note = format!("{from}: `semverRange` is not imported, because there is `allow`, too");
        imported.note(at, &note);
    }
    for tag in allowed {
        // A dot matches any character, but people who write `v1.2.3` want this one tag. As a rule,
        // each tag would need a look-up before the manifest can be locked.
        let is_tag = tag
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !is_tag {
            imported.select(at, selector(whole(&tag)), platforms);
        } else if !is_denied(&tag) {
            imported.image(at, &format!("{from}:{tag}"), platforms);
        }
    }
}

/// A tag with a suffix that no expression names.
const VARIANT: &str = "1.2.3-x.1";

/// Whether an expression matches versions with any numbers, but no tags with a suffix: a range
/// selects only such versions anyway.
fn matches_versions_only(expression: &str) -> bool {
    let forms = [
        ["3.4.5", "10.20.30"],
        ["v3.4.5", "v10.20.30"],
        ["3.4", "10.20"],
        ["v3.4", "v10.20"],
    ];
    let others = ["latest", "main", "v1.2.3-x.1", VARIANT];
    Regex::new(&whole(expression)).is_ok_and(|pattern| {
        let is_match = |tag: &&str| pattern.is_match(tag);
        forms.iter().any(|form| form.iter().all(is_match)) && !others.iter().any(is_match)
    })
}

/// The expression as a pattern for a whole tag, with a group that orders the tags.
fn whole(expression: &str) -> String {
    // as regsync does it, so the first of several alternatives may match the beginning of a tag
    whole_tag_pattern(&format!("^{expression}$"))
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
        // the images of Docker Hub have no `library/` at the target
        let renamed = "sync: `target` of 2 steps has another path than `source`";
        assert!(imported.notes[1].contains(renamed), "{imported:?}");
    }

    #[test]
    fn targets_that_only_add_a_prefix_keep_their_names() {
        for (target, count) in [
            ("m.test/a/b", 0),
            ("m.test:5000/mirror/a/b", 0),
            ("'{{ env \"R\" }}/a/b'", 0),
            ("m.test/b", 1),
            ("m.test/x/ab", 1),
        ] {
            let text = format!(
                "version: 1\nsync:\n- {{source: 'h.test/a/b:1', target: {target}, type: image}}\n"
            );
            let imported = import("regsync", &text).unwrap();
            assert_eq!(imported.notes.len(), count, "{target}: {imported:?}");
        }
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
- {source: h.test/listed, type: repository, tags: {allow: [v1.2.3, v1.3.0-rc1, latest], deny: ['.*-rc\d', '(?P<']}}
- {source: h.test/bad, type: repository, tagSets: [{semverRange: ['latest']}, {allow: ['(?P<']}]}
- {source: h.test/both, type: repository, tags: {semverRange: ['>=1'], allow: ['1|2.*']}}
- source: h.test/form
  type: repository
  tags: {semverRange: ['>1.9 <3', '', '>=v4'], allow: ['v?\d+\.\d+(\.\d+)?']}
- {source: h.test/plain, type: repository, tags: {semverRange: ['<=1.9'], deny: ['.*-.*']}}
";
        let imported = import("regsync", text).unwrap();
        let made = manifest_of(&imported, "m", "a title");
        for line in [
            "  - docker.io/library/alpine:edge
",
            "  - h.test/listed:latest\n  - h.test/listed:v1.2.3\n",
            r#"  - {repo: "docker.io/library/alpine", select: "^(3\\.\\d+)$"}"#,
            r#"  - {repo: "h.test/all", select: "^(.*)$", except: ["^(nightly)$"]}"#,
            r#"  - {repo: "h.test/both", select: "^(.*(?:^1|2.*$).*)$"}"#,
            r#"  - {repo: "h.test/form", select: ">1.9.0 <3 || >=v4"}"#,
            r#"  - {repo: "h.test/plain", select: "<=1.9.0", except: ["^(.*-.*)$"]}"#,
            r#"  - {repo: "quay.io/a/ranges", select: ">=1.2.0 <2", except: ["^(1.3.*)$", "^(.*-rc\\.\\d+)$"], platforms: [linux/amd64]}"#,
        ] {
            assert!(made.contains(line), "{line}: {made}");
        }
        assert_eq!(imported.not_imported.len(), 3, "{imported:?}");
        // regsync also selects 1.2.3-alpine
        let variants = "quay.io/a/ranges: tags by the rule >=1.2.0 <2: a range selects no variants";
        assert!(imported.not_imported[0].contains(variants), "{imported:?}");
        assert_eq!(imported.notes.len(), 1, "{imported:?}");
        assert!(!made.contains("v1.3.0-rc1"), "{made}");
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
