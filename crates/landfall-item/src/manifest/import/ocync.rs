//! `ocync`: its configuration, as documented in clowdhaus/ocync, docs/src/content/configuration.md.

use super::imported::{ImportPosition, ImportSource, ImportedItems, ImportedSelector};
use super::yaml::{
    NO_VARIANTS, documents, for_each_mapping, map, note_other_keys, range_of, text, texts,
};
use crate::ManifestResult;
use landfall_model::{VersionSelection, after_web_scheme};
use regex_lite::Regex;
use serde_yaml::Mapping;
use std::num::NonZeroUsize;

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
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
        note_keys_of_mapping(imported, source.at("defaults"), defaults);
        let at = source.at("");
        for_each_mapping(imported, at, &config, "mappings", |imported, at, one| {
            read_mapping(one, defaults, &config, at, imported);
            note_keys_of_mapping(imported, at, one);
        });
    }
    Ok(())
}

/// Records the keys of a mapping, or of the defaults for all of them, that are not imported.
fn note_keys_of_mapping(imported: &mut ImportedItems, at: ImportPosition<'_>, mapping: &Mapping) {
    let known = ["from", "to", "source", "targets", "tags", "platforms"];
    note_other_keys(imported, at, mapping, &known);
    let known = ["glob", "include", "semver", "exclude", "sort", "latest"];
    if let Some(tags) = map(mapping, "tags") {
        note_other_keys(imported, at.source.at(&at.below("tags")), tags, &known);
    }
}

fn read_mapping(
    mapping: &Mapping,
    defaults: &Mapping,
    config: &Mapping,
    at: ImportPosition<'_>,
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
        let why = format!("the registry `{registry}` has no `url`");
        return imported.not_imported(at, &from, &why);
    };
    let host = after_web_scheme(&url).unwrap_or(&url).trim_end_matches('/');
    let platforms = if mapping.contains_key("platforms") {
        texts(mapping, "platforms")
    } else {
        texts(defaults, "platforms")
    };
    let repository = OcyncRepository {
        name: format!("{host}/{from}"),
        platforms,
        at,
    };
    let empty = Mapping::new();
    let of = |outer| map(outer, "tags").unwrap_or(&empty);
    TagRules::of(of(mapping), of(defaults)).read(&repository, imported);
}

/// A repository whose tags ocync copies.
struct OcyncRepository<'s> {
    name: String,
    platforms: Vec<String>,
    at: ImportPosition<'s>,
}

/// The tags that ocync itself excludes, unless a pattern in `include` matches them.
const PRERELEASES: &str = "^(?i).*-(rc|alpha|beta|pre|snapshot|nightly).*$";

/// The pattern that excludes all variants of versions, such as `1.2.3-alpine`.
const VARIANTS: &str = "*-*";

/// The rules that select the tags of a repository. A key of a mapping replaces that of the
/// defaults; only of `exclude`, both count.
struct TagRules {
    globs: Vec<String>,
    /// Tags that are copied in any case, and patterns of tags that no glob need match and that the
    /// defaults do not exclude.
    included: Vec<String>,
    range: Option<String>,
    excluded: Vec<String>,
    excluded_by_default: Vec<String>,
    sort: Option<String>,
    latest: Option<String>,
}

impl TagRules {
    fn of(own: &Mapping, defaults: &Mapping) -> TagRules {
        let of = |key| {
            [own, defaults]
                .into_iter()
                .find(|map| map.contains_key(key))
        };
        let list = |key| of(key).map_or_else(Vec::new, |tags| texts(tags, key));
        let one = |key| of(key).and_then(|tags| text(tags, key));
        TagRules {
            globs: list("glob"),
            included: list("include"),
            range: one("semver"),
            excluded: texts(own, "exclude"),
            excluded_by_default: texts(defaults, "exclude"),
            sort: one("sort"),
            latest: one("latest"),
        }
    }

