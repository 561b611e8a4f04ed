//! Split references, which Helm values use: `registry`, `repository`, `tag` and `digest` as keys of
//! one mapping, also with a common prefix (`imageRepository`, `imageTag`) or other names (`hub`,
//! `sha`).

use super::prefix::distant_parts;
use crate::index::{
    ReferenceIndex, ReferenceLookup, ReferenceReplacement, has_certain_host, pin, replaced,
};
use crate::inventory::Inventory;
use crate::occurrence::{Occurrence, ReferenceMeaning, ReferenceRole};
use crate::scan_result::ScanSettings;
use crate::split_reference::{
    PartGroup, PartKind, PartValue, SplitReference, SuffixedImage, SuffixedReference,
    has_empty_part,
};
use crate::walk::{
    ImageCandidate, ImageClaim, MappingContext, NodeContext, NodeStep, ReferenceCollector, start_of,
};
use crate::yaml::{YamlDocument, YamlNode, YamlScalar};
use landfall_model::{Destination, Digest, ImageRef, has_host};

/// References in several entries of a mapping: registry, repository, tag and digest.
pub(super) fn split_references<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let mut found = Vec::new();
    for (group, reference) in untaken(collector.document, members) {
        if decide(&reference, collector, &members.around) {
            found.extend(group.values());
        }
    }
    found
}

/// Like [`split_references`], for candidates.
pub(super) fn split_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let MappingContext {
        entries, around, ..
    } = members;
    let mut done = Vec::new();
    for (group, reference) in untaken(collector.document, members) {
        let key = group
            .get(&PartKind::Repository)
            .and_then(|at| entries[*at].key.scalar());
        let parts = [PartKind::Registry, PartKind::Tag, PartKind::Digest]
            .iter()
            .any(|part| group.contains_key(part));
        let sure =
            parts || is_named_image(around.key) || is_named_image(key.map(|key| &*key.value));
        if !(sure || has_certain_host(&reference.whole)) {
            continue;
        }
        if let Some(at) = start_of(reference.repository.node) {
            let key = key.map(|key| &*key.value);
            collector.path.extend(key.map(NodeStep::Key));
            let by_name = key.is_some_and(|key| matches!(key, "name" | "image"));
            let has_empty = |part| has_empty_part(entries, "", part, collector.document);
            if by_name
                && (has_empty(PartKind::Registry) || has_empty(PartKind::Repository))
                && is_headless(&reference, inventory)
            {
                let why = "the key of its registry is empty, so the registry is added elsewhere";
                collector.add_candidate(ImageCandidate::undecided(at, reference.whole, why));
            } else {
                let written = locked_form(&reference, inventory);
                let completed = completed_name(collector, inventory, &reference, written);
                let written = completed.as_deref().unwrap_or(written);
                collector.add_claim(at, ImageClaim::new(written, sure));
            }
            let depth = collector.path.len() - usize::from(key.is_some());
            collector.path.truncate(depth);
        }
        done.extend(group.values());
    }
    done
}

/// The split references in a mapping whose parts no earlier rule took.
fn untaken<'s>(
    document: &'s YamlDocument<'s>,
    members: &MappingContext<'s>,
) -> Vec<(PartGroup, SplitReference<'s>)> {
    let mut references = SplitReference::all(members.entries, members.around.key, document);
    let is_taken = |at: &usize| members.is_taken(*at);
    references.retain(|(group, _)| !group.values().any(is_taken));
    references
}

