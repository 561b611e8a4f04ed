//! Joins the parts of split references.

use crate::reference_parts::{PartGroup, PartKind, part, part_groups};
use crate::yaml::{ScalarStyle, YamlDocument, YamlEntry, YamlNode, YamlScalar, position_of};
use landfall_model::ImageRef;
use std::collections::BTreeMap;

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
                let reference = SplitReference::new(entries, &group, document, merges, room)?;
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
        if base
            .parse::<ImageRef>()
            .is_ok_and(|reference| reference.is_pinned())
        {
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
            merged,
        })
    }
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