    /// Adds tags and selectors to `imported`, and reports the rules that a manifest cannot express.
    fn read(&self, repository: &OcyncRepository<'_>, imported: &mut ImportedItems) {
        let excluded = expressions(&self.excluded);
        let mut all_excluded = excluded.clone();
        all_excluded.extend(expressions(&self.excluded_by_default));
        all_excluded.push(PRERELEASES.into());
        let (mut tags, patterns): (Vec<&String>, Vec<&String>) =
            self.included.iter().partition(|tag| is_tag(tag));
        tags.retain(|tag| !is_one_of(tag, &excluded));
        let mut selectors: Vec<(String, Vec<String>)> = Vec::new();
        let mut lost = None;
        let newest = self.newest();
        let has_all = self.globs.is_empty() || self.globs.iter().any(|glob| glob == "*");
        match (&self.range, &newest) {
            (_, Err(why)) => lost = Some(*why),
            (Some(range), Ok(_)) if has_all => {
                let all_globs = self.excluded.iter().chain(&self.excluded_by_default);
                if !patterns.is_empty() || !all_globs.clone().any(|glob| glob == VARIANTS) {
                    lost = Some(NO_VARIANTS);
                }
                // a version without a variant has no dash
                let of_versions =
                    all_globs.filter(|glob| !glob.contains('-') || glob.contains('['));
                selectors.push((range_of(range.split(',')), expressions(of_versions)));
            }
            (Some(_), Ok(_)) => {
                lost = Some("a range selects only versions such as 1.2.3; write a pattern");
            }
            (None, Ok(Some(_))) if !patterns.is_empty() => {
                lost = Some("`include` and `latest` together; list the tags, or write a pattern");
            }
            (None, Ok(newest)) => {
                let (listed, globs): (Vec<&String>, Vec<&String>) = self
                    .globs
                    .iter()
                    .partition(|glob| newest.is_none() && is_tag(glob));
                if !globs.is_empty() || listed.is_empty() {
                    let mut except = all_excluded.clone();
                    except.extend(expressions(patterns.iter().copied()));
                    selectors.push((pattern_of(&globs), except));
                }
                if !patterns.is_empty() {
                    selectors.push((pattern_of(&patterns), excluded));
                }
                tags.extend(
                    listed
                        .into_iter()
                        .filter(|tag| !is_one_of(tag, &all_excluded)),
                );
                if newest.is_some() {
                    let what = "tags of one version, such as 1.2 and 1.2-alpine, may have another \
                                order than in ocync";
                    imported.note(repository.at, &format!("{}: {what}", repository.name));
                }
            }
        }
        for tag in &tags {
            let reference = format!("{}:{tag}", repository.name);
            imported.image(repository.at, &reference, &repository.platforms);
        }
        for (select, mut except) in selectors {
            // a manifest must not have a tag twice
            let twice = tags.iter().filter(|tag| is_selected(tag, &select, &except));
            let twice: Vec<String> = twice.map(|tag| (*tag).clone()).collect();
            except.extend(twice);
            let selector = ImportedSelector {
                repository: repository.name.clone(),
                select,
                except,
                newest: newest.unwrap_or_default(),
            };
            imported.select(repository.at, selector, &repository.platforms);
        }
        if let Some(why) = lost {
            let what = format!("tags by the rules {}: {why}", self.describe());
            imported.not_imported(repository.at, &repository.name, &what);
        }
    }

    /// How many tags are copied at most; `None` for all. Otherwise, why a manifest cannot have
    /// that number.
    fn newest(&self) -> Result<Option<NonZeroUsize>, &'static str> {
        match (&self.latest, self.sort.as_deref()) {
            (None, _) => Ok(None),
            (Some(count), Some("semver")) => {
                let count = count.parse().map(Some);
                count.map_err(|_| "`latest` must be a number above 0")
            }
            (Some(_), _) => Err("a manifest can have the newest tags only by their versions"),
        }
    }

    /// The rules as messages name them.
    fn describe(&self) -> String {
        let lists = [
            ("glob", &self.globs),
            ("include", &self.included),
            ("exclude", &self.excluded),
        ];
        let lists = lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(key, list)| format!("{key} {}", list.join(" ")));
        let texts = [
            ("semver", &self.range),
            ("sort", &self.sort),
            ("latest", &self.latest),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(key, text)| Some(format!("{key} {}", text.as_ref()?)));
        lists.chain(texts).collect::<Vec<_>>().join(", ")
    }
}

/// Whether `glob` is a tag rather than a pattern.
fn is_tag(glob: &str) -> bool {
    !glob.contains(['*', '?', '[', '{'])
}

/// The glob as a regular expression without anchors.
fn expression(glob: &str) -> String {
    let mut expression = String::new();
    let mut rest = glob.chars();
    let mut is_in_class = false;
    let mut is_in_braces = false;
    while let Some(c) = rest.next() {
        match c {
            ']' if is_in_class => {
                is_in_class = false;
                expression.push(c);
            }
            '!' if is_in_class && expression.ends_with('[') => expression.push('^'),
            _ if is_in_class => expression.push(c),
            '[' => {
                is_in_class = true;
                expression.push(c);
            }
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '{' => {
                is_in_braces = true;
                expression.push_str("(?:");
            }
            '}' => {
                is_in_braces = false;
                expression.push(')');
            }
            ',' if is_in_braces => expression.push('|'),
            '\\' => expression.extend(rest.next().map(escaped)),
            _ => expression.push_str(&escaped(c)),
        }
    }
    expression
}

