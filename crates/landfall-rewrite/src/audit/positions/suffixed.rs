//! Repositories that get a suffix (Cilium's operator): only one of the images is used. Those that
//! the lock holds are told; if it holds none, all are.

use super::claim::Claim;
use super::enclosing::Members;
use super::position::Position;
use super::reader::{Reader, start_of};
use crate::audit::finding::Coverage;
use crate::suffixed::SuffixedReference;
use landfall_model::ImageRef;

pub(super) struct SuffixedRepository;

impl Position for SuffixedRepository {
    fn references<'d>(
        &self,
        reader: &mut Reader<'d, '_>,
        members: &Members<'d>,
        _taken: &[usize],
    ) -> Vec<usize> {
        let Some(found) = SuffixedReference::of(members.entries, reader.document) else {
            return Vec::new();
        };
        let Some(at) = start_of(&members.entries[found.repository.0].1) else {
            return Vec::new();
        };
        let is_held = |whole: &str| {
            let held = |reference: ImageRef| {
                matches!(
                    reader.inventory.decide(&reference, false),
                    Coverage::Held { .. }
                )
            };
            whole.parse::<ImageRef>().is_ok_and(held)
        };
        let held: Vec<bool> = found
            .references
            .iter()
            .map(|one| is_held(&one.whole))
            .collect();
        let none = !held.contains(&true);
        reader.path.push("repository".into());
        for (one, _) in found
            .references
            .iter()
            .zip(&held)
            .filter(|(_, held)| none || **held)
        {
            reader.add(
                at,
                Claim {
                    written: &one.whole,
                    sure: true,
                    in_container: false,
                },
            );
        }
        reader.path.pop();
        found.parts
    }
}
