//! `landfall rewrite --kustomize`: a component whose `images` have the effect of a rewrite.

use landfall_rewrite::{ReferenceMeaning, ReferenceRole, RewrittenText};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Returns a kustomize component that changes the images of containers and image volumes as a
/// rewrite would. Adds to `notes` the references that kustomize cannot change.
pub(super) fn component<'m>(
    members: impl Iterator<Item = &'m RewrittenText>,
    notes: &mut Vec<String>,
) -> String {
    let mut images: BTreeMap<String, String> = BTreeMap::new();
    let mut refused: BTreeSet<String> = BTreeSet::new();
    for member in members {
        for occurrence in &member.new.scan.found {
            let name = name_of(&occurrence.written);
            match (&occurrence.meaning, occurrence.role) {
                (ReferenceMeaning::Known { to, .. }, ReferenceRole::Container) => {
                    images.insert(name.to_owned(), name_of(to).to_owned());
                }
                (ReferenceMeaning::Known { .. }, _) => {
                    notes.push(format!(
                        "{}: kustomize cannot change {}",
                        occurrence.position_in(&member.path),
                        occurrence.written
                    ));
                }
                (
                    ReferenceMeaning::Left { .. } | ReferenceMeaning::Unknown,
                    ReferenceRole::Container,
                ) => {
                    refused.insert(name.to_owned());
                }
                _ => {}
            }
        }
    }
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
    for (name, to) in images {
        text.push_str(&format!(
            "- name: {}\n  newName: {}\n",
            json!(name),
            json!(to)
        ));
    }
    text
}

/// Removes the tag and the digest from a reference.
fn name_of(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or(reference);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    name[last..]
        .find(':')
        .map_or(name, |colon| &name[..last + colon])
}
