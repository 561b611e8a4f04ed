//! References in parts, as Helm values have them: `registry`, `repository`, `tag` and `digest` as keys of one
//! mapping, also with a common beginning (`imageRepository`, `imageTag`) and in other words (`hub`, `sha`).

use crate::model::{Digest, ImageRef, names_host};
use crate::rewrite::findings::{Finding, Meaning};
use crate::rewrite::known::{Meant, Position, Verdict};
use crate::rewrite::walk::{Context, Entries, Walk};
use crate::rewrite::yaml::{Document, Node, Scalar};
use crate::rewrite::{pin, written};
use std::collections::BTreeMap;

/// A part of a reference, by the end of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::rewrite) enum Part {
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
pub(in crate::rewrite) type Group = BTreeMap<Part, usize>;

/// Deals with every split reference of a mapping; gives the places of the entries that belong to one.
pub(in crate::rewrite) fn split<'s>(
    walk: &mut Walk<'_, 's>,
    entries: &'s Entries<'s>,
    context: Context<'s>,
    taken: &[usize],
) -> Vec<usize> {
    let mut parts = Vec::new();
    for group in groups(entries, context.key, walk.document) {
        if group.values().any(|at| taken.contains(at)) {
            continue;
        }
        if let Some(reference) = Reference::new(entries, &group, walk.document)
            && reference.decide(walk, context)
        {
            parts.extend(group.values());
        }
    }
    parts
}

/// `imageTag` is (`image`, the tag), `tag` is (nothing, the tag), `vintag` is no part.
pub(in crate::rewrite) fn part(key: &str) -> Option<(String, Part)> {
    let last = key.bytes().next_back()?.to_ascii_lowercase();
    let ending = ENDINGS.iter().filter(|(ending, _)| ending.as_bytes().last() == Some(&last));
    ending.into_iter().find_map(|(ending, part)| {
        let at = key.len().checked_sub(ending.len()).filter(|&at| key.is_char_boundary(at))?;
        let (beginning, end) = key.split_at(at);
        end.eq_ignore_ascii_case(ending).then_some(())?;
        let stem = beginning.trim_end_matches(['_', '-', '.']);
        let word = stem.len() < beginning.len() || stem.is_empty() || end.starts_with(char::is_uppercase);
        word.then(|| (stem.to_ascii_lowercase(), *part))
    })
}

/// The references in parts of a mapping that stands under `under`.
pub(in crate::rewrite) fn groups(
    entries: &Entries<'_>,
    under: Option<&str>,
    document: &Document<'_>,
) -> Vec<Group> {
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (at, (key, value)) in entries.iter().enumerate() {
        let Some(key) = key.scalar() else { continue };
        let Some((stem, part)) = part(&key.value) else { continue };
        if document.text(value).is_some() {
            groups.entry(stem).or_default().entry(part).or_insert(at);
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let find = |name: &str| {
        let is_it = |key: &Node<'_>| key.scalar().is_some_and(|key| key.value == name);
        entries.iter().position(|(key, value)| is_it(key) && document.text(value).is_some())
    };
    // `image` beside a `tag`, or an `imageTag`, is the repository
    if let Some(at) = find("image") {
        let fits = |stem: &&str| groups.get(*stem).is_some_and(|g| !g.contains_key(&Part::Repository));
        if let Some(group) = ["", "image"].iter().find(|stem| fits(stem)).and_then(|s| groups.get_mut(*s)) {
            group.insert(Part::Repository, at);
        }
    }
    // `name` beside a `registry` is it, too, and in what is named after an image
    let in_image = under.is_some_and(|key| key.to_ascii_lowercase().ends_with("image"));
    if let (Some(at), Some(group)) = (find("name"), groups.get_mut("")) {
        let sure = group.contains_key(&Part::Registry) || (in_image && group.contains_key(&Part::Tag));
        if sure && !group.contains_key(&Part::Repository) {
            group.insert(Part::Repository, at);
        }
    }
    // `version` beside `registry` and `image` is the tag (Calico)
    if let (Some(at), Some(group)) = (find("version"), groups.get_mut("")) {
        let rest = [Part::Registry, Part::Repository].iter().all(|part| group.contains_key(part));
        if rest && !group.contains_key(&Part::Tag) && !group.contains_key(&Part::Digest) {
            group.insert(Part::Tag, at);
        }
    }
    groups.into_values().collect()
}

/// A part of a split reference: where it stands, and its text without blanks around it.
pub(in crate::rewrite) type Value<'s> = (&'s Node<'s>, &'s str);

/// A split reference put together.
pub(in crate::rewrite) struct Reference<'s> {
    registry: Option<Value<'s>>,
    pub(in crate::rewrite) repository: Value<'s>,
    tag: Option<Value<'s>>,
    digest: Option<Value<'s>>,
    /// Where a digest can be put that is not there yet: an empty value between quotes.
    room: Option<&'s Scalar<'s>>,
    /// `registry/repository`, or the repository alone.
    base: String,
    /// `base` with tag and digest.
    pub(in crate::rewrite) whole: String,
    /// Whether another mapping is merged in and may bring what lacks here.
    merged: bool,
}