/// Rewrites or leaves `reference`. Returns whether its parts are certainly one reference: because
/// the lock contains it, because it is reported, or because it has a registry and its repository
/// has no host.
fn decide<'s>(
    reference: &SplitReference<'s>,
    collector: &mut ReferenceCollector<'_, 's>,
    around: &NodeContext<'s>,
) -> bool {
    let settings = collector.settings;
    let meaning = match lookup(reference, settings) {
        ReferenceLookup::Unknown => match unknown(reference, settings, around) {
            Some(meaning) => meaning,
            // with a registry of its own, a name without a host is not an image of Docker Hub
            None => return reference.registry.is_some() && is_short(reference.repository.text),
        },
        ReferenceLookup::Settled(item) => ReferenceMeaning::Settled(item),
        ReferenceLookup::Left(why) => ReferenceMeaning::Left(why),
        ReferenceLookup::Known(_) if reference.merged => {
            ReferenceMeaning::left("a merged mapping (<<) may supply its registry or its tag")
        }
        ReferenceLookup::Known(replacement) => match rewrite(reference, collector, replacement) {
            Ok(()) => return true,
            Err(why) => ReferenceMeaning::left(why),
        },
    };
    collector.add(
        reference.repository.node,
        &reference.whole,
        ReferenceRole::Repository,
        meaning,
    );
    true
}

/// Looks up `reference` as it is written or at Docker Hub, or else with the tag as Helm reads it.
fn lookup(reference: &SplitReference<'_>, settings: &ScanSettings<'_>) -> ReferenceLookup {
    let pin = settings.options.pin;
    let find = |name: &str| settings.index.lookup(name, ReferenceRole::Repository, pin);
    let is_locked = |found: &ReferenceLookup| {
        matches!(
            found,
            ReferenceLookup::Known(_) | ReferenceLookup::Settled(Some(_))
        )
    };
    let name = reference.on_docker_hub.as_ref();
    let written = find(name.unwrap_or(&reference.whole));
    if is_locked(&written) {
        return written;
    }
    let with_helm_tag = reference.with_helm_tag.as_deref().map(find);
    with_helm_tag.filter(is_locked).unwrap_or(written)
}

/// Whether `text` is a reference without a host.
fn is_short(text: &str) -> bool {
    !has_host(text) && text.parse::<ImageRef>().is_ok()
}

/// Writes `replacement` into the parts of `reference`. An error is the reason why that is
/// impossible.
fn rewrite<'s>(
    reference: &SplitReference<'s>,
    collector: &mut ReferenceCollector<'_, 's>,
    replacement: ReferenceReplacement,
) -> Result<(), &'static str> {
    let edits = edits(reference, &replacement, collector.document)?;
    let to = replaced(&reference.whole, &replacement);
    let meaning = ReferenceMeaning::known(replacement.item, to);
    let start = reference.repository.node.span().start;
    let occurrence = Occurrence::new(start, &*reference.whole, ReferenceRole::Repository, meaning);
    collector.add_in_parts(occurrence, edits)
}

/// The scalars that change, each with its new text.
fn edits<'s>(
    reference: &SplitReference<'s>,
    replacement: &ReferenceReplacement,
    document: &YamlDocument<'_>,
) -> Result<Vec<(&'s YamlScalar<'s>, String)>, &'static str> {
    let SplitReference {
        registry,
        repository,
        tag,
        digest,
        room,
        ..
    } = *reference;
    let mut parts: Vec<(PartValue<'s>, String)> = Vec::new();
    if let Some(to) = &replacement.to {
        let pin = pin(repository.text);
        let name = &repository.text[..repository.text.len() - pin.len()];
        match registry {
            Some(old) => {
                let slash = if old.text.ends_with('/') { "/" } else { "" };
                let (host, path) = split_destination(to, old.text, name);
                parts.push((old, format!("{host}{slash}")));
                parts.push((repository, format!("{path}{pin}")));
            }
            None => parts.push((repository, format!("{to}{pin}"))),
        }
    }
    let mut edits = Vec::new();
    if let Some(new) = &replacement.digest {
        match (digest, tag, room) {
            (Some(value), ..) => parts.push((value, in_style_of(value.text, new))),
            // `a/b@sha256` as the repository, and the digits of the digest as the tag
            (None, Some(tag), _) if repository.text.contains('@') => parts.push((tag, new.hex())),
            (None, Some(tag), Some(room))
                if !tag.text.contains('@') && !document.is_shared(room) =>
            {
                edits.push((room, new.to_string()));
            }
            // a digest without a key of its own follows the tag
            (None, Some(tag), _) => parts.push((tag, with_digest(tag.text, new))),
            (None, None, _) => {
                // the last part is the new repository, if the destination changes it
                let name = match parts.pop() {
                    Some((_, name)) => name,
                    None => repository.text.to_owned(),
                };
                parts.push((repository, with_digest(&name, new)));
            }
        }
    }
    for (part, new) in parts {
        if part.text != new {
            edits.push((editable_scalar(part.node, document)?, new));
        }
    }
    Ok(edits)
}

