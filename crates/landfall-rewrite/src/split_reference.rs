//! The parts of split references: recognizes their keys, and joins their values.

use crate::index::{is_pinned, pin};
use crate::yaml::{ScalarStyle, YamlDocument, YamlEntry, YamlNode, YamlScalar, position_of};
use landfall_model::{ImageRef, has_host};
use std::collections::BTreeMap;

// Recognizes keys that name a part of a reference: `registry`, `repository`, `tag` and `digest`,
// also with a common prefix (`imageRepository`, `imageTag`) or other names (`hub`, `sha`).

/// The part of a reference that a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    Registry,
    Repository,
    Tag,
    Digest,
}

const ENDINGS: [(&str, PartKind); 10] = [
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
    // only `imageVersion`; see `part`
    ("version", PartKind::Tag),
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
        // any other version need not be that of an image
        if *ending == "version" && !stem.eq_ignore_ascii_case("image") {
            return None;
        }
        let word =
            stem.len() < beginning.len() || stem.is_empty() || end.starts_with(char::is_uppercase);
        word.then(|| (stem.to_ascii_lowercase(), *part))
    })
}

/// The prefix of a key that ends with `imageName`, up to `image`: `webImageName` has `webimage`.
fn image_stem(key: &str) -> Option<String> {
    let at = key.len().checked_sub("name".len())?;
    let (stem, end) = key.split_at_checked(at)?;
    if !end.eq_ignore_ascii_case("name") {
        return None;
    }
    let stem = stem.trim_end_matches(['_', '-', '.']).to_ascii_lowercase();
    stem.ends_with("image").then_some(stem)
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
    // in a mapping with a `registry`, `tag` or `imageTag`, `image` is the repository
    if let Some(at) = text_position(entries, "image", document) {
        // k0s
        if let (2, Some(version)) = (entries.len(), text_position(entries, "version", document)) {
            groups
                .entry(String::new())
                .or_default()
                .insert(PartKind::Tag, version);
        }
        if has_empty_part(entries, "image", PartKind::Tag, document) {
            groups.entry("image".into()).or_default();
        }
        add_image(&mut groups, at);
    }
    if groups.is_empty() {
        return Vec::new();
    }
    // `webImageName` is the repository beside a `webImageTag` (ManageIQ)
    for (at, entry) in entries.iter().enumerate() {
        if let Some(stem) = entry.key.scalar().and_then(|key| image_stem(&key.value))
            && let Some(group) = groups.get_mut(&stem)
            && document.text(&entry.value).is_some()
        {
            group.entry(PartKind::Repository).or_insert(at);
        }
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
        // in a mapping with a repository, `version` is the tag if there is a `registry` (Calico),
        // or if the mapping is under a key that ends with `image` (JFrog)
        if let Some(at) = text_position(entries, "version", document)
            && (has_registry || in_image)
            && group.contains_key(&PartKind::Repository)
            && !group.contains_key(&PartKind::Digest)
        {
            group.entry(PartKind::Tag).or_insert(at);
        }
    }
    apply_chart_conventions(&mut groups, entries, under, document);
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
    under: Option<&str>,
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
    // `repository` is everything before the name, which is `image` (NVIDIA's GPU operator), or
    // `name` under a key that ends with `image` (Datadog)
    let prefix = document
        .text(&entries[repository].value)
        .unwrap_or_default();
    let text = |at: usize| document.text(&entries[at].value).unwrap_or_default().trim();
    let image = position_of(entries, "image").filter(|at| is_prefix_of(prefix, text(*at)));
    let name = position_of(entries, "name").filter(|at| {
        let in_image = under.is_some_and(|key| key.to_ascii_lowercase().ends_with("image"));
        in_image && is_prefix_of(prefix, text(*at)) && is_owner(prefix, text(*at))
    });
    let Some(image) = image.or(name) else {
        return;
    };
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

/// Whether `prefix` is a host with the name of an owner, who has the image `name`.
fn is_owner(prefix: &str, name: &str) -> bool {
    let owner = prefix.trim().trim_end_matches('/').split_once('/');
    owner.is_some_and(|(_, owner)| !owner.contains([':', '@', '/']) && owner != name)
}

/// A part of a split reference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartValue<'s> {
    pub(crate) node: &'s YamlNode<'s>,
    /// Its text without blanks around it.
    pub(crate) text: &'s str,
}

/// A split reference whose parts were joined.
pub(crate) struct SplitReference<'s> {
    pub(super) registry: Option<PartValue<'s>>,
    pub(crate) repository: PartValue<'s>,
    pub(super) tag: Option<PartValue<'s>>,
    pub(super) digest: Option<PartValue<'s>>,
    /// The empty quoted value of its digest, into which a digest can be written.
    pub(super) room: Option<&'s YamlScalar<'s>>,
    /// `registry/repository`, or only the repository.
    pub(super) base: String,
    /// `base` with tag and digest.
    pub(crate) whole: String,
    /// `base` with the text that Helm makes of the tag, if the tag is a number that Helm writes in
    /// another way (`1.1` for `1.10`). Other programs use the tag as written.
    pub(crate) with_helm_tag: Option<String>,
    /// The name on Docker Hub of an image with neither a host nor a tag, if it is certainly an
    /// image.
    pub(crate) on_docker_hub: Option<String>,
    /// Whether a merged mapping (`<<`) may supply a missing part.
    pub(super) merged: bool,
}

