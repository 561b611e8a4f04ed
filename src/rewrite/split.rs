//! Split references, as Helm values have them: `registry`, `repository`, `tag` and `digest` as
//! keys of one mapping, also with a common beginning (`imageRepository`, `imageTag`).

use super::find::{Finder, pin};
use super::known::{Position, Verdict};
use super::yaml::{Document, Node, Place, Scalar};
use crate::model::{ImageRef, names_host};
use std::collections::{BTreeMap, BTreeSet};

/// A part of a reference, by the end of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Registry,
    Repository,
    Tag,
    Digest,
}

const ENDINGS: [(&str, Part); 4] = [
    ("registry", Part::Registry),
    ("repository", Part::Repository),
    ("tag", Part::Tag),
    ("digest", Part::Digest),
];

/// The parts that stand in one mapping under keys with one beginning: where each is in the mapping.
pub(super) type Group = BTreeMap<Part, usize>;

pub(super) type Entries<'s> = [(Node<'s>, Node<'s>)];

/// Deals with every split reference of a mapping; gives the places of the entries that belong to one.
pub(super) fn split<'s>(finder: &mut Finder<'s, '_>, entries: &'s Entries<'s>) -> BTreeSet<usize> {
    let mut parts = BTreeSet::new();
    for group in groups(entries, finder.document) {
        if let Some(reference) = Reference::new(entries, &group, finder.document) {
            reference.decide(finder);
            parts.extend(group.values());
        }
    }
    parts
}

/// `imageTag` is (`image`, the tag), `tag` is (nothing, the tag), `vintag` is no part.
pub(super) fn part(key: &str) -> Option<(String, Part)> {
    ENDINGS.iter().find_map(|(ending, part)| {
        let at = key.len().checked_sub(ending.len()).filter(|&at| key.is_char_boundary(at))?;
        let (beginning, end) = key.split_at(at);
        let stem = beginning.trim_end_matches(['_', '-', '.']);
        let word = stem.len() < beginning.len() || stem.is_empty() || end.starts_with(char::is_uppercase);
        (word && end.eq_ignore_ascii_case(ending)).then(|| (stem.to_ascii_lowercase(), *part))
    })
}

pub(super) fn groups(entries: &Entries<'_>, document: &Document<'_>) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let key = |node: &Node<'_>| node.scalar().map(|key| key.value.to_string());
    for (at, (name, value)) in entries.iter().enumerate() {
        // an empty value is no part; a collection under `registry` is something else
        if let Some((stem, part)) = key(name).as_deref().and_then(part)
            && document.text(value).is_some()
        {
            groups.entry(stem).or_default().insert(part, at);
        }
    }
    // `image` beside a `tag`, or an `imageTag`, is the repository
    let image = entries.iter().position(|(name, _)| key(name).as_deref() == Some("image"));
    if let Some(at) = image.filter(|&at| document.text(&entries[at].1).is_some()) {
        let fits = |stem: &&str| groups.get(*stem).is_some_and(|g| !g.contains_key(&Part::Repository));
        if let Some(group) = ["", "image"].iter().find(|stem| fits(stem)).and_then(|s| groups.get_mut(*s)) {
            group.insert(Part::Repository, at);
        }
    }
    groups.into_values().collect()
}

/// A split reference put together.
pub(super) struct Reference<'s> {
    pub(super) registry: Option<(&'s Node<'s>, &'s str)>,
    pub(super) repository: (&'s Node<'s>, &'s str),
    /// `registry/repository`, or the repository alone.
    base: String,
    /// `base` with tag and digest.
    pub(super) whole: String,
    /// Whether another mapping is merged in and may bring what lacks here.
    merged: bool,
}

impl<'s> Reference<'s> {
    /// `None` where the mapping has no repository.
    pub(super) fn new(
        entries: &'s Entries<'s>,
        group: &Group,
        document: &'s Document<'s>,
    ) -> Option<Reference<'s>> {
        let value = |part: Part| {
            let node = &entries[*group.get(&part)?].1;
            Some((node, document.text(node)?))
        };
        let (registry, repository) = (value(Part::Registry), value(Part::Repository)?);
        let base = match registry {
            Some((_, host)) => format!("{}/{}", host.trim_end_matches('/'), repository.1),
            None => repository.1.to_owned(),
        };
        let mut whole = base.clone();
        if !base.parse::<ImageRef>().is_ok_and(|reference| reference.is_pinned()) {
            whole.extend(value(Part::Tag).map(|(_, tag)| format!(":{tag}")));
            whole.extend(value(Part::Digest).map(|(_, digest)| format!("@{digest}")));
        }
        let merges = entries.iter().any(|(key, _)| key.scalar().is_some_and(|key| key.value == "<<"));
        let merged = merges && (registry.is_none() || whole == base);
        Some(Reference { registry, repository, base, whole, merged })
    }

    /// Finds out what is meant, and writes or leaves it.
    fn decide(&self, finder: &mut Finder<'s, '_>) {
        let known = finder.known;
        let (item, to) = match known.lookup(&self.whole, Position::Repository) {
            Verdict::Known { .. } if self.merged => {
                return self.leave(finder, "a merged mapping (<<) may bring its registry or its tag");
            }
            Verdict::Known { item, to } => (item, to),
            Verdict::Settled => return finder.found.settled += 1,
            Verdict::Left(why) => return self.leave(finder, &why),
            Verdict::Unknown => {
                let is_known =
                    |text: &str| matches!(known.lookup(text, Position::Repository), Verdict::Known { .. });
                if self.whole != self.base && self.whole.parse::<ImageRef>().is_err() && is_known(&self.base)
                {
                    self.leave(finder, "its tag or digest is none");
                } else if self.registry.is_some()
                    && names_host(self.repository.1)
                    && is_known(self.repository.1)
                {
                    self.leave(finder, "its registry and its repository both name a host");
                }
                return;
            }
        };
        let pin = pin(self.repository.1);
        let wanted = match self.registry {
            Some((node, old)) => {
                let slash = if old.ends_with('/') { "/" } else { "" };
                vec![
                    (node, old, format!("{}{slash}", to.registry)),
                    (self.repository.0, self.repository.1, format!("{}{pin}", to.repository)),
                ]
            }
            None => vec![(self.repository.0, self.repository.1, format!("{to}{pin}"))],
        };
        let edits: Result<Vec<_>, _> = wanted
            .into_iter()
            .filter(|(_, old, new)| old != new)
            .map(|(node, _, new)| finder.edit(editable(node, finder.document)?, new, &item))
            .collect();
        match edits {
            Ok(edits) => finder.found.edits.extend(edits),
            Err(why) => self.leave(finder, why),
        }
    }

    fn leave(&self, finder: &mut Finder<'s, '_>, why: &str) {
        let place = match self.repository.0 {
            Node::Scalar(scalar) => scalar.place,
            Node::Alias(_, place) => *place,
            Node::Sequence(..) | Node::Mapping(..) => Place { line: 1, column: 1 },
        };
        finder.leave(place, &self.whole, why);
    }
}

/// A part that may be changed: nothing else has its value from it.
fn editable<'s>(node: &'s Node<'s>, document: &Document<'_>) -> Result<&'s Scalar<'s>, &'static str> {
    match node.scalar() {
        Some(scalar) if !document.is_shared(scalar) => Ok(scalar),
        _ => Err("a part of it is shared with other places by an anchor"),
    }
}