/// Splits `to` into a registry and a repository. If the old registry has a path and the path of
/// `to` ends in the repository, the repository is kept, because Istio reads an image with a slash
/// as a whole reference.
fn split_destination(to: &Destination, registry: &str, repository: &str) -> (String, String) {
    if registry.trim_end_matches('/').contains('/')
        && let Some(path) = to.repository.strip_suffix(repository)
        && let Some(path) = path.strip_suffix('/')
    {
        return (format!("{}/{path}", to.registry), repository.to_owned());
    }
    (to.registry.clone(), to.repository.clone())
}

/// The meaning of a reference that the index does not know. `None` if it is not reported.
fn unknown(
    reference: &SplitReference<'_>,
    settings: &ScanSettings<'_>,
    around: &NodeContext<'_>,
) -> Option<ReferenceMeaning> {
    let SplitReference {
        registry,
        repository,
        tag,
        digest,
        base,
        whole,
        ..
    } = reference;
    let is_known = |text: &str| {
        !matches!(
            settings
                .index
                .lookup(text, ReferenceRole::Repository, false),
            ReferenceLookup::Unknown | ReferenceLookup::Settled(_)
        )
    };
    let is_reference = whole.parse::<ImageRef>().is_ok();
    if whole != base && !is_reference && is_known(base) {
        return Some(ReferenceMeaning::left("its tag or digest is not valid"));
    }
    if registry.is_some() && has_host(repository.text) && is_known(repository.text) {
        return Some(ReferenceMeaning::left(
            "its registry and its repository both name a host",
        ));
    }
    let in_image = around
        .key
        .is_some_and(|key| key.to_ascii_lowercase().contains("image"));
    let is_image = registry.is_some() || tag.is_some() || digest.is_some() || in_image;
    if !settings.report_unknown || !is_image || whole.contains("://") {
        return None;
    }
    Some(if is_reference {
        ReferenceMeaning::Unknown
    } else {
        ReferenceMeaning::unreadable()
    })
}

/// The tag or repository `text` with `digest`, which replaces the digest in `text`.
fn with_digest(text: &str, digest: &Digest) -> String {
    let name = text.split('@').next().unwrap_or_default();
    format!("{name}@{digest}")
}

/// The text of `digest` in the style of `old`: with or without the algorithm.
fn in_style_of(old: &str, digest: &Digest) -> String {
    if old.contains(':') {
        digest.to_string()
    } else {
        digest.hex()
    }
}

/// The scalar of a part, unless other values share it.
fn editable_scalar<'s>(
    node: &'s YamlNode<'s>,
    document: &YamlDocument<'_>,
) -> Result<&'s YamlScalar<'s>, &'static str> {
    match node.scalar() {
        Some(scalar) if !document.is_shared(scalar) => Ok(scalar),
        _ => Err("other values share a part of it by an anchor"),
    }
}

/// `reference` as it is written, or at Docker Hub, or with the tag as Helm reads it, if only that
/// is in the lock.
fn locked_form<'r>(reference: &'r SplitReference<'_>, inventory: &Inventory<'_>) -> &'r str {
    let is_locked = |name: &str| inventory.has_image(name);
    if let Some(name) = reference
        .on_docker_hub
        .as_deref()
        .filter(|name| is_locked(name))
    {
        return name;
    }
    let with_helm_tag = reference.with_helm_tag.as_deref();
    with_helm_tag
        .filter(|name| !is_locked(&reference.whole) && is_locked(name))
        .unwrap_or(&reference.whole)
}

/// The number of prefixes with which a name is looked up. Without a limit, many names and prefixes
/// would take quadratic time.
const MAX_PREFIXES: usize = 1_000;