impl<'s> SplitReference<'s> {
    /// The split references in a mapping under the key `under`, each with the positions of its
    /// parts.
    pub(crate) fn all(
        entries: &'s [YamlEntry<'s>],
        under: Option<&str>,
        document: &'s YamlDocument<'s>,
    ) -> Vec<(PartGroup, SplitReference<'s>)> {
        let groups = part_groups(entries, under, document);
        if groups.is_empty() {
            return Vec::new();
        }
        let merges = position_of(entries, "<<").is_some();
        let rooms = digest_rooms(entries, &groups);
        groups
            .into_iter()
            .zip(rooms)
            .filter_map(|(group, room)| {
                let mut reference = SplitReference::new(entries, &group, document, merges, room)?;
                let repository = group.get(&PartKind::Repository);
                if reference.is_short()
                    && repository.is_some_and(|at| is_untagged_image(entries, *at, document))
                {
                    let name = reference.whole.parse::<ImageRef>();
                    reference.on_docker_hub = name.ok().map(|reference| reference.name());
                }
                Some((group, reference))
            })
            .collect()
    }

    /// Joins the parts of `group`. `None` if it has no repository.
    fn new(
        entries: &'s [YamlEntry<'s>],
        group: &PartGroup,
        document: &'s YamlDocument<'s>,
        merges: bool,
        room: Option<&'s YamlScalar<'s>>,
    ) -> Option<SplitReference<'s>> {
        let value = |part: PartKind| {
            let node = &entries[*group.get(&part)?].value;
            let text = document.text(node)?.trim();
            Some(PartValue { node, text })
        };
        let registry = value(PartKind::Registry);
        let repository = value(PartKind::Repository)?;
        let mut tag = value(PartKind::Tag);
        let mut digest = value(PartKind::Digest);
        let base = match registry {
            Some(host) => format!("{}/{}", host.text.trim_end_matches('/'), repository.text),
            None => repository.text.to_owned(),
        };
        // a pinned repository is a complete reference, to which nothing is appended
        if is_pinned(&base) {
            tag = None;
            digest = None;
        }
        let helm_tag = tag
            .filter(|_| digest.is_none())
            .and_then(|tag| helm_number(tag.node));
        let with_helm_tag = helm_tag.map(|tag| format!("{base}:{tag}"));
        let mut whole = base.clone();
        if let Some(tag) = tag {
            whole += &format!(":{}", tag.text);
        }
        if let Some(PartValue { text: digest, .. }) = digest {
            // the value of `sha` may be only the hexadecimal digits
            let is_bare_sha256 = digest.len() == 64 && !digest.contains(':');
            let algorithm = if is_bare_sha256 { "sha256:" } else { "" };
            whole += &format!("@{algorithm}{digest}");
        }
        // the merged mapping is not read here, and a part in it would change the reference
        let merged = merges && (registry.is_none() || whole == base);
        Some(SplitReference {
            registry,
            repository,
            tag,
            digest,
            room,
            base,
            whole,
            with_helm_tag,
            on_docker_hub: None,
            merged,
        })
    }

    /// Whether it has neither a registry, a host, a tag nor a digest.
    fn is_short(&self) -> bool {
        self.registry.is_none() && pin(&self.whole).is_empty() && !has_host(&self.whole)
    }
}

