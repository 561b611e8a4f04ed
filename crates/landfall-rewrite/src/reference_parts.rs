//! The grammar of keys that name a part of a reference: `registry`, `repository`, `tag` and
//! `digest`, also with a shared beginning (`imageRepository`, `imageTag`) and in other words
//! (`hub`, `sha`).

use super::notation::pin;
use super::yaml::{Document, Entry, Node};
use landfall_model::has_host;
use std::collections::BTreeMap;

/// A part of a reference, by the end of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Registry,
    Repository,
    Tag,
    Digest,
}

const ENDINGS: [(&str, Part); 9] = [
    // kustomize: what replaces the image that `name` says; before the `tag` that it ends in
    ("newname", Part::Repository),
    ("newtag", Part::Tag),
    ("registry", Part::Registry),
    ("repository", Part::Repository),
    ("repo", Part::Repository),
    ("tag", Part::Tag),
    ("digest", Part::Digest),
    ("sha", Part::Digest),
    ("hub", Part::Registry),
];

/// The parts that stand in one mapping under keys with one beginning: where each is in the mapping.
pub(crate) type Group = BTreeMap<Part, usize>;

/// `imageTag` is (`image`, the tag), `tag` is (nothing, the tag), `vintag` is no part.
pub(crate) fn part(key: &str) -> Option<(String, Part)> {
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

/// Whether a value under the key of a registry is none, but a reference with a tag or digest.
fn is_whole(text: &str) -> bool {
    text.contains('/') && !pin(text.trim()).is_empty()
}

/// The references in parts of a mapping that stands under `under`.
pub(crate) fn groups(
    entries: &[Entry<'_>],
    under: Option<&str>,
    document: &Document<'_>,
) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (at, (key, value)) in entries.iter().enumerate() {
        let Some(key) = key.scalar() else { continue };
        let Some((stem, part)) = part(&key.value) else {
            continue;
        };
        let fits = |text: &str| part != Part::Registry || !is_whole(text);
        if document.text(value).is_some_and(fits) {
            groups.entry(stem).or_default().entry(part).or_insert(at);
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let find = |name: &str| {
        let is_it = |key: &Node<'_>| key.scalar().is_some_and(|key| key.value == name);
        entries
            .iter()
            .position(|(key, value)| is_it(key) && document.text(value).is_some())
    };
    // `image` beside a `registry` or `tag`, or an `imageTag`, is the repository
    if let Some(at) = find("image") {
        // `imageRegistry` and `tag` beside it are parts of the same
        if let (true, Some(more)) = (groups.contains_key(""), groups.get("image").cloned())
            && !more.contains_key(&Part::Repository)
            && let Some(group) = groups.get_mut("")
        {
            more.into_iter()
                .for_each(|(part, at)| _ = group.entry(part).or_insert(at));
            groups.remove("image");
        }
        let fits = |stem: &&str| {
            groups
                .get(*stem)
                .is_some_and(|g| !g.contains_key(&Part::Repository))
        };
        if let Some(group) = ["", "image"]
            .iter()
            .find(|stem| fits(stem))
            .and_then(|s| groups.get_mut(*s))
        {
            group.insert(Part::Repository, at);
        }
    }
    // `name` beside a `registry` is it, too, and in what is named after an image
    let in_image = under.is_some_and(|key| key.to_ascii_lowercase().ends_with("image"));
    if let (Some(at), Some(group)) = (find("name"), groups.get_mut("")) {
        let sure =
            group.contains_key(&Part::Registry) || (in_image && group.contains_key(&Part::Tag));
        if sure && !group.contains_key(&Part::Repository) {
            group.insert(Part::Repository, at);
        }
    }
    // `version` beside `registry` and `image` is the tag (Calico)
    if let (Some(at), Some(group)) = (find("version"), groups.get_mut("")) {
        let rest = [Part::Registry, Part::Repository]
            .iter()
            .all(|part| group.contains_key(part));
        if rest && !group.contains_key(&Part::Tag) && !group.contains_key(&Part::Digest) {
            group.insert(Part::Tag, at);
        }
    }
    chart_forms(&mut groups, entries, document);
    groups.into_values().collect()
}

/// What charts make of the same keys.
fn chart_forms(
    groups: &mut BTreeMap<String, Group>,
    entries: &[Entry<'_>],
    document: &Document<'_>,
) {
    let find = |name: &str| {
        let value = entries
            .iter()
            .position(|(key, _)| key.scalar().is_some_and(|key| key.value == name))?;
        Some((value, document.text(&entries[value].1)?.trim()))
    };
    // a prefix that the images share, and the tag that they have (Strimzi)
    groups.remove(DEFAULT_IMAGE);
    // the registry of those that have none (Kyverno)
    let default = groups
        .get("default")
        .and_then(|group| group.get(&Part::Registry))
        .copied();
    let Some(group) = groups.get_mut("") else {
        return;
    };
    if let (Some(default), true) = (default, group.contains_key(&Part::Repository)) {
        group.entry(Part::Registry).or_insert(default);
    }
    // `repository` is all that stands before the name in `image` (NVIDIA's GPU operator)
    if let (Some(&prefix), Some((name, text))) = (group.get(&Part::Repository), find("image"))
        && !group.contains_key(&Part::Registry)
        && is_prefix_of(document.text(&entries[prefix].1).unwrap_or_default(), text)
    {
        group.extend([(Part::Registry, prefix), (Part::Repository, name)]);
        if let Some((version, _)) = find("version") {
            group.entry(Part::Tag).or_insert(version);
        }
    }
}

/// The beginning of the keys with which Strimzi names a prefix of images, in lower case.
const DEFAULT_IMAGE: &str = "defaultimage";

/// Whether `repository` and `image` of one mapping are the beginning and the end of a name.
pub(crate) fn is_prefix_of(repository: &str, image: &str) -> bool {
    has_host(&format!("{repository}/x")) && !image.is_empty() && !image.contains(['/', ':', '@'])
}
