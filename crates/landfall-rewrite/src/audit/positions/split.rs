//! References in parts: `registry`, `repository`, `tag` and `digest` as keys of one mapping.

use super::claim::Claim;
use super::enclosing::Members;
use super::position::Position;
use super::reader::{Reader, start_of};
use crate::audit::candidate::Candidate;
use crate::audit::finding::Coverage;
use crate::reference_parts::{Part, part};
use crate::split_reference::SplitReference;
use crate::yaml::Entry;
use landfall_model::{ImageRef, has_host};

pub(super) struct Split;

impl Position for Split {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        taken: &[usize],
    ) -> Vec<usize> {
        let Members { entries, around } = members;
        let mut done = Vec::new();
        for (group, reference) in SplitReference::all(entries, around.key, reader.document) {
            if group.values().any(|at| taken.contains(at)) {
                continue;
            }
            let in_image = |key: Option<&str>| {
                key.is_some_and(|key| key.to_ascii_lowercase().contains("image"))
            };
            let key = group
                .get(&Part::Repository)
                .and_then(|at| entries[*at].0.scalar());
            let parts = [Part::Registry, Part::Tag, Part::Digest]
                .iter()
                .any(|part| group.contains_key(part));
            let sure = parts || in_image(around.key) || in_image(key.map(|key| &*key.value));
            if !(sure || has_host(&reference.whole)) {
                continue;
            }
            if let Some(at) = start_of(reference.repository.0) {
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
                    reader.add(
                        at,
                        Claim {
                            written: &reference.whole,
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

/// Whether a key for the registry of `reference` is empty, so that a word alone names no image;
/// unless it is held.
fn is_headless(
    reader: &Reader<'_, '_>,
    entries: &[Entry<'_>],
    reference: &SplitReference<'_>,
) -> bool {
    let is_empty = |(key, value): &Entry<'_>| {
        let part = key.scalar().and_then(|key| part(&key.value));
        part.is_some_and(|(stem, part)| stem.is_empty() && part == Part::Registry)
            && reader.document.text(value).is_none()
    };
    let is_held = |whole: ImageRef| {
        matches!(
            reader.inventory.decide(&whole, false),
            Coverage::Held { .. }
        )
    };
    !reference.whole.contains('/')
        && entries.iter().any(is_empty)
        && !reference.whole.parse::<ImageRef>().is_ok_and(is_held)
}

fn headless(at: usize, path: Vec<String>, written: String) -> Candidate {
    let why_not =
        Some("the key for its registry is empty, so the registry is put in elsewhere".into());
    Candidate {
        at,
        path,
        written,
        sure: true,
        in_container: false,
        is_chart: false,
        why_not,
    }
}
