//! Recognizes keys that name a part of a reference: `registry`, `repository`, `tag` and `digest`,
//! also with a common prefix (`imageRepository`, `imageTag`) or other names (`hub`, `sha`).

use crate::edit::pin;
use crate::yaml::{YamlDocument, YamlEntry, position_of};
use landfall_model::has_host;
use std::collections::BTreeMap;

/// The part of a reference that a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    Registry,
    Repository,
    Tag,
    Digest,
}

const ENDINGS: [(&str, PartKind); 9] = [
    // the keys of kustomize; `newtag` also ends with `tag`, so it must precede `tag`
    ("newname", PartKind::Repository),
    ("newtag", PartKind::Tag),
    ("registry", PartKind::Registry),
    ("repository", PartKind::Repository),
    ("repo", PartKind::Repository),
    ("tag", PartKind::Tag),
    ("digest", PartKind::Digest),
    ("sha", PartKind::Digest),
    ("hub", PartKind::Registry),
];

/// The position of each part of one reference in its mapping. Usually their keys have the same
/// prefix.
pub(crate) type PartGroup = BTreeMap<PartKind, usize>;

/// The prefix and the part that a key names: `imageTag` is (`image`, the tag), `tag` is (empty, the
/// tag), `vintag` is `None`.
pub(crate) fn part(key: &str) -> Option<(String, PartKind)> {
    // the last letter rules out most endings: this function is called for every key
    let last = key.bytes().next_back()?.to_ascii_lowercase();
    let ending = ENDINGS
        .iter()
        .filter(|(ending, _)| ending.as_bytes().last() == Some(&last));
    ending.into_iter().find_map(|(ending, part)| {
        let at = key
            .len()
            .checked_sub(ending.len())
            .filter(|&at| key.is_char_boundary(at))?;
        let (beginning, end) = key.split_at(at);
        end.eq_ignore_ascii_case(ending).then_some(())?;
        let stem = beginning.trim_end_matches(['_', '-', '.']);
        let word =
            stem.len() < beginning.len() || stem.is_empty() || end.starts_with(char::is_uppercase);
        word.then(|| (stem.to_ascii_lowercase(), *part))
    })
}

/// Whether the value of a registry key is not a registry, but a reference with a tag or digest.
fn is_whole(text: &str) -> bool {
    text.contains('/') && !pin(text.trim()).is_empty()
}

/// The split references of a mapping under the key `under`.
pub(crate) fn part_groups(
    entries: &[YamlEntry<'_>],
    under: Option<&str>,
    document: &YamlDocument<'_>,
) -> Vec<PartGroup> {
    let mut groups: BTreeMap<String, PartGroup> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let Some((stem, part)) = entry.key.scalar().and_then(|key| part(&key.value)) else {
            continue;
        };
        let Some(text) = document.text(&entry.value) else {
            continue;
        };
        // a complete reference under `hub` or `registry` is read as a value of its own
        if part != PartKind::Registry || !is_whole(text) {
            groups.entry(stem).or_default().entry(part).or_insert(at);
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    // in a mapping with a `registry`, `tag` or `imageTag`, `image` is the repository
    if let Some(at) = text_position(entries, "image", document) {
        add_image(&mut groups, at);
    }
    if let Some(group) = groups.get_mut("") {
        let has_registry = group.contains_key(&PartKind::Registry);
        let has_tag = group.contains_key(&PartKind::Tag);
        // `name` is the repository in a mapping with a `registry`, and in a mapping with a `tag`
        // under a key that ends with `image`
        let in_image = under.is_some_and(|key| key.to_ascii_lowercase().ends_with("image"));
        if let Some(at) = text_position(entries, "name", document)
            && (has_registry || (in_image && has_tag))
        {
            group.entry(PartKind::Repository).or_insert(at);
        }
        // in a mapping with `registry` and a repository, `version` is the tag (Calico)
        if let Some(at) = text_position(entries, "version", document)
            && has_registry
            && group.contains_key(&PartKind::Repository)
            && !group.contains_key(&PartKind::Digest)
        {
            group.entry(PartKind::Tag).or_insert(at);
        }
    }
    apply_chart_conventions(&mut groups, entries, document);
    groups.into_values().collect()
}

/// Adds the entry `at`, whose key is `image`, as the repository of a group without one.
fn add_image(groups: &mut BTreeMap<String, PartGroup>, at: usize) {
    // `imageRegistry` and `tag` belong to one reference if `image` is its repository
    if groups.contains_key("")
        && let Some(image) = groups.remove("image")
    {
        if image.contains_key(&PartKind::Repository) {
            groups.insert("image".into(), image);
        } else {
            let group = groups.entry(String::new()).or_default();
            for (part, at) in image {
                group.entry(part).or_insert(at);
            }
        }
    }
    for stem in ["", "image"] {
        if let Some(group) = groups.get_mut(stem)
            && !group.contains_key(&PartKind::Repository)
        {
            group.insert(PartKind::Repository, at);
            return;
        }
    }
}

/// The position of the entry `key`, if its value is a text.
fn text_position(
    entries: &[YamlEntry<'_>],
    key: &str,
    document: &YamlDocument<'_>,
) -> Option<usize> {
    entries
        .iter()
        .position(|entry| entry.key.is_text(key) && document.text(&entry.value).is_some())
}

/// Applies conventions of certain charts.
fn apply_chart_conventions(
    groups: &mut BTreeMap<String, PartGroup>,
    entries: &[YamlEntry<'_>],
    document: &YamlDocument<'_>,
) {
    // Strimzi: a prefix and a tag that all images share are not one reference
    groups.remove(DEFAULT_IMAGE);
    // Kyverno: `defaultRegistry` is the registry of images that have none of their own
    let default = groups
        .get("default")
        .and_then(|group| group.get(&PartKind::Registry))
        .copied();
    let Some(group) = groups.get_mut("") else {
        return;
    };
    let Some(&repository) = group.get(&PartKind::Repository) else {
        return;
    };
    if let Some(default) = default {
        group.entry(PartKind::Registry).or_insert(default);
    }
    if group.contains_key(&PartKind::Registry) {
        return;
    }
    // NVIDIA's GPU operator: `repository` is everything before the name in `image`
    let Some(image) = position_of(entries, "image") else {
        return;
    };
    let name = document.text(&entries[image].value).unwrap_or_default();
    let prefix = document.text(&entries[repository].value);
    if !is_prefix_of(prefix.unwrap_or_default(), name.trim()) {
        return;
    }
    group.insert(PartKind::Registry, repository);
    group.insert(PartKind::Repository, image);
    if let Some(version) = position_of(entries, "version")
        && document.text(&entries[version].value).is_some()
    {
        group.entry(PartKind::Tag).or_insert(version);
    }
}

/// The prefix of Strimzi's keys for the defaults of all images, in lower case.
const DEFAULT_IMAGE: &str = "defaultimage";

/// Whether `repository` and `image` of one mapping are the first and the last part of a name.
pub(crate) fn is_prefix_of(repository: &str, image: &str) -> bool {
    has_host(&format!("{repository}/x")) && !image.is_empty() && !image.contains(['/', ':', '@'])
}