/// The name of a locked image that a prefix in another mapping makes of `written`, which has
/// neither a registry nor a host and is not in the lock itself.
fn completed_name(
    collector: &ReferenceCollector<'_, '_>,
    inventory: &Inventory<'_>,
    reference: &SplitReference<'_>,
    written: &str,
) -> Option<String> {
    if reference.registry.is_some() || has_host(written) || inventory.has_image(written) {
        return None;
    }
    // with no prefix, most names are those of a locked image
    if !collector.settings.index.basenames.has(written) {
        return None;
    }
    let prefixes = distant_parts(collector).prefixes.iter();
    let prefixes = prefixes.take(MAX_PREFIXES);
    let mut names = prefixes.map(|prefix| format!("{}/{written}", prefix.trim_end_matches('/')));
    names.find(|name| inventory.has_image(name))
}

fn is_named_image(key: Option<&str>) -> bool {
    key.is_some_and(|key| key.to_ascii_lowercase().contains("image"))
}

/// Whether `reference`, whose registry is empty, is a single word that is not in the lock. Such a
/// word is not a complete image.
fn is_headless(reference: &SplitReference<'_>, inventory: &Inventory<'_>) -> bool {
    !reference.whole.contains('/') && !inventory.has_image(&reference.whole)
}

/// The meaning of a repository with suffixes, and each entry that changes: its position and its new
/// text.
type SuffixedChange = (ReferenceMeaning, Vec<(usize, String)>);

/// Repositories to which a suffix is appended, with one digest for each suffix: `genericDigest`
/// next to `repository` is the digest of `<repository>-generic` (Cilium's operator).
pub(super) fn suffixed_references<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let Some(found) = SuffixedReference::of(members.entries, collector.document) else {
        return Vec::new();
    };
    if found.parts.iter().any(|at| members.is_taken(*at)) {
        return Vec::new();
    }
    let Some((meaning, changes)) = change(&found, collector.settings.index) else {
        return Vec::new();
    };
    let (repository_at, repository) = found.repository;
    let node = &members.entries[repository_at].value;
    let role = ReferenceRole::Repository;
    let scalars = changes.into_iter().map(|(at, text)| {
        let scalar = members.entries[at].value.scalar();
        let scalar = scalar.filter(|scalar| !collector.document.is_shared(scalar))?;
        Some((scalar, text))
    });
    let written = match scalars.collect::<Option<Vec<_>>>() {
        None => Err("other values share it by an anchor"),
        Some(scalars) => {
            let start = node.span().start;
            let occurrence = Occurrence::new(start, repository, role, meaning);
            collector.add_in_parts(occurrence, scalars)
        }
    };
    if let Err(why) = written {
        collector.add(node, repository, role, ReferenceMeaning::left(why));
    }
    found.parts
}

/// The images of a repository with suffixes. Only one of them is used, so only those in the lock
/// are reported; if the lock has none of them, all are reported.
pub(super) fn suffixed_candidates<'s>(
    collector: &mut ReferenceCollector<'_, 's>,
    inventory: &Inventory<'_>,
    members: &MappingContext<'s>,
) -> Vec<usize> {
    let Some(found) = SuffixedReference::of(members.entries, collector.document) else {
        return Vec::new();
    };
    let Some(at) = start_of(&members.entries[found.repository.0].value) else {
        return Vec::new();
    };
    let all: Vec<&SuffixedImage> = found.references.iter().collect();
    let mut reported = all.clone();
    reported.retain(|image| inventory.has_image(&image.whole));
    if reported.is_empty() {
        reported = all;
    }
    collector.path.push(NodeStep::Key("repository"));
    for image in reported {
        collector.add_claim(at, ImageClaim::new(&image.whole, true));
    }
    collector.path.pop();
    found.parts
}

