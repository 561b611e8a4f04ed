//! A split reference: the parts that stand in one mapping, put together.

use super::reference_parts::{Group, Part, groups, part};
use super::yaml::{Document, Entry, Node, Scalar};
use landfall_model::ImageRef;

/// A part of a split reference: where it stands, and its text without blanks around it.
pub(crate) type Value<'s> = (&'s Node<'s>, &'s str);

/// A split reference put together.
pub(crate) struct SplitReference<'s> {
    pub(super) registry: Option<Value<'s>>,
    pub(crate) repository: Value<'s>,
    pub(super) tag: Option<Value<'s>>,
    pub(super) digest: Option<Value<'s>>,
    /// Where a digest can be added: an empty value between quotes.
    pub(super) room: Option<&'s Scalar<'s>>,
    /// `registry/repository`, or the repository alone.
    pub(super) base: String,
    /// `base` with tag and digest.
    pub(crate) whole: String,
    /// Whether another mapping is merged in and may supply a missing part.
    pub(super) merged: bool,
}

impl<'s> SplitReference<'s> {
    /// Those in a mapping that stands under `under`, each with where its parts are in the mapping.
    pub(crate) fn all(
        entries: &'s [Entry<'s>],
        under: Option<&str>,
        document: &'s Document<'s>,
    ) -> Vec<(Group, SplitReference<'s>)> {
        let groups = groups(entries, under, document);
        if groups.is_empty() {
            return Vec::new();
        }
        let merges = entries
            .iter()
            .any(|(key, _)| key.scalar().is_some_and(|key| key.value == "<<"));
        let is_digest = |key: &Node<'_>| {
            key.scalar()
                .and_then(|key| part(&key.value))
                .is_some_and(|(_, part)| part == Part::Digest)
        };
        let digests = entries
            .iter()
            .filter(|(key, _)| is_digest(key))
            .filter_map(|(_, value)| value.scalar());
        let room = digests
            .into_iter()
            .find(|scalar| scalar.value.is_empty() && scalar.span.len() == 2);
        let one = |group: Group| {
            let reference = SplitReference::new(entries, &group, document, merges, room)?;
            Some((group, reference))
        };
        groups.into_iter().filter_map(one).collect()
    }

    /// `None` where the group has no repository.
    fn new(
        entries: &'s [Entry<'s>],
        group: &Group,
        document: &'s Document<'s>,
        merges: bool,
        room: Option<&'s Scalar<'s>>,
    ) -> Option<SplitReference<'s>> {
        let value = |part: Part| {
            let node = &entries[*group.get(&part)?].1;
            Some((node, document.text(node)?.trim()))
        };
        let (registry, repository) = (value(Part::Registry), value(Part::Repository)?);
        let (mut tag, mut digest) = (value(Part::Tag), value(Part::Digest));
        let base = match registry {
            Some((_, host)) => format!("{}/{}", host.trim_end_matches('/'), repository.1),
            None => repository.1.to_owned(),
        };
        let mut whole = base.clone();
        if base
            .parse::<ImageRef>()
            .is_ok_and(|reference| reference.is_pinned())
        {
            (tag, digest) = (None, None);
        }
        whole.extend(tag.map(|(_, tag)| format!(":{tag}")));
        whole.extend(digest.map(
            |(_, digest)| match digest.len() == 64 && !digest.contains(':') {
                true => format!("@sha256:{digest}"),
                false => format!("@{digest}"),
            },
        ));
        let merged = merges && (registry.is_none() || whole == base);
        Some(SplitReference {
            registry,
            repository,
            tag,
            digest,
            room,
            base,
            whole,
            merged,
        })
    }
}
