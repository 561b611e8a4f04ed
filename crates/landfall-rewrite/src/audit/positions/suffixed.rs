//! Repositories to which a suffix is appended (Cilium's operator). Only one of the images is used,
//! so only those in the lock are reported; if the lock has none of them, all are reported.

use super::candidate_collector::{CandidateCollector, start_of};
use super::image_claim::ImageClaim;
use super::image_position::ImagePosition;
use super::node_position::MappingContents;
use crate::suffixed::{SuffixedImage, SuffixedReference};

pub(super) struct SuffixedPosition;

impl ImagePosition for SuffixedPosition {
    fn references<'d>(
        &self,
        reader: &mut CandidateCollector<'d, '_>,
        members: &MappingContents<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let Some(found) = SuffixedReference::of(members.entries, reader.document) else {
            return Vec::new();
        };
        let Some(at) = start_of(&members.entries[found.repository.0].value) else {
            return Vec::new();
        };
        let all: Vec<&SuffixedImage> = found.references.iter().collect();
        let mut reported = all.clone();
        reported.retain(|image| reader.inventory.has_image(&image.whole));
        if reported.is_empty() {
            reported = all;
        }
        reader.path.push("repository".into());
        for image in reported {
            let claim = ImageClaim {
                written: &image.whole,
                sure: true,
                in_container: false,
            };
            reader.add(at, claim);
        }
        reader.path.pop();
        found.parts
    }
}
