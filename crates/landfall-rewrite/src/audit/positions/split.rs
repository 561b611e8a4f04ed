//! Split references: `registry`, `repository`, `tag` and `digest` as keys of one mapping.

use super::candidate_collector::{CandidateCollector, start_of};
use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::MappingContents;
use crate::audit::candidate::ImageCandidate;
use crate::reference_parts::{PartKind, part};
use crate::split_reference::SplitReference;
use crate::yaml::YamlEntry;
use landfall_model::has_host;

pub(super) struct SplitPosition;

impl ImagePosition for SplitPosition {
    fn references<'d>(
        &self,
        reader: &mut CandidateCollector<'d, '_>,
        members: &MappingContents<'d>,
        taken: &[usize],
    ) -> Vec<usize> {
        let MappingContents {
            entries, around, ..
        } = members;
        let mut done = Vec::new();
        for (group, reference) in SplitReference::all(entries, around.key, reader.document) {
            if group.values().any(|at| taken.binary_search(at).is_ok()) {
                continue;
            }
            let key = group
                .get(&PartKind::Repository)
                .and_then(|at| entries[*at].key.scalar());
            let parts = [PartKind::Registry, PartKind::Tag, PartKind::Digest]
                .iter()
                .any(|part| group.contains_key(part));
            let sure =
                parts || is_named_image(around.key) || is_named_image(key.map(|key| &*key.value));
            if !(sure || has_host(&reference.whole)) {
                continue;
            }
            if let Some(at) = start_of(reference.repository.node) {
                let key = key.map(|key| key.value.to_string());
                reader.path.extend(key.clone());
                let by_name = key
                    .as_deref()
                    .is_some_and(|key| matches!(key, "name" | "image"));
                if by_name && is_headless(reader, entries, &reference) {
                    reader
                        .found
                        .push(headless(at, reader.path.clone(), reference.whole));
                } else {
                    let written = locked_form(reader, &reference);
                    reader.add(
                        at,
                        ImageClaim {
                            written,
                            sure,
                            in_container: false,
                        },
                    );
                }
                reader
                    .path
                    .truncate(reader.path.len() - usize::from(key.is_some()));
            }
            done.extend(group.values());
        }
        done
    }
}

/// `reference` as it is written, or with the tag as Helm reads it if only that is in the lock.
fn locked_form<'r>(
    reader: &CandidateCollector<'_, '_>,
    reference: &'r SplitReference<'_>,
) -> &'r str {
    let is_locked = |name: &str| reader.inventory.has_image(name);
    let with_helm_tag = reference.with_helm_tag.as_deref();
    with_helm_tag
        .filter(|name| !is_locked(&reference.whole) && is_locked(name))
        .unwrap_or(&reference.whole)
}

fn is_named_image(key: Option<&str>) -> bool {
    key.is_some_and(|key| key.to_ascii_lowercase().contains("image"))
}

/// Whether `reference` is a single word with an empty registry, and is not in the lock. Such a word
/// is not a complete image.
fn is_headless(
    reader: &CandidateCollector<'_, '_>,
    entries: &[YamlEntry<'_>],
    reference: &SplitReference<'_>,
) -> bool {
    let has_empty_registry = entries.iter().any(|entry| {
        let part = entry.key.scalar().and_then(|key| part(&key.value));
        part.is_some_and(|(stem, part)| stem.is_empty() && part == PartKind::Registry)
            && reader.document.text(&entry.value).is_none()
    });
    !reference.whole.contains('/')
        && has_empty_registry
        && !reader.inventory.has_image(&reference.whole)
}

fn headless(at: usize, path: Vec<String>, written: String) -> ImageCandidate {
    let why_not =
        Some("the key of its registry is empty, so the registry is added elsewhere".into());
    ImageCandidate {
        at,
        path,
        written,
        sure: true,
        in_container: false,
        is_chart: false,
        why_not,
    }
}
