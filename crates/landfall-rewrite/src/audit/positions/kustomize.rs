//! The `images` transformer of a kustomization, which replaces images of the bases.

use super::candidate_collector::{CandidateCollector, start_of};
use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::MappingContents;
use crate::yaml::text_of;

pub(super) struct KustomizePosition;

impl ImagePosition for KustomizePosition {
    fn references<'d>(
        &self,
        reader: &mut CandidateCollector<'d, '_>,
        members: &MappingContents<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let MappingContents {
            entries, around, ..
        } = members;
        let in_images =
            matches!(&reader.path[..], [.., list, _] if list == "images") && around.key.is_none();
        let part = |key: &str| text_of(entries, key);
        let name = part("name");
        let new_name = part("newName");
        if !in_images || name.is_none() || [new_name, part("newTag"), part("digest")] == [None; 3] {
            return Vec::new();
        }
        let mut written = new_name.or(name).unwrap_or_default().to_owned();
        written.extend(part("newTag").map(|tag| format!(":{tag}")));
        written.extend(part("digest").map(|digest| format!("@{digest}")));
        if let Some(at) = entries.first().and_then(|entry| start_of(&entry.key)) {
            reader.add(
                at,
                ImageClaim {
                    written: &written,
                    sure: true,
                    in_container: false,
                },
            );
        }
        (0..entries.len()).collect()
    }
}