/// Whether a repository without a host and a tag is certainly that of an image: its key names an
/// image (`operatorImageRepository`), or the mapping has a key for the tag of the image, without a
/// value. Charts take the tag from `appVersion` then. Not if the mapping has such a key for the
/// registry: then that is set elsewhere, too.
fn is_untagged_image(
    entries: &[YamlEntry<'_>],
    repository: usize,
    document: &YamlDocument<'_>,
) -> bool {
    let key = &entries[repository].key;
    let named = key.scalar().and_then(|key| part(&key.value));
    // `name` may be anything
    let stem = match &named {
        Some((stem, _)) => stem,
        None if key.is_text("image") => "image",
        None => return false,
    };
    let has_empty = |part: PartKind| has_empty_part(entries, stem, part, document);
    // a single word may be completed elsewhere
    let has_path = || {
        let text = document.text(&entries[repository].value);
        text.is_some_and(|text| text.contains('/'))
    };
    let names_image = named.is_some() && stem.ends_with("image");
    (has_empty(PartKind::Tag) || (names_image && has_path())) && !has_empty(PartKind::Registry)
}

/// Whether the entries of a mapping have a key for this part with this prefix, without a value.
pub(crate) fn has_empty_part(
    entries: &[YamlEntry<'_>],
    stem: &str,
    wanted: PartKind,
    document: &YamlDocument<'_>,
) -> bool {
    entries.iter().any(|entry| {
        let key = entry.key.scalar().and_then(|key| part(&key.value));
        key.is_some_and(|(other, part)| other == stem && part == wanted)
            && document.text(&entry.value).is_none()
    })
}

/// The text that Helm makes of the plain number `node` with a fraction, if it differs.
fn helm_number(node: &YamlNode<'_>) -> Option<String> {
    let scalar = node.scalar()?;
    let text = &*scalar.value;
    let is_decimal = text.contains('.')
        && text
            .bytes()
            .all(|byte| byte == b'.' || byte.is_ascii_digit());
    if scalar.style != ScalarStyle::Plain || scalar.tag().is_some() || !is_decimal {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    Some(number.to_string()).filter(|printed| printed != text)
}

/// For each of `groups`, the empty quoted value of its digest, if there is one.
fn digest_rooms<'s>(
    entries: &'s [YamlEntry<'s>],
    groups: &[PartGroup],
) -> Vec<Option<&'s YamlScalar<'s>>> {
    let mut rooms: BTreeMap<String, &YamlScalar<'_>> = BTreeMap::new();
    for (stem, room) in entries.iter().filter_map(empty_quoted_digest) {
        rooms.entry(stem).or_insert(room);
    }
    let key = |at: &usize| Some(&*entries[*at].key.scalar()?.value);
    let mut of_groups: Vec<Option<&YamlScalar<'_>>> = groups
        .iter()
        .map(|group| {
            let stems = group.values().filter_map(|at| Some(part(key(at)?)?.0));
            stems.into_iter().find_map(|stem| rooms.remove(&stem))
        })
        .collect();
    // if `image` is the repository, the digest may be `imageDigest` or `digest`
    let with_image = |group: &PartGroup| group.values().any(|at| key(at) == Some("image"));
    if let Some(at) = groups.iter().position(with_image) {
        let own = of_groups[at].take();
        of_groups[at] = own.or_else(|| rooms.remove("image").or_else(|| rooms.remove("")));
    }
    of_groups
}

/// The prefix and the value of an entry into which a digest can be written: the key names a digest,
/// and the value is an empty quoted text.
fn empty_quoted_digest<'s>(entry: &'s YamlEntry<'s>) -> Option<(String, &'s YamlScalar<'s>)> {
    let (stem, part) = part(&entry.key.scalar()?.value)?;
    let value = entry.value.scalar()?;
    let is_empty = value.value.is_empty() && value.span.len() == 2;
    (part == PartKind::Digest && is_empty).then_some((stem, value))
}

/// A repository to which suffixes are appended, from the keys of one mapping.
pub(crate) struct SuffixedReference<'s> {
    /// The position of the entry with the repository, and its text.
    pub(crate) repository: (usize, &'s str),
    /// The positions of all entries that are parts of the references.
    pub(crate) parts: Vec<usize>,
    pub(crate) references: Vec<SuffixedImage>,
}

/// A reference with one of the suffixes.
pub(crate) struct SuffixedImage {
    /// The suffix with its separator, such as `-generic`.
    pub(crate) suffix: String,
    /// The reference with suffix, tag and digest.
    pub(crate) whole: String,
    /// The position of the entry with its digest.
    pub(crate) digest_at: usize,
}

impl<'s> SuffixedReference<'s> {
    /// Reads the entries of a mapping. `None` if it has no repository, no tag or no digest with a
    /// suffix.
    pub(crate) fn of(
        entries: &'s [YamlEntry<'s>],
        document: &'s YamlDocument<'s>,
    ) -> Option<SuffixedReference<'s>> {
        let repository_at = position_of(entries, "repository")?;
        let repository = document.text(&entries[repository_at].value)?.trim();
        let tag_at = position_of(entries, "tag")?;
        let tag = document.text(&entries[tag_at].value)?.trim();
        let mut parts = vec![repository_at, tag_at];
        let mut references = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            if let Some((name, digest)) = suffix_digest(entry, document) {
                let suffix = format!("-{name}");
                let whole = format!("{repository}{suffix}:{tag}@{digest}");
                references.push(SuffixedImage {
                    suffix,
                    whole,
                    digest_at: at,
                });
                parts.push(at);
            }
        }
        (!references.is_empty()).then_some(SuffixedReference {
            repository: (repository_at, repository),
            parts,
            references,
        })
    }
}

/// The suffix and the digest of an entry such as `genericDigest: sha256:…`.
fn suffix_digest<'s>(
    entry: &'s YamlEntry<'s>,
    document: &'s YamlDocument<'s>,
) -> Option<(&'s str, &'s str)> {
    let name = entry.key.scalar()?.value.strip_suffix("Digest")?;
    let digest = document.text(&entry.value)?.trim();
    (!name.is_empty() && digest.contains(':')).then_some((name, digest))
}