/// Looks up all images of the repository. The repository is changed if the destinations of the
/// images are the same without the suffixes. The digest of each image whose index was trimmed is
/// changed too. `None` if the lock has none of the images.
fn change(found: &SuffixedReference<'_>, index: &ReferenceIndex) -> Option<SuffixedChange> {
    let (repository_at, repository) = found.repository;
    let mut bases: Vec<String> = Vec::new();
    let mut changes = Vec::new();
    let mut settled = None;
    let mut first_known = None;
    for SuffixedImage {
        suffix,
        whole,
        digest_at,
    } in &found.references
    {
        match index.lookup(whole, ReferenceRole::Repository, false) {
            ReferenceLookup::Unknown => {}
            ReferenceLookup::Settled(item) => {
                settled = settled.or(Some(ReferenceMeaning::Settled(item)));
                bases.push(repository.to_owned());
            }
            ReferenceLookup::Left(why) => return Some((ReferenceMeaning::Left(why), vec![])),
            ReferenceLookup::Known(replacement) => {
                let to = replacement.to.as_ref().map(Destination::to_string);
                let base = match &to {
                    None => repository,
                    Some(to) => match replacement.without_end(to, suffix) {
                        Ok(base) => base,
                        Err(why) => return Some((ReferenceMeaning::Left(why), vec![])),
                    },
                };
                bases.push(base.to_owned());
                let digest = replacement.digest.as_ref();
                changes.extend(digest.map(|digest| (*digest_at, digest.to_string())));
                first_known = first_known.or(Some((
                    replacement.item.clone(),
                    match &to {
                        Some(_) => base.to_owned(),
                        None => replaced(whole, &replacement),
                    },
                )));
            }
        }
    }
    let base = bases.first()?;
    if bases.iter().any(|other| other != base) {
        let why = "its images have different destinations";
        return Some((ReferenceMeaning::left(why), vec![]));
    }
    let Some((item, to)) = first_known else {
        return settled.map(|settled| (settled, vec![]));
    };
    if base != repository {
        changes.push((repository_at, base.clone()));
    }
    let reaches = Vec::new();
    Some((ReferenceMeaning::Known { item, to, reaches }, changes))
}

#[cfg(test)]
mod tests {
    use crate::{ReferenceIndex, ReferenceMeaning, RewriteOptions, TextSyntax, rewrite};
    use landfall_item::lockfile::Lock;
    use landfall_model::{DestinationMap, Digest};

    #[test]
    fn the_digest_of_a_trimmed_index_is_written_under_the_key_of_its_suffix() {
        let digest = |name: &str| Digest::sha256(name.as_bytes());
        let images = ["aws", "generic"].map(|suffix| {
            let digest = digest(suffix);
            format!(
                "- {{name: 'quay.io/c/operator-{suffix}:v1', digest: {digest}, mediaType: m, size: \
             1}}\n"
            )
        });
        let lock = Lock::parse("l", &format!("version: 1\nimages:\n{}", images.concat())).unwrap();
        let mapping = DestinationMap::to("r:5/p".parse().unwrap());
        let index = ReferenceIndex::new(&lock, &mapping)
            .with_replaced([(digest("generic"), digest("trimmed"))]);
        let values = |repository: &str, generic: &str| {
            format!(
                "repository: {repository}\ntag: v1\nawsDigest: {}\ngenericDigest: {}\n",
                digest("aws"),
                digest(generic)
            )
        };
        let expected = values("r:5/p/c/operator", "trimmed");
        for (repository, generic, changes) in [
            ("quay.io/c/operator", "generic", 1),
            ("r:5/p/c/operator", "generic", 1),
            ("r:5/p/c/operator", "trimmed", 0),
        ] {
            let source = values(repository, generic);
            let options = RewriteOptions::default();
            let result = rewrite(&source, TextSyntax::Document, &index, options);
            assert_eq!(result.text, expected);
            let found = &result.scan.found;
            let changed = found.iter().filter(|one| one.is_change()).count();
            assert_eq!(changed, changes, "{found:?}");
            let is_left = |meaning: &_| matches!(meaning, ReferenceMeaning::Left(_));
            assert!(!found.iter().any(|one| is_left(&one.meaning)), "{found:?}");
        }
    }
}