impl<'s> Reference<'s> {
    /// `None` where the mapping has no repository.
    pub(in crate::rewrite) fn new(
        entries: &'s Entries<'s>,
        group: &Group,
        document: &'s Document<'s>,
    ) -> Option<Reference<'s>> {
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
        if base.parse::<ImageRef>().is_ok_and(|reference| reference.is_pinned()) {
            (tag, digest) = (None, None);
        }
        whole.extend(tag.map(|(_, tag)| format!(":{tag}")));
        whole.extend(digest.map(|(_, digest)| match digest.len() == 64 && !digest.contains(':') {
            true => format!("@sha256:{digest}"),
            false => format!("@{digest}"),
        }));
        let merges = entries.iter().any(|(key, _)| key.scalar().is_some_and(|key| key.value == "<<"));
        let merged = merges && (registry.is_none() || whole == base);
        let is_digest = |key: &Node<'_>| {
            key.scalar().and_then(|key| part(&key.value)).is_some_and(|(_, part)| part == Part::Digest)
        };
        let empty = entries.iter().filter(|(key, _)| is_digest(key)).filter_map(|(_, value)| value.scalar());
        let room = empty.into_iter().find(|scalar| scalar.value.is_empty() && scalar.span.len() == 2);
        Some(Reference { registry, repository, tag, digest, room, base, whole, merged })
    }

    /// Finds out what is meant, and writes or leaves it. `false` where the lock has nothing to do with it, so that
    /// its parts may be something else.
    fn decide(&self, walk: &mut Walk<'_, 's>, context: Context<'s>) -> bool {
        let known = walk.engine.known;
        let meant = match known.lookup(&self.whole, Position::Repository, walk.engine.options.pin) {
            Verdict::Known(_) if self.merged => {
                return self.leave(walk, "a merged mapping (<<) may bring its registry or its tag");
            }
            Verdict::Known(meant) => meant,
            Verdict::Settled(item) => return self.tell(walk, Meaning::Settled { item }),
            Verdict::Left(why) => return self.leave(walk, &why),
            Verdict::Unknown => return self.unknown(walk, context),
        };
        let to = written(&self.whole, &meant);
        let meaning = Meaning::Known { item: meant.item.clone(), to, reaches: vec![] };
        let finding = Finding::new(self.repository.0.start(), &*self.whole, Position::Repository, meaning);
        let done = self.parts(&meant, walk.document).and_then(|parts| walk.change_parts(finding, parts));
        done.map_or_else(|why| self.leave(walk, why), |()| true)
    }

    /// Each part that changes, and its new text.
    fn parts(
        &self,
        meant: &Meant,
        document: &Document<'_>,
    ) -> Result<Vec<(&'s Scalar<'s>, String)>, &'static str> {
        let mut parts: Vec<(Value<'s>, String)> = Vec::new();
        if let Some(to) = &meant.to {
            let pin = pin(self.repository.1);
            match self.registry {
                Some((node, old)) => {
                    let slash = if old.ends_with('/') { "/" } else { "" };
                    parts.push(((node, old), format!("{}{slash}", to.registry)));
                    parts.push((self.repository, format!("{}{pin}", to.repository)));
                }
                None => parts.push((self.repository, format!("{to}{pin}"))),
            }
        }
        let mut edits = Vec::new();
        if let Some(digest) = &meant.digest {
            match (self.digest, self.tag, self.room) {
                (Some(value), ..) => parts.push((value, as_written(value.1, digest))),
                (None, Some(_), Some(room)) => edits.push((room, digest.to_string())),
                (None, Some(tag), None) => parts.push((tag, format!("{}@{digest}", tag.1))),
                (None, None, _) => {
                    let name = parts.pop().map_or_else(|| self.repository.1.to_owned(), |(_, new)| new);
                    let name = name[..name.len() - pin_digest(&name).len()].to_owned();
                    parts.push((self.repository, format!("{name}@{digest}")));
                }
            }
        }
        for ((node, _), new) in parts.into_iter().filter(|((_, old), new)| old != new) {
            edits.push((editable(node, document)?, new));
        }
        Ok(edits)
    }

    fn unknown(&self, walk: &mut Walk<'_, 's>, context: Context<'s>) -> bool {
        let is_known = |text: &str| {
            matches!(walk.engine.known.lookup(text, Position::Repository, false), Verdict::Known(_))
        };
        let is_reference = self.whole.parse::<ImageRef>().is_ok();
        if self.whole != self.base && !is_reference && is_known(&self.base) {
            return self.leave(walk, "its tag or digest is none");
        }
        if self.registry.is_some() && names_host(self.repository.1) && is_known(self.repository.1) {
            return self.leave(walk, "its registry and its repository both name a host");
        }
        let in_image = context.key.is_some_and(|key| key.to_ascii_lowercase().contains("image"));
        let is_image = self.registry.is_some() || self.tag.is_some() || self.digest.is_some() || in_image;
        if !walk.engine.all || !is_image || self.whole.contains("://") {
            return false;
        }
        match is_reference {
            true => self.tell(walk, Meaning::Unknown),
            false => {
                self.tell(walk, Meaning::Undecided { why: "it cannot be read as an image reference".into() })
            }
        }
    }

    fn leave(&self, walk: &mut Walk<'_, 's>, why: &str) -> bool {
        self.tell(walk, Meaning::Left { why: why.into() })
    }

    fn tell(&self, walk: &mut Walk<'_, 's>, meaning: Meaning) -> bool {
        walk.add(self.repository.0, &self.whole, Position::Repository, meaning);
        true
    }
}

/// A digest in the way that another one was written.
fn as_written(old: &str, digest: &Digest) -> String {
    if old.contains(':') { digest.to_string() } else { digest.hex().to_owned() }
}

/// `@digest` at the end of a text.
fn pin_digest(text: &str) -> &str {
    text.find('@').map_or("", |at| &text[at..])
}

/// A part that may be changed: nothing else has its value from it.
fn editable<'s>(node: &'s Node<'s>, document: &Document<'_>) -> Result<&'s Scalar<'s>, &'static str> {
    match node.scalar() {
        Some(scalar) if !document.is_shared(scalar) => Ok(scalar),
        _ => Err("a part of it is shared with other places by an anchor"),
    }
}
