//! `landfall rewrite --kustomize`: a component whose `images` have the effect of a rewrite.

use landfall_model::report::one_line;
use landfall_rewrite::{Occurrence, ReferenceMeaning, ReferenceRole, RewrittenText};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A reference in a container, and the result of a rewrite.
struct ContainerReference<'m> {
    path: &'m str,
    occurrence: &'m Occurrence,
    /// The reference after the rewrite.
    to: &'m str,
}

/// Returns a kustomize component that changes the images of containers and image volumes as a
/// rewrite would. Adds to `notes` the references that kustomize cannot change.
pub(super) fn component<'m>(
    members: impl Iterator<Item = &'m RewrittenText>,
    notes: &mut Vec<String>,
) -> String {
    let mut images: BTreeMap<&str, Vec<ContainerReference<'_>>> = BTreeMap::new();
    let mut refused: BTreeSet<&str> = BTreeSet::new();
    for member in members {
        for occurrence in &member.new.scan.found {
            let name = name_of(&occurrence.written);
            let to = match (&occurrence.meaning, occurrence.role) {
                (ReferenceMeaning::Known { to, .. }, ReferenceRole::Container) => to,
                (ReferenceMeaning::Settled(_), ReferenceRole::Container) => &occurrence.written,
                (ReferenceMeaning::Known { .. }, _) => {
                    notes.push(format!(
                        "{}: kustomize cannot change {}",
                        one_line(&occurrence.position_in(&member.path)),
                        occurrence.written
                    ));
                    continue;
                }
                (
                    ReferenceMeaning::Left(_) | ReferenceMeaning::Unknown,
                    ReferenceRole::Container,
                ) => {
                    refused.insert(name);
                    continue;
                }
                _ => continue,
            };
            images.entry(name).or_default().push(ContainerReference {
                path: &member.path,
                occurrence,
                to,
            });
        }
    }
    images.retain(|_, references| references.iter().any(|one| one.occurrence.is_change()));
    for name in refused.iter().filter(|name| images.contains_key(*name)) {
        notes.push(format!(
            "{name} is left out: kustomize would also change references to it that are not in \
             the lock"
        ));
    }
    images.retain(|name, _| !refused.contains(name));
    let mut text =
        String::from("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages:");
    if images.is_empty() {
        text.push_str(" []");
    }
    text.push('\n');
    for (name, references) in images {
        text.push_str(&image_entry(name, &references, notes));
    }
    text
}

/// The entry of `images` for the image `name`. It applies to all `references`, so it sets a tag and
/// a digest only if a rewrite changes a digest and makes all references the same.
fn image_entry(
    name: &str,
    references: &[ContainerReference<'_>],
    notes: &mut Vec<String>,
) -> String {
    let changed = references.iter().find(|one| one.occurrence.is_change());
    let to = changed.map_or(name, |one| one.to);
    let mut text = format!(
        "- name: {}\n  newName: {}\n",
        json!(name),
        json!(name_of(to))
    );
    let mut replaced = references
        .iter()
        .filter(|one| digest_of(one.to) != digest_of(&one.occurrence.written))
        .peekable();
    if replaced.peek().is_none() {
        return text;
    }
    if references.iter().any(|one| one.to != to) {
        notes.extend(replaced.map(|one| {
            format!(
                "{}: kustomize cannot change the digest of {}: it would also set it for other tags \
                 and digests of {name}",
                one_line(&one.occurrence.position_in(one.path)),
                one.occurrence.written
            )
        }));
        return text;
    }
    let pin = to[name_of(to).len()..].split('@').next();
    if let Some(tag) = pin.and_then(|pin| pin.strip_prefix(':')) {
        text.push_str(&format!("  newTag: {}\n", json!(tag)));
    }
    if let Some(digest) = digest_of(to) {
        text.push_str(&format!("  digest: {}\n", json!(digest)));
    }
    text
}

/// The digest of a reference, if it has one.
fn digest_of(reference: &str) -> Option<&str> {
    reference.split_once('@').map(|(_, digest)| digest)
}

/// Removes the tag and the digest from a reference.
fn name_of(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or(reference);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    name[last..]
        .find(':')
        .map_or(name, |colon| &name[..last + colon])
}