/// A character as a regular expression.
fn escaped(c: char) -> String {
    if ".+()|^$\\*?[]{}".contains(c) {
        format!("\\{c}")
    } else {
        c.into()
    }
}

/// The globs as regular expressions for a whole tag, as `except` has them.
fn expressions<'g>(globs: impl IntoIterator<Item = &'g String>) -> Vec<String> {
    let globs = globs.into_iter();
    globs
        .map(|glob| format!("^{}$", expression(glob)))
        .collect()
}

/// The pattern for tags that one of `globs` matches, or all tags if there are none.
fn pattern_of(globs: &[&String]) -> String {
    if globs.is_empty() {
        return "^(.*)$".into();
    }
    let all: Vec<String> = globs.iter().map(|glob| expression(glob)).collect();
    format!("^({})$", all.join("|"))
}

/// Whether one of `expressions` matches `tag`.
fn is_one_of(tag: &str, expressions: &[String]) -> bool {
    let mut found = expressions.iter().filter_map(|text| Regex::new(text).ok());
    found.any(|expression| expression.is_match(tag))
}

/// Whether the rule `select` selects `tag`.
fn is_selected(tag: &str, select: &str, except: &[String]) -> bool {
    VersionSelection::new(select).is_ok_and(|selection| {
        let found = selection.newest([tag.to_owned()]);
        !found.is_empty() && !is_one_of(tag, except)
    })
}

#[cfg(test)]
mod tests {
    use super::super::imported::{ImportedItems, manifest_of};
    use super::super::testing::import;
    use super::*;

    /// Imports mappings of one repository, `h.test/r`, with these defaults and rules for tags.
    fn imported(defaults: &str, rules: &str) -> ImportedItems {
        let text = format!(
            "registries: {{s: {{url: h.test}}}}\ndefaults: {{source: s, targets: t, tags: \
             {{{defaults}}}}}\nmappings: [{{from: r, tags: {{{rules}}}}}]\n"
        );
        import("ocync", &text).unwrap()
    }

    #[test]
    fn literal_tags_are_imported() {
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
        assert_eq!(imported.not_imported.len(), 1, "{imported:?}");
        let made = manifest_of(&imported, "m", "a title");
        let prereleases = r#"except: ["^(?i).*-(rc|alpha|beta|pre|snapshot|nightly).*$"]"#;
        for line in [
            r#"{repo: "cgr.dev/chainguard/b", select: "^(1\\..*)$", "#,
            r#"{repo: "cgr.dev/chainguard/c", select: "^(.*)$", "#,
        ] {
            let line = format!("{line}{prereleases}, platforms: [linux/amd64]}}");
            assert!(made.contains(&line), "{line}: {made}");
        }
    }

    /// The tags of a repository that the import selects, of those in `found`.
    fn selected(imported: &ImportedItems, found: &str) -> Vec<String> {
        let made = manifest_of(imported, "m", "t");
        let made: serde_json::Value = serde_yaml::from_str(&made).unwrap();
        let mut all = Vec::new();
        for entry in made["images"].as_array().into_iter().flatten() {
            let reference = entry.as_str().or(entry["ref"].as_str());
            if let Some(tag) = reference.and_then(|one| one.strip_prefix("h.test/r:")) {
                all.push(tag.to_owned());
                continue;
            }
            let mut rule = VersionSelection::new(entry["select"].as_str().unwrap()).unwrap();
            for text in entry["except"].as_array().into_iter().flatten() {
                rule.exclude(text.as_str().unwrap()).unwrap();
            }
            let mut tags = rule.newest(found.split(' ').map(str::to_owned));
            if let Some(newest) = entry["newest"].as_u64() {
                tags.truncate(usize::try_from(newest).unwrap());
            }
            all.extend(tags);
        }
        all
    }

    const FOUND: &str = "latest latest-dev 1.8.0 1.9.0 1.9.5 1.10.0 1.10.0-alpine 1.9.5-alpine \
                         1.10.0-RC1 2.0.0-beta2 v2.0.0 edge 1.10.0-alpine-debug";

    #[test]
    fn rules_select_the_tags_that_ocync_copies() {
        for (defaults, rules, expected) in [
            ("", "glob: 'v*'", "v2.0.0"),
            (
                "",
                "glob: ['1.?.*', edge]",
                "edge 1.9.5-alpine 1.9.5 1.9.0 1.8.0",
            ),
            ("", "glob: '{edge,v*}'", "v2.0.0 edge"),
            ("", "glob: '1.[!9].*', exclude: '*-*'", "1.8.0"),
            (
                "",
                "glob: '*-alpine', sort: semver, latest: 1",
                "1.10.0-alpine",
            ),
            ("glob: '*-alpine'", "exclude: ['1.10*']", "1.9.5-alpine"),
            // ocync excludes pre-releases, unless they are included
            ("", "glob: ['1.10.0-RC1', '1.8.0']", "1.8.0"),
            ("", "glob: '2*', include: '*-beta*'", "2.0.0-beta2"),
            (
                "exclude: '1.9*'",
                "glob: '1.[89]*', include: '*.5'",
                "1.9.5 1.8.0",
            ),
            ("", "glob: '2*', include: '*-beta*', exclude: '2*'", ""),
            // literals in `include` are copied in any case, unless the mapping excludes them
            (
                "exclude: edge",
                "glob: 'v*', include: [edge, latest-dev]",
                "edge latest-dev v2.0.0",
            ),
            (
                "",
                "glob: 'v*', include: [edge, latest-dev], exclude: '*-dev'",
                "edge v2.0.0",
            ),
            (
                "",
                "glob: '1.9*', include: '1.9.0', exclude: '*-*'",
                "1.9.0 1.9.5",
            ),
            // ranges
            (
                "exclude: '*-*'",
                "semver: '>=1.9, <2'",
                "1.10.0 1.9.5 1.9.0",
            ),
            (
                "exclude: '*-*'",
                "semver: '>=1.9, <2', sort: semver, latest: 1",
                "1.10.0",
            ),
            (
                "exclude: ['*-*', '*.5']",
                "glob: '*', semver: '>=1.9,<=1.10'",
                "1.10.0 1.9.0",
            ),
            (
                "exclude: '*-*'",
                "semver: '>1.9', include: [latest]",
                "latest v2.0.0 1.10.0 1.9.5",
            ),
            ("exclude: '*-*'", "semver: '1.9'", "1.9.0"),
        ] {
            let imported = imported(defaults, rules);
            let found = selected(&imported, FOUND).join(" ");
            assert_eq!(found, expected, "{defaults} {rules}: {imported:?}");
            assert!(imported.not_imported.is_empty(), "{rules}: {imported:?}");
        }
    }

    #[test]
    fn rules_that_a_manifest_cannot_express_are_reported() {
        for (rules, why, expected) in [
            ("semver: '>=1.10'", "such as 1.2.3-alpine", "v2.0.0 1.10.0"),
            (
                "semver: '>=2', include: [latest, '*-alpine'], exclude: '*-*'",
                "such as 1.2.3-alpine",
                "latest v2.0.0",
            ),
            (
                "semver: '>=1.10', glob: '*-alpine'",
                "only versions such as 1.2.3",
                "",
            ),
            (
                "glob: '1*', sort: alpha, latest: 2",
                "only by their versions",
                "",
            ),
            (
                "include: [edge], latest: 2",
                "only by their versions",
                "edge",
            ),
            ("sort: semver, latest: 0", "a number above 0", ""),
            (
                "include: '*-rc*', sort: semver, latest: 2",
                "`include` and `latest`",
                "",
            ),
            ("semver: 'x1', exclude: '*-*'", "the rule x1.0.0: ", ""),
            ("glob: '[z-a]'", "is not a regular expression", ""),
        ] {
            let imported = imported("", rules);
            let found = selected(&imported, FOUND).join(" ");
            assert_eq!(found, expected, "{rules}: {imported:?}");
            let [reason] = &imported.not_imported[..] else {
                panic!("{rules}: {imported:?}");
            };
            assert!(reason.contains(why), "{rules}: {reason}");
        }
    }

    #[test]
    fn settings_that_are_not_imported_are_noted() {
        let imported = imported("immutable_tags: 'v*'", "glob: a, min_tags: 1");
        let notes = imported.notes.join("\n");
        assert!(notes.contains("defaults.tags: `immutable_tags`"), "{notes}");
        assert!(notes.contains("mappings[0].tags: `min_tags`"), "{notes}");
    }
}
